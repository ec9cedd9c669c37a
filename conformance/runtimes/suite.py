"""Runs functions from their packages on this machine: with OCI runtimes and with namespaces without an OCI runtime, as root and as an ordinary user.

The genuine provider-kubernetes runs from its package and manages objects of the plane. Genuine functions are packed with images of umoci and our
`xpkg build`, pushed to a real registry (distribution's), called by `transom up` and by `transom render`; the answers equal those of the same programs run by
hand (genuine.py). A Function and a Provider that the original command line packed are installed, too. A hostile program tries what it must not be able to
do, and an XR beside it stays ready (attempts.py, steady.py). Planes are killed at every step, and nothing is left (killed.py). `--only WORD` picks cases whose name has the word.
Two versions of a genuine function serve at once, and XRs move between them in waves (story.py).
The same with crun, and with cgroups of version 1 or 2 alone, where the OCI runtime works in that way by itself.
Needs root, because it also runs as an ordinary user; `runc`, `crun`, `umoci` and `skopeo` are installed from the distribution's packages if they are missing.
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "packages")]

import attempts  # noqa: E402
import cargo  # noqa: E402
import genuine as genuines  # noqa: E402
import install  # noqa: E402
import killed as kills  # noqa: E402
import layouts  # noqa: E402
import oci  # noqa: E402
import registry as registries  # noqa: E402
import servers  # noqa: E402
import speed  # noqa: E402
import story as stories  # noqa: E402

NAME = "function-auto-ready"
BY_CRANK = "by-crank-"
KUBERNETES = "provider-kubernetes"
PROVIDER = f"/apis/pkg.crossplane.io/v1/providers/{KUBERNETES}"
ORDINARY_USER = "12345"
WITHIN = 60  # seconds

META = f"apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata: {{name: NAME}}\n"
COMPOSITION = {
    "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "things"},
    "spec": {"compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "Thing"}, "mode": "Pipeline", "pipeline": [
        {"step": "make", "functionRef": {"name": "function-go-templating"}, "input": {
            "apiVersion": "gotemplating.fn.crossplane.io/v1beta1", "kind": "GoTemplate", "source": "Inline", "inline": {"template":
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  namespace: default\n  annotations:\n"
                "    gotemplating.fn.crossplane.io/composition-resource-name: map\ndata: {a: b}\n"}}},
        {"step": "ready", "functionRef": {"name": NAME}}]}}
DEFINITION = {
    "apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition", "metadata": {"name": "things.example.org"},
    "spec": {"group": "example.org", "scope": "Cluster", "names": {"kind": "Thing", "plural": "things"}, "versions": [
        {"name": "v1", "served": True, "referenceable": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}]}}


def function(name, package, **annotations):
    return {"apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "metadata": {"name": name, "annotations": annotations},
            "spec": {"package": package}}


def thing(name):
    return {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {"size": 1}}


# Other suites need it, too.
image = oci.of_program


def push(binary, folder, registry, name, program, arguments=(), source=None, tag="v1.0.0"):
    """Packs a program as a Function, or as what `source` is the package of, pushes it, and returns its reference. The binary is ours or the original."""
    if source is None:
        source = folder / name
        source.mkdir()
        (source / "crossplane.yaml").write_text(META.replace("NAME", name))
    image(folder / f"{name}.tar", program, arguments)
    reference = registry.reference(f"conformance/{name}:{tag}")
    for words in (["build", "-f", source, "-o", folder / f"{name}.xpkg", "--embed-runtime-image-tarball", folder / f"{name}.tar"],
                  ["push", "-f", folder / f"{name}.xpkg", reference]):
        done = subprocess.run([binary, "xpkg", *words], capture_output=True, text=True)
        assert done.returncode == 0, f"{binary} xpkg {words[0]}: {done.stdout}{done.stderr}"
    return reference


class Packages(dict):
    """References of packages by name. Each is built and pushed when a case first asks for it."""

    def __init__(self, binary, folder, registry, targets):
        super().__init__()
        self.binary, self.folder, self.registry, self.targets = binary, folder, registry, targets

    def __missing__(self, name):
        arguments, source = (), None
        if name.startswith("hostile-"):
            program, arguments = self.hostile(), [name.removeprefix("hostile-"), *self.targets]
        elif name in (stories.OLD, stories.NEW):
            # Two versions of one function: its package has the same name and repository.
            version = install.VERSIONS["older-functions" if name == stories.OLD else "functions"][NAME]
            place = self.folder / name
            place.mkdir()
            self[name] = push(self.binary, place, self.registry, NAME, install.function(NAME, version), tag=version)
            return self[name]
        elif name.startswith(BY_CRANK):
            # Built and pushed by the original command line.
            place, packed = self.folder / name, name.removeprefix(BY_CRANK)
            place.mkdir()
            program, source = install.provider(packed) if packed.startswith("provider-") else (install.function(packed), None)
            self[name] = push(install.crank(), place, self.registry, packed, program, source=source, tag="by-crank")
            return self[name]
        elif name.startswith("provider-"):
            program, source = install.provider(name)
        else:
            program = install.function(name)
        self[name] = push(self.binary, self.folder, self.registry, name, program, arguments, source)
        return self[name]

    def hostile(self):
        program = self.folder / "hostile"
        if not program.exists():
            subprocess.run(["go", "build", "-o", program, "."], cwd=HERE / "hostile", check=True, env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"})
        return program


class Plane:
    """`transom up` as a user, with an engine for containers."""

    def __init__(self, binary, folder, user, engine, flags=(), layout=""):
        self.binary, self.folder, self.user, self.engine, self.flags, self.layout = binary, folder, user, engine, flags, layout
        folder.mkdir()
        if user != "root":
            shutil.chown(folder, int(user), int(user))

    def command(self, *arguments):
        as_user = [] if self.user == "root" else ["setpriv", "--reuid", self.user, "--regid", self.user, "--clear-groups", "--inh-caps=-all"]
        return layouts.within(self.layout, [*as_user, "env", f"HOME={self.folder}", str(self.binary), *map(str, arguments)])

    def start(self):
        if not self.is_served():
            raise SystemExit(f"the plane did not start; see {self.log.name}")
        return self

    def is_served(self, **environment):
        """Starts the plane, and waits until it is served or has ended."""
        self.log = open(self.folder.parent / f"{self.folder.name}.log", "ab")
        self.process = subprocess.Popen(
            self.command("up", "--data-dir", self.folder / "data", "--listen", f"127.0.0.1:{servers.free_port()}",
                         "--container-runtime", self.engine, *self.flags), stdout=subprocess.PIPE, stderr=self.log, env={**os.environ, **environment})
        if not self.process.stdout.readline().startswith(b"export KUBECONFIG="):
            return False
        self.server = servers.Server("transom", self.folder / "data/kubeconfig")
        return True

    def request(self, method, path, body=None):
        connection = http.client.HTTPSConnection(self.server.host, timeout=30, context=self.server.tls)
        content = {"Content-Type": "application/apply-patch+yaml"} if body else {}
        connection.request(method, path, json.dumps(body) if body else None, {**self.server.headers(), **content})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if text.startswith(b"{") else text.decode()

    def apply(self, manifest):
        plural = {"Function": "functions", "Composition": "compositions", "CompositeResourceDefinition": "compositeresourcedefinitions", "Thing": "things",
                  "Provider": "providers", "ProviderConfig": "providerconfigs", "Object": "objects", "DeploymentRuntimeConfig": "deploymentruntimeconfigs"}
        path = f"/apis/{manifest['apiVersion']}/{plural[manifest['kind']]}/{manifest['metadata']['name']}?fieldManager=conformance&force=true"
        until(f"{path} is applied", lambda: self.request("PATCH", path, manifest)[0] in (200, 201))

    def condition(self, path, kind):
        conditions = self.request("GET", path)[1].get("status", {}).get("conditions", [])
        found = next((c for c in conditions if c["type"] == kind), {})
        return {"status": "", "message": "", **found}

    def until_true(self, path, kind):
        def is_true():
            return self.condition(path, kind)["status"] == "True"
        until(lambda: f"{path} is {kind}; it is {self.condition(path, kind)}", is_true)

    def revisions(self, name):
        """The messages of RuntimeHealthy of a Provider's revisions."""
        listed = self.request("GET", f"/apis/pkg.crossplane.io/v1/providerrevisions?labelSelector=pkg.crossplane.io/package={name}")[1]
        conditions = [c for item in listed["items"] for c in item.get("status", {}).get("conditions", [])]
        return [c.get("message", "") for c in conditions if c["type"] == "RuntimeHealthy"]

    def below(self):
        """The ids of all processes that come from the plane's."""
        parents = {}
        for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                parents[int(entry.parent.name)] = int(entry.read_text().rsplit(") ", 1)[1].split()[1])
        found, size = {self.process.pid}, 0
        while size != len(found):
            size = len(found)
            found |= {child for child, parent in parents.items() if parent in found}
        return found - {self.process.pid}

    def command_lines(self):
        """Those of all processes that come from the plane's."""
        for pid in self.below():
            with contextlib.suppress(OSError):
                yield pathlib.Path(f"/proc/{pid}/cmdline").read_text()

    def has_cgroups(self):
        """Whether there are cgroups of containers of this process."""
        return any(f"/transom-{self.process.pid}-" in path for path in all_cgroups())

    def logs(self, name, kind="function"):
        command = self.command(kind, "logs", name, "--data-dir", self.folder / "data")
        return subprocess.run(command, capture_output=True, text=True).stdout

    def end(self, how=signal.SIGTERM):
        """Ends the plane, and waits until nothing of it runs."""
        processes = self.below()
        self.process.send_signal(how)
        self.process.wait()
        until("nothing of the plane runs", lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in processes))


def until(what, is_true):
    deadline = time.monotonic() + WITHIN
    while not is_true():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {WITHIN} s: {what() if callable(what) else what}")
        time.sleep(0.05)


def all_cgroups():
    return {str(path) for path in pathlib.Path("/sys/fs/cgroup").glob("**/transom/transom-*")}


# Those of planes that were killed and never started again, as in tests of processes: the next start would remove them.
CGROUPS_BEFORE = all_cgroups()


def cgroups():
    """Those that were made since the suite began."""
    return sorted(all_cgroups() - CGROUPS_BEFORE)


def genuine(plane, packages):
    """Genuine functions make an XR ready, also after the plane was killed; what they answer is what they answer when they are run by hand."""
    genuines.genuine(sys.modules[__name__], plane, packages)


def killed(plane, packages):
    """Planes are killed at every step of the life of a function, and nothing is left after the next start."""
    kills.killed(sys.modules[__name__], plane, packages)


def render_commands(plane, packages, port):
    """Commands that render with the function from its package, and with one that runs already at a port."""
    files = plane.folder.parent / f"{plane.folder.name}-files"
    files.mkdir(exist_ok=True)
    go_templating = function("function-go-templating", "xpkg.crossplane.io/crossplane-contrib/function-go-templating:v0.11.0")
    by_hand = {"render.crossplane.io/runtime": "Development", "render.crossplane.io/runtime-development-target": f"127.0.0.1:{port}"}
    for name, content in (("xr", [thing("one")]), ("composition", [COMPOSITION]),
                          ("package", [go_templating, function(NAME, packages[NAME], **{"transom.io/runtime": "Package"})]),
                          ("by-hand", [go_templating, function(NAME, packages[NAME], **by_hand)])):
        (files / f"{name}.yaml").write_text("\n---\n".join(map(json.dumps, content)))
    files.chmod(0o755)
    return {functions: plane.command("render", files / "xr.yaml", files / "composition.yaml", files / f"{functions}.yaml",
                                     "-r", "-c", "--container-runtime", plane.engine) for functions in ("by-hand", "package")}


def hostile(plane, packages):
    """What hostile programs try fails and is named in a condition, and an XR beside them stays ready."""
    attempts.hostile(sys.modules[__name__], plane, packages)


def install_provider(plane, reference):
    """Installs provider-kubernetes from its package, and how it gets into the plane."""
    # Without the annotation, the provider of this name that comes with the binary would run.
    package = {"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": KUBERNETES, "annotations": {"transom.io/runtime": "Package"}}, "spec": {"package": reference}}
    plane.apply(package)
    plane.until_true(PROVIDER, "Healthy")
    plane.apply({"apiVersion": "kubernetes.crossplane.io/v1alpha1", "kind": "ProviderConfig", "metadata": {"name": "default"},
                 "spec": {"credentials": {"source": "InjectedIdentity"}}})
    return package


def is_made(plane, number):
    """The provider makes the object that an Object wants."""
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": f"made-{number}"}, "data": {"number": str(number)}}
    plane.apply({"apiVersion": "kubernetes.crossplane.io/v1alpha2", "kind": "Object", "metadata": {"name": f"object-{number}"},
                 "spec": {"forProvider": {"manifest": manifest}, "providerConfigRef": {"name": "default"}}})
    plane.until_true(f"/apis/kubernetes.crossplane.io/v1alpha2/objects/object-{number}", "Ready")
    assert plane.request("GET", f"/api/v1/namespaces/default/configmaps/made-{number}")[1]["data"] == {"number": str(number)}


def provider(plane, packages):
    """The genuine provider-kubernetes runs unchanged: it makes the object that an Object wants, again after the plane was
    killed, and nothing of it is left."""
    plane.start()
    name, path = KUBERNETES, PROVIDER
    package = install_provider(plane, packages[name])
    is_made(plane, 1)
    assert "provider-kubernetes" in plane.logs(name, "provider"), plane.logs(name, "provider")
    plane.end(signal.SIGKILL)
    plane.start()
    is_made(plane, 2)
    # Another runtime config starts it again with other arguments.
    plane.apply({"apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig", "metadata": {"name": "debug"}, "spec": {
        "deploymentTemplate": {"spec": {"replicas": 2, "selector": {}, "template": {"spec": {"containers": [{"name": "package-runtime", "args": ["--debug"]}]}}}}}})
    plane.apply({**package, "spec": {**package["spec"], "runtimeConfigRef": {"name": "debug"}}})
    until("it runs with --debug", lambda: any("--debug" in line for line in plane.command_lines()))
    until(lambda: f"what has no effect is named: {plane.revisions(name)}", lambda: any("deploymentTemplate.spec.replicas" in message for message in plane.revisions(name)))
    is_made(plane, 3)
    plane.request("DELETE", "/apis/kubernetes.crossplane.io/v1alpha2/objects/object-3")
    until("the object is deleted with its Object", lambda: plane.request("GET", "/api/v1/namespaces/default/configmaps/made-3")[0] == 404)
    plane.request("DELETE", path)
    until("it is stopped", lambda: not plane.below())
    plane.end()
    assert not list((plane.folder / "data/containers/run").iterdir()), "nothing is left"
    assert not cgroups(), cgroups()


def story(plane, packages):
    """Two genuine versions of a function serve at once, and XRs move from one to the other in waves, and back."""
    stories.story(sys.modules[__name__], plane, packages)


def by_crank(plane, packages):
    """A Function and a Provider that the original command line built and pushed, with images of umoci, are installed and called."""
    plane.start()
    plane.apply(function("function-go-templating", "xpkg.crossplane.io/crossplane-contrib/function-go-templating:v0.11.0"))
    plane.apply(function(NAME, packages[BY_CRANK + NAME], **{"transom.io/runtime": "Package"}))
    plane.apply(DEFINITION)
    plane.apply(COMPOSITION)
    plane.apply(thing("one"))
    plane.until_true("/apis/example.org/v1/things/one", "Ready")
    assert any(line.startswith("/function\0") for line in plane.command_lines()), list(plane.command_lines())
    install_provider(plane, packages[BY_CRANK + KUBERNETES])
    is_made(plane, 1)
    plane.end()
    assert not list((plane.folder / "data/containers/run").iterdir()), "nothing is left"
    assert not cgroups(), cgroups()


def elsewhere(folder):
    """Other OCI runtimes than runc, and runc with other cgroups, each if it works here by itself."""
    folder.mkdir()
    found = [(engine, layout) for engine in ("crun", "youki") if (layout := layouts.usable(engine, folder)) is not None]
    why = layouts.problem("runc", "v2", folder)
    if why is not None:
        print(f"runc with cgroups v2: not possible here: {why}", flush=True)
    return found + ([("runc", "v2")] if why is None else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", default="transom", help=argparse.SUPPRESS)
    parser.add_argument("--only", default="")
    parser.add_argument("--speed", action="store_true", help="measures instead, see speed.py")
    options = parser.parse_args()
    oci.programs("umoci", "skopeo", "runc")
    passed, failed = 0, []
    with servers.workspace("runtimes") as (folder, _), registries.start() as registry, socket.create_server(("127.0.0.1", 0)) as listener:
        folder.chmod(0o755)
        binary = shutil.copy(cargo.binary(), folder / "transom")
        secret = folder / "secret"
        secret.write_text("of the host")
        packages = Packages(binary, folder, registry, [f"127.0.0.1:{listener.getsockname()[1]}", str(secret), str(os.getpid())])
        if options.speed:
            plane = Plane(binary, folder / "speed", "root", "runc")
            package = function(NAME, packages[NAME], **{"transom.io/runtime": "Package"})
            return 0 if speed.measure(plane, NAME, package, lambda kind, port: render_commands(plane, packages, port)[kind]) else 1
        cases = [(case, user, engine, "") for case in (genuine, hostile, provider) for user in ("root", ORDINARY_USER) for engine in ("runc", "chroot")]
        cases += [(case, user, engine, "") for case in (story, by_crank) for user, engine in (("root", "runc"), (ORDINARY_USER, "chroot"))]
        # That of root lives beside those of ordinary users.
        cases += [(killed, "root", "runc", "")]
        cases += [(case, "root", engine, layout) for engine, layout in elsewhere(folder / "bare") for case in (genuine, hostile)]
        for case, user, engine, layout in cases:
            name = "-".join(filter(None, (case.__name__, "root" if user == "root" else "user", engine, layout)))
            if options.only not in name:
                continue
            plane = Plane(binary, folder / name, user, engine, layout=layout)
            try:
                case(plane, packages)
                passed += 1
                print(f"{name}: passed", flush=True)
            except (AssertionError, OSError, subprocess.SubprocessError) as error:
                failed.append(name)
                print(f"{name}: {error}", flush=True)
                plane.process.kill()
    print(f"runtimes: {passed} passed, {len(failed)} failed", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
