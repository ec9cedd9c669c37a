"""Genuine functions that run from their packages, beside the same programs run by hand.

A pipeline of three is called by `transom up` and by `transom render`. By hand, the programs listen at ports of this machine, and `transom render` asks them
there. What `up` composed, what `render` prints, and the answers of the programs run by hand are equal.
"""

import contextlib
import json
import signal
import socket
import subprocess

import install
import servers

NAMES = ("function-patch-and-transform", "function-go-templating", "function-auto-ready")
PATCHED = {
    "name": "patched", "base": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"}, "data": {"from": "a patch"}},
    "readinessChecks": [{"type": "None"}],
    "patches": [
        {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.size", "toFieldPath": "data.size", "transforms": [
            {"type": "math", "math": {"type": "Multiply", "multiply": 3}}, {"type": "convert", "convert": {"toType": "string"}}]},
        {"type": "FromCompositeFieldPath", "fromFieldPath": "metadata.name", "toFieldPath": "data.name", "transforms": [
            {"type": "string", "string": {"type": "Format", "fmt": "of %s"}}]}]}
TEMPLATE = """
{{- range $i := until 2 }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  namespace: default
  annotations:
    gotemplating.fn.crossplane.io/composition-resource-name: map-{{ $i }}
data:
  size: {{ add $i $.observed.composite.resource.spec.size | quote }}
  digest: {{ $.observed.composite.resource.metadata.name | sha256sum }}
{{- end }}
"""
COMPOSITION = {
    "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "things"},
    "spec": {"compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "Thing"}, "mode": "Pipeline", "pipeline": [
        {"step": "patch", "functionRef": {"name": NAMES[0]}, "input": {"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": [PATCHED]}},
        {"step": "make", "functionRef": {"name": NAMES[1]}, "input": {
            "apiVersion": "gotemplating.fn.crossplane.io/v1beta1", "kind": "GoTemplate", "source": "Inline", "inline": {"template": TEMPLATE}}},
        {"step": "ready", "functionRef": {"name": NAMES[2]}}]}}
COMPOSED = {"patched", "map-0", "map-1"}
# What the API server adds to an object, and the name that is drawn.
OF_THE_SERVER = ("name", "uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")


def genuine(suite, plane, packages):
    """An XR is composed; the plane is killed and started again, and composes another one; and all sides agree."""
    plane.start()
    plane.apply(suite.DEFINITION)
    for name in NAMES:
        plane.apply(suite.function(name, packages[name], **{"transom.io/runtime": "Package"}))
    plane.apply(COMPOSITION)
    run_in_containers(plane)
    plane.apply(suite.thing("one"))
    plane.until_true("/apis/example.org/v1/things/one", "Ready")
    plane.end(signal.SIGKILL)
    plane.start()
    run_in_containers(plane)
    assert len(list((plane.folder / "data/containers/run").iterdir())) == 1, "what the killed plane left is removed"
    plane.apply(suite.thing("two"))
    plane.until_true("/apis/example.org/v1/things/two", "Ready")
    by_up = {name: composed(plane, name) for name in ("one", "two")}
    plane.end()
    assert not list((plane.folder / "data/containers/run").iterdir()), "nothing is left"
    assert not suite.cgroups(), suite.cgroups()
    for name, maps in by_up.items():
        assert {map["metadata"]["annotations"]["crossplane.io/composition-resource-name"] for map in maps} == COMPOSED, maps
        agree(suite, plane, packages, name, maps)


def run_in_containers(plane):
    """All functions are called in containers of theirs: some of them are also built in."""
    for name in NAMES:
        path = f"/apis/pkg.crossplane.io/v1/functions/{name}"
        plane.until_true(path, "Healthy")
        revision = plane.request("GET", path)[1]["status"]["currentRevision"]
        endpoint = plane.request("GET", f"/apis/pkg.crossplane.io/v1/functionrevisions/{revision}")[1]["status"]["endpoint"]
        assert endpoint == f"container:{revision}", (name, endpoint)


def composed(plane, name):
    """The ConfigMaps of an XR, as the plane has them."""
    found = plane.request("GET", "/api/v1/namespaces/default/configmaps")[1]["items"]
    return [{"apiVersion": "v1", "kind": "ConfigMap", **item} for item in found
            if item["metadata"].get("labels", {}).get("crossplane.io/composite") == name]


def agree(suite, plane, packages, name, by_up):
    """What a plane composed is what the programs answer that are run by hand, and `render` with the packages prints the same."""
    files = plane.folder.parent / f"{plane.folder.name}-{name}"
    files.mkdir()
    with by_hand() as addresses:
        contents = {"xr": [suite.thing(name)], "composition": [COMPOSITION], "observed": list(map(unowned, by_up)), "by-hand": [], "package": []}
        for function, address in addresses.items():
            development = {"render.crossplane.io/runtime": "Development", "render.crossplane.io/runtime-development-target": address}
            contents["by-hand"].append(suite.function(function, packages[function], **development))
            contents["package"].append(suite.function(function, packages[function], **{"transom.io/runtime": "Package"}))
        for file, content in contents.items():
            (files / f"{file}.yaml").write_text("\n---\n".join(map(json.dumps, content)))
        files.chmod(0o755)
        # Without what exists, as for the first time, and with it, when all of it is ready.
        for more in ((), ("--observed-resources", files / "observed.yaml")):
            printed = {functions: render(plane, files, functions, more) for functions in ("by-hand", "package")}
            assert printed["package"] == printed["by-hand"], printed
            documents = documents_of(printed["by-hand"])
            maps = [document for document in documents if document["kind"] == "ConfigMap"]
            assert sorted(map(comparable, maps)) == sorted(map(comparable, by_up)), (maps, by_up)
    ready = [condition["status"] for condition in documents[0]["status"]["conditions"] if condition["type"] == "Ready"]
    assert ready == ["True"], documents[0]


def unowned(composed):
    """A composed resource without its owner, whose uid `render` does not know."""
    return {**composed, "metadata": {key: value for key, value in composed["metadata"].items() if key != "ownerReferences"}}


def comparable(composed):
    """A composed resource without what the API server added."""
    metadata = {key: value for key, value in composed["metadata"].items() if key not in OF_THE_SERVER}
    metadata["ownerReferences"] = [{key: value for key, value in owner.items() if key != "uid"} for owner in metadata["ownerReferences"]]
    return json.dumps({**composed, "metadata": metadata}, sort_keys=True)


def render(plane, files, functions, more):
    command = plane.command("render", files / "xr.yaml", files / "composition.yaml", files / f"{functions}.yaml", "-r", "-c", "--output", "json", *more,
                            "--container-runtime", plane.engine)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def documents_of(text):
    """The objects of a stream of JSON."""
    decoder, documents = json.JSONDecoder(), []
    while text := text.lstrip():
        document, end = decoder.raw_decode(text)
        documents.append(document)
        text = text[end:]
    return documents


@contextlib.contextmanager
def by_hand():
    """Runs the programs. Gives the address of each."""
    with servers.workspace("by-hand") as (_, processes):
        addresses = {}
        for name in NAMES:
            addresses[name] = f"127.0.0.1:{servers.free_port()}"
            processes.start(name, install.function(name), "--insecure", "--address", addresses[name])
        for name, address in addresses.items():
            processes.await_ready(name, lambda address=address: accepts(address))
        yield addresses


def accepts(address):
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=1):
        return True
