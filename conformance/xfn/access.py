"""What container functions may reach: registries that want a password, when they are asked, and the network.

Each case gets the suite as a module, for what cases share.
"""

import base64
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import threading

import registry as registries

NAMESPACE = "crossplane-system"
SAID = "of the machine"


def write(suite, plane, resource, name, fields):
    """Applies an object in the namespace of the control plane."""
    kind = {"secrets": "Secret", "serviceaccounts": "ServiceAccount"}[resource]
    path = f"/api/v1/namespaces/{NAMESPACE}/{resource}/{name}?fieldManager=conformance&force=true"
    manifest = {"apiVersion": "v1", "kind": kind, "metadata": {"namespace": NAMESPACE, "name": name}, **fields}
    suite.until(f"{path} is applied", lambda: plane.request("PATCH", path, manifest)[0] in (200, 201))


def with_password(private, password):
    """The data of a pull secret."""
    auth = base64.b64encode(f"{registries.USER}:{password}".encode()).decode()
    config = base64.b64encode(json.dumps({"auths": {private.host: {"auth": auth}}}).encode()).decode()
    return {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": config}}


def copied(images, private, name):
    """The image of label.sh in the registry that wants a password."""
    reference = private.reference(f"conformance/{name}:v1")
    subprocess.run(["skopeo", "copy", "--src-tls-verify=false", "--dest-tls-verify=false", "--dest-creds", f"{registries.USER}:{registries.PASSWORD}",
                    f"docker://{images['label']}", f"docker://{reference}"], check=True, capture_output=True)
    private.requests()
    return reference


class Labelled:
    """An XR that is composed by the image of label.sh beside a built-in function, and what is said about it."""

    def __init__(self, suite, plane):
        self.suite, self.plane, self.size = suite, plane, 7

    def call(self, image, **container):
        step = self.suite.inline(image)
        step["container"].update(container)
        self.plane.apply(self.suite.composition("pulled", {"mode": "Pipeline", "pipeline": [
            {"step": "label", "inline": step, "input": self.suite.CONFIG}, {"step": "ready", "functionRef": {"name": "function-auto-ready"}}]}))
        self.newest = None
        self.suite.until("there is a revision of the Composition", self.has_revision)
        self.size += 1
        thing = self.suite.of("one", "pulled")
        thing["spec"]["size"] = self.size
        self.plane.apply(thing)

    def has_revision(self):
        composition = self.plane.request("GET", "/apis/apiextensions.crossplane.io/v1/compositions/pulled")[1]
        found = self.plane.request("GET", "/apis/apiextensions.crossplane.io/v1/compositionrevisions?labelSelector=crossplane.io/composition-name=pulled")[1]["items"]
        newest = max(found, key=lambda revision: revision["spec"]["revision"], default=None)
        if newest and newest["spec"]["pipeline"] == composition["spec"]["pipeline"]:
            self.newest = newest["metadata"]["name"]
        return self.newest

    def is_of_newest(self):
        found = self.plane.request("GET", f"{self.suite.THING}/one")[1]
        return found["spec"]["crossplane"].get("compositionRevisionRef", {}).get("name") == self.newest

    def condition(self):
        return self.plane.condition(f"{self.suite.THING}/one", "Synced")

    def is_composed(self):
        expected = {"sized": {"size": str(self.size), "colour": "red"}}
        self.suite.until(lambda: f"size {self.size} is composed: {self.condition()}", lambda: self.is_of_newest() and self.suite.maps(self.plane, "one") == expected)
        self.plane.until_true(f"{self.suite.THING}/one", "Ready")

    def fails(self, words):
        self.suite.until(lambda: f"{words!r} is named: {self.condition()}", lambda: words in self.condition()["message"])
        assert registries.PASSWORD not in self.condition()["message"] and "wrong-word" not in self.condition()["message"], self.condition()


def pull_secrets(suite, plane, images):
    """Images that want a password are pulled with the Secrets that the function names, or with those of the service account."""
    with registries.start("basic") as private:
        first, second = copied(images, private, "first"), copied(images, private, "second")
        suite.start(plane)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        applied, _ = plane.request("PATCH", f"/api/v1/namespaces/{NAMESPACE}?fieldManager=conformance&force=true", namespace)
        assert applied in (200, 201), applied
        xr = Labelled(suite, plane)
        xr.call(first)
        xr.fails("no credentials were given")
        named = {"imagePullSecrets": [{"name": "pull"}]}
        xr.call(first, **named)
        xr.fails(f'there is no pull secret "pull" in namespace "{NAMESPACE}"')
        write(suite, plane, "secrets", "pull", with_password(private, "wrong-word"))
        xr.call(first, **named)
        xr.fails("the given credentials are not sufficient")
        write(suite, plane, "secrets", "pull", with_password(private, registries.PASSWORD))
        xr.is_composed()
        policies(xr, private, first, second, named)
        write(suite, plane, "serviceaccounts", "crossplane", {"imagePullSecrets": [{"name": "pull"}]})
        xr.call(second)
        xr.is_composed()
        by_runner(suite, plane, xr, first, named)
        plane.end()
        log = pathlib.Path(plane.log.name).read_text(errors="replace")
        assert registries.PASSWORD not in log and "wrong-word" not in log, "no password is logged"
    suite.nothing_left(plane)


def policies(xr, private, first, second, named):
    """When the registry is asked for an image."""
    private.requests()
    xr.call(first, imagePullPolicy="IfNotPresent", **named)
    xr.is_composed()
    assert private.requests() == [], "the image is here"
    xr.call(first, imagePullPolicy="Always", **named)
    xr.is_composed()
    asked = []

    def is_asked():
        asked.extend(private.requests())
        return any("/manifests/v1" in request for request in asked)
    xr.suite.until(lambda: f"the registry is asked for the digest: {asked}", is_asked)
    assert not any("/blobs/" in request for request in asked), asked
    xr.call(second, imagePullPolicy="Never", **named)
    xr.fails("is not on this machine, and imagePullPolicy is Never")
    assert private.requests() == []


def by_runner(suite, plane, xr, image, named):
    """A runner of its own, which has no Secrets, pulls with what the control plane sends."""
    address = f"unix:{plane.folder}/runner.sock"
    command = plane.command("xfn", "start", "--address", address, "--cache-dir", plane.folder / "runner", "--container-runtime", plane.engine, *plane.flags)
    served = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        suite.until("the runner is served", lambda: (plane.folder / "runner.sock").exists())
        xr.call(image, runner={"endpoint": address}, **named)
        xr.is_composed()
        suite.until("the runner has pulled it", lambda: list((plane.folder / "runner/containers/images").glob("tag-*")))
    finally:
        served.terminate()
        served.wait()


@contextlib.contextmanager
def speaker():
    """A server on this machine that says something to everybody. Gives its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        connection.sendall(SAID.encode())
        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def network(suite, plane, images):
    """With the policy Runner a function reaches what its runner does, and nothing else is less isolated; without it, nothing."""
    resolver = os.path.getsize("/etc/resolv.conf")
    with speaker() as port:
        reach = images["images"].build("reach", "reach.sh", ("127.0.0.1", str(port)))
        suite.start(plane)

        def apply(name, image, policy, kind="Container"):
            step = {**suite.inline(image, "8s"), "type": kind}
            step["container"]["network"] = {"policy": policy}
            plane.apply(suite.composition(name, {"mode": "Pipeline", "pipeline": [
                {"step": "reach", "inline": step}, {"step": "ready", "functionRef": {"name": "function-auto-ready"}}]}))
            plane.apply(suite.of(name, name))

        def message(name):
            return plane.condition(f"{suite.THING}/{name}", "Synced")["message"]
        for kind in ("Container", "Chroot"):
            apply(f"runner-{kind.lower()}", reach, "Runner", kind)
            apply(f"isolated-{kind.lower()}", reach, "Isolated", kind)
        for mode in ("files", "processes", "proc"):
            apply(f"runner-{mode}", images[f"hostile-{mode}"], "Runner")
        for kind in ("container", "chroot"):
            expected = {"reached": {"said": SAID, "resolver": str(resolver)}}
            suite.until(lambda: f"runner-{kind} reaches the server: {message(f'runner-{kind}')}", lambda: suite.maps(plane, f"runner-{kind}") == expected)
            plane.until_true(f"{suite.THING}/runner-{kind}", "Ready")
            suite.until(lambda: f"isolated-{kind} is refused: {message(f'isolated-{kind}')}", lambda: "reach: refused" in message(f"isolated-{kind}"))
        for mode in ("files", "processes", "proc"):
            suite.until(lambda: f"{mode} is refused: {message(f'runner-{mode}')}", lambda: f"{mode}: refused" in message(f"runner-{mode}"))
        plane.end()
    suite.nothing_left(plane)
