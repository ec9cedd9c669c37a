"""Runs container functions: programs of images that read and write a document.

Images are built with umoci, pushed to a real registry (distribution's) with skopeo, and run by `transom up`, `transom render`,
`transom xfn run` and `transom xfn start`, with Debian's runc and with namespaces without an OCI runtime, as root and as an ordinary user. Hostile
images try what they must not be able to do: each attempt is named in a condition, and no other XR is affected. Planes are killed
at every step of a run, and nothing is left after the next start. Registries want passwords. The runner of Crossplane v1.13.2 runs the same images with the same documents, see
`original.py`. `--only WORD` picks cases whose name has the word.
Needs root; umoci, skopeo, busybox and runc are installed from the distribution's packages if they are missing.
"""

import argparse
import importlib.util
import io
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "packages")]

import cargo  # noqa: E402
import install  # noqa: E402
import registry as registries  # noqa: E402
import servers  # noqa: E402


def module(name, path):
    """Several suites have files of the same name."""
    spec = importlib.util.spec_from_file_location(name, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


runtimes = module("runtimes", HERE.parent / "runtimes/suite.py")
speed = module("xfn_speed", HERE / "speed.py")
access = module("xfn_access", HERE / "access.py")
steps = module("xfn_steps", HERE / "steps.py")
DEFINITION, ORDINARY_USER, Plane, until = runtimes.DEFINITION, runtimes.ORDINARY_USER, runtimes.Plane, runtimes.until
cgroups, function, thing = runtimes.cgroups, runtimes.function, runtimes.thing

PROGRAMS = {"umoci": "umoci", "skopeo": "skopeo", "busybox": "busybox-static", "runc": "runc"}
APPLETS = "sh cat sed awk head tail grep sleep nc kill ls wc tr mount unshare true mknod dd yes".split()
AUTO_READY = "xpkg.crossplane.io/crossplane-contrib/function-auto-ready:v0.7.0"
THING = "/apis/example.org/v1/things"
# What the condition of an XR with a hostile function says: with cgroups, and without.
NAMED = {
    "network": ("network: refused",), "files": ("files: refused",), "processes": ("processes: refused",), "proc": ("proc: refused",),
    "fork": ("limit of 512 processes", "limit of memory", "can't fork", "Resource temporarily unavailable", "did not end within"),
    "memory": ("limit of memory", "memory exhausted", "out of memory"), "cpu": ("did not end within 3 s",), "disk": ("No space left on device",),
    "stderr": ("more than 1048576 bytes to standard error",), "stdout": ("more than 67108864 bytes to standard output", "did not end within"),
    "stdin": ("did not end within 3 s",), "closed": ("its output is not a FunctionIO: it is empty",),
    "term": ("did not end within 3 s",), "daemon": ("did not end within 3 s",),
}


def programs():
    missing = [package for program, package in PROGRAMS.items() if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin")]
    if missing:
        install.debian(*missing)


class Images:
    """Images that umoci builds in an OCI layout, and skopeo pushes."""

    def __init__(self, folder, registry):
        self.folder, self.registry, self.layout = folder, registry, folder / "layout"
        self.umoci("init", "--layout", self.layout)
        programs = folder / "base/bin"
        programs.mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), programs / "busybox")
        for applet in APPLETS:
            (programs / applet).symlink_to("busybox")
        self.umoci("new", "--image", f"{self.layout}:base")
        self.add(f"{self.layout}:base", programs, "bin")

    @staticmethod
    def umoci(*arguments):
        subprocess.run(["umoci", *map(str, arguments)], check=True, capture_output=True)

    def add(self, image, path, inside):
        """Adds a file or folder as a layer."""
        layer = self.folder / "layer.tar"
        with tarfile.open(layer, "w") as archive:
            archive.add(path, inside)
        self.umoci("raw", "add-layer", "--image", image, layer)

    def build(self, name, script, arguments=(), layers=()):
        image = f"{self.layout}:{name}"
        self.umoci("tag", "--image", f"{self.layout}:base", name)
        self.add(image, HERE / "images" / script, "function.sh")
        for layer in layers:
            self.umoci("raw", "add-layer", "--image", image, layer)
        words = [f"--config.cmd={word}" for word in ("/function.sh", *arguments)]
        return self.push(name, "--config.entrypoint=/bin/sh", *words)

    def echo(self):
        """A program that writes what it reads, with variables and a directory."""
        self.umoci("tag", "--image", f"{self.layout}:base", "echo")
        return self.push("echo", "--config.entrypoint=/bin/cat", "--config.cmd=-", "--config.env=COLOUR=red", "--config.env=EMPTY=", "--config.workingdir=/bin")

    def push(self, name, *config):
        image = f"{self.layout}:{name}"
        self.umoci("config", "--image", image, *config)
        reference = self.registry.reference(f"conformance/{name}:v1")
        subprocess.run(["skopeo", "copy", "--dest-tls-verify=false", f"oci:{image}", f"docker://{reference}"], check=True, capture_output=True)
        return reference


def inline(image, timeout="20s", **more):
    return {"type": "Container", "container": {"image": image, "timeout": timeout}, **more}


def composition(name, spec):
    kind = {"apiVersion": "example.org/v1", "kind": "Thing"}
    return {"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": name, "labels": {"case": name}},
            "spec": {"compositeTypeRef": kind, **spec}}


def of(name, case):
    return {**thing(name), "spec": {"size": 7, "crossplane": {"compositionSelector": {"matchLabels": {"case": case}}}}}


CONFIG = {"apiVersion": "example.org/v1", "kind": "Config", "colour": "red"}
TEMPLATE = {"name": "first", "base": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"}, "data": {"a": "b"}},
            "readinessChecks": [{"type": "None"}]}


def compositions(images):
    """One of mode Resources with functions, and one pipeline that mixes functions of both kinds."""
    by_list = {**inline(images["list"]), "io": "ResourceList"}
    return [
        composition("functions", {"mode": "Resources", "resources": [TEMPLATE], "functions": [
            {"name": "label", "config": CONFIG, **inline(images["label"])}, {"name": "list", **by_list}]}),
        composition("mixed", {"mode": "Pipeline", "pipeline": [
            {"step": "label", "inline": inline(images["label"]), "input": CONFIG},
            {"step": "chroot", "inline": {**by_list, "type": "Chroot"}},
            {"step": "ready", "functionRef": {"name": "function-auto-ready"}}]}),
    ]


def start(plane):
    plane.start()
    plane.apply(function("function-auto-ready", AUTO_READY))
    plane.apply(DEFINITION)


def maps(plane, name):
    found = plane.request("GET", "/api/v1/namespaces/default/configmaps")[1]["items"]
    owned = [item for item in found if any(owner["name"] == name for owner in item["metadata"].get("ownerReferences", []))]
    return {item["metadata"]["annotations"]["crossplane.io/composition-resource-name"]: item["data"] for item in owned}


SIZED = {"size": "7", "colour": "red"}


def composes(plane, images):
    """XRs of both Compositions are ready, with what every function wants; the second time, too; and render gives the same."""
    start(plane)
    for manifest in compositions(images):
        plane.apply(manifest)
    plane.apply(of("one", "functions"))
    plane.apply(of("two", "mixed"))
    for name, expected in (("one", {"first": {"a": "b"}, "sized": SIZED, "listed": {"from": "list"}}), ("two", {"sized": SIZED, "listed": {"from": "list"}})):
        until(lambda: f"{name} has {expected}; it has {maps(plane, name)}, and is {plane.condition(f'{THING}/{name}', 'Synced')}", lambda: maps(plane, name) == expected)
    plane.until_true(f"{THING}/two", "Synced")
    changed = of("one", "functions")
    changed["spec"]["size"] = 8
    plane.apply(changed)
    until(lambda: f"the change arrives: {maps(plane, 'one')}", lambda: maps(plane, "one").get("sized", {}).get("size") == "8")
    # A function that no longer wants a resource deletes it, and one that fails deletes nothing.
    without = compositions(images)[0]
    without["spec"]["functions"] = without["spec"]["functions"][:1]
    plane.apply(without)
    until(lambda: f"the resource is deleted: {maps(plane, 'one')}", lambda: set(maps(plane, "one")) == {"first", "sized"})
    without["spec"]["functions"][0]["container"]["image"] = images["closed"]
    plane.apply(without)
    until("the function fails", lambda: "is empty" in plane.condition(f"{THING}/one", "Synced")["message"])
    assert set(maps(plane, "one")) == {"first", "sized"}, "nothing is deleted"
    plane.end()
    nothing_left(plane)
    rendered(plane, images)


def rendered(plane, images):
    files = plane.folder.parent / f"{plane.folder.name}-files"
    files.mkdir()
    files.chmod(0o755)
    (files / "xr.yaml").write_text(json.dumps(of("two", "mixed")))
    (files / "composition.yaml").write_text(json.dumps(compositions(images)[1]))
    (files / "functions.yaml").write_text(json.dumps(function("function-auto-ready", AUTO_READY)))
    command = plane.command("render", files / "xr.yaml", files / "composition.yaml", files / "functions.yaml", "-o", "json",
                            "--container-runtime", plane.engine, *plane.flags)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '"colour": "red"' in done.stdout and '"from": "list"' in done.stdout, done.stdout


def nothing_left(plane):
    run = plane.folder / "data/containers/run"
    assert not run.exists() or not list(run.iterdir()), list(run.iterdir())
    assert not cgroups(), cgroups()
    mounts = pathlib.Path("/proc/mounts").read_text()
    assert str(plane.folder) not in mounts, mounts


def hostile(plane, images):
    """Each attempt fails and is named, within its timeout, and another XR is composed meanwhile."""
    start(plane)
    for mode in NAMED:
        spec = {"mode": "Pipeline", "pipeline": [{"step": mode, "inline": inline(images[f"hostile-{mode}"], "3s")}]}
        if mode == "stdin":
            spec["pipeline"][0]["input"] = {**CONFIG, "large": "x" * 500_000}
        plane.apply(composition(mode, spec))
        plane.apply(of(f"hostile-{mode}", mode))
    plane.apply(compositions(images)[1])
    plane.apply(of("two", "mixed"))
    until(lambda: f"the other XR is composed: {plane.condition(f'{THING}/two', 'Synced')}", lambda: maps(plane, "two").get("sized") == SIZED)
    for mode, words in NAMED.items():
        def message():
            return plane.condition(f"{THING}/hostile-{mode}", "Synced")["message"]
        until(lambda: f"{mode} is named by one of {words}: {message()!r}", lambda: any(word in message() for word in words))
        assert "SUCCEEDED" not in message(), message()
    plane.end()
    nothing_left(plane)


def layers(plane, images):
    """Links, devices and whiteouts in layers neither read nor change what is outside of the image."""
    start(plane)
    outside = images["outside"]
    for trick in ("symlink", "hardlink", "device", "whiteout"):
        plane.apply(composition(trick, {"mode": "Pipeline", "pipeline": [{"step": trick, "inline": inline(images[f"trick-{trick}"], "5s")}]}))
        plane.apply(of(f"trick-{trick}", trick))
    for trick in ("symlink", "hardlink", "device", "whiteout"):
        condition = lambda: plane.condition(f"{THING}/trick-{trick}", "Synced")  # noqa: E731
        until(f"{trick} is decided", lambda: condition()["status"] != "")
        message = condition()["message"]
        assert condition()["status"] == "False" and "SUCCEEDED" not in message, message
        assert sorted(path.name for path in outside.iterdir()) == ["secret"], list(outside.iterdir())
        assert (outside / "secret").read_text() == "of the host"
        print(f"  {trick}: {condition()['status']} {message[:160]}", flush=True)
    plane.end()
    nothing_left(plane)


def killed(plane, images):
    """A plane that is killed while functions run leaves nothing after the next start."""
    plane.start()
    plane.apply(DEFINITION)
    plane.apply(composition("slow", {"mode": "Pipeline", "pipeline": [{"step": "slow", "inline": inline(images["hostile-stdin"], "20s")}]}))
    plane.apply(of("slow", "slow"))
    for moment in range(12):
        # From before the image is pulled to long after the program has started.
        time.sleep(moment * 0.05)
        plane.end(signal.SIGKILL)
        plane.start()
        sessions = [path.name for path in (plane.folder / "data/containers/run").iterdir()] if (plane.folder / "data/containers/run").exists() else []
        assert len(sessions) <= 2, sessions
    until("the function runs", lambda: plane.below())
    plane.end(signal.SIGKILL)
    plane.start()
    plane.request("DELETE", f"{THING}/slow")
    plane.end()
    nothing_left(plane)


def runner(plane, images):
    """A runner serves Crossplane's protocol, a step uses it, and `xfn run` runs a function by hand."""
    address = f"unix:{plane.folder}/runner.sock"
    command = plane.command("xfn", "start", "--address", address, "--cache-dir", plane.folder / "runner", "--container-runtime", plane.engine, *plane.flags)
    served = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        until("the runner is served", lambda: (plane.folder / "runner.sock").exists())
        start(plane)
        step = inline(images["label"])
        step["container"]["runner"] = {"endpoint": address}
        plane.apply(composition("elsewhere", {"mode": "Pipeline", "pipeline": [{"step": "label", "inline": step, "input": CONFIG}]}))
        plane.apply(of("one", "elsewhere"))
        until(lambda: f"the runner's answer arrives: {plane.condition(f'{THING}/one', 'Synced')}", lambda: maps(plane, "one") == {"sized": SIZED})
        plane.end()
    finally:
        served.terminate()
        served.wait()
    nothing_left(plane)
    by_hand(plane, images)


DOCUMENT = "config:\n  colour: blue\nobserved:\n  composite:\n    resource:\n      spec:\n        size: 3\ndesired:\n  resources: []\n"


def by_hand(plane, images):
    def run(image, *flags):
        command = plane.command("xfn", "run", image, "-", "--container-runtime", plane.engine, *plane.flags, *flags)
        return subprocess.run(command, input=DOCUMENT, capture_output=True, text=True)
    done = run(images["label"])
    assert done.returncode == 0 and 'data: {size: "3", colour: "blue"}' in done.stdout, done
    again = run(images["label"], "--image-pull-policy", "Never")
    assert again.stdout == done.stdout, again
    failed = run(images["hostile-cpu"], "--timeout", "1s")
    assert failed.returncode == 1 and "did not end within 1 s" in failed.stderr and not failed.stdout, failed


def unenforced(plane, images):
    """Where limits cannot be enforced, the step fails with the reason, unless that is accepted."""
    plane.flags = ()
    start(plane)
    plane.apply(compositions(images)[1])
    plane.apply(of("two", "mixed"))
    until(lambda: f"the reason is named: {plane.condition(f'{THING}/two', 'Synced')}",
          lambda: "cannot be enforced here" in plane.condition(f"{THING}/two", "Synced")["message"])
    plane.end()
    nothing_left(plane)


def adapted(plane, images):
    """A container function becomes the package of a function, which is pushed, installed, and composes the same."""
    project = plane.folder / "function-adapted"
    (project / "package").mkdir(parents=True)
    (project / "package/crossplane.yaml").write_text(runtimes.META.replace("NAME", project.name))
    adapt(plane, project, images["label"], "adapted.xpkg")
    by_request(plane, project, images)
    reference = f"{images['label'].split('/')[0]}/conformance/function-adapted:v1"
    pushed = subprocess.run(plane.command("function", "push", reference, "-f", plane.folder / "adapted.xpkg"), capture_output=True, text=True)
    assert pushed.returncode == 0, pushed.stderr
    start(plane)
    plane.apply(function(project.name, reference))
    plane.until_true(f"/apis/pkg.crossplane.io/v1/functions/{project.name}", "Healthy")
    plane.apply(composition("adapted", {"mode": "Pipeline", "pipeline": [
        {"step": "label", "functionRef": {"name": project.name}, "input": CONFIG}, {"step": "ready", "functionRef": {"name": "function-auto-ready"}}]}))
    plane.apply(of("one", "adapted"))
    until(lambda: f"the adapted function composes: {maps(plane, 'one')}, {plane.condition(f'{THING}/one', 'Synced')}", lambda: maps(plane, "one") == {"sized": SIZED})
    plane.end()
    nothing_left(plane)


def adapt(plane, project, reference, package, *flags):
    image = plane.folder / f"{package}.tar"
    subprocess.run(["skopeo", "copy", "--src-tls-verify=false", f"docker://{reference}", f"docker-archive:{image}:image:v1"], check=True, capture_output=True)
    made = subprocess.run(plane.command("function", "adapt", project, "--from-oci-tarball", image, "-o", plane.folder / package, *flags), capture_output=True, text=True)
    assert made.returncode == 0, made.stderr


def by_request(plane, project, images):
    """A program that reads and writes the protocol's own messages."""
    adapt(plane, project, images["request"], "by-request.xpkg", "--io", "Request")
    request = project / "request.yaml"
    request.write_text(json.dumps({"observed": {"composite": {"resource": of("one", "adapted")}}}))
    answered = subprocess.run(plane.command("function", "test", plane.folder / "by-request.xpkg", request, "--container-runtime", plane.engine), capture_output=True, text=True)
    assert answered.returncode == 0 and 'size: "7"' in answered.stdout, answered


def killed_at_every_step(plane, images):
    """Whatever is killed at whichever step of a run, nothing is left after the next start."""
    steps.killed_at_every_step(sys.modules[__name__], plane, images)
    nothing_left(plane)


def pull_secrets(plane, images):
    access.pull_secrets(sys.modules[__name__], plane, images)


def network(plane, images):
    access.network(sys.modules[__name__], plane, images)


def original(plane, images):
    """The original runner and ours give the same for the same, and ours allows no more."""
    speed.originals.compare(plane.folder, plane.binary, images)
    nothing_left(plane)


def tricks(folder, outside):
    """Layers that try to reach a folder of the host: each is a list of archives."""
    def layer(name, *entries):
        path = folder / f"{name}.tar"
        with tarfile.open(path, "w") as archive:
            for entry, content in entries:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        return path

    def entry(name, kind=tarfile.REGTYPE, target="", content=b""):
        made = tarfile.TarInfo(name)
        made.type, made.linkname, made.mode = kind, target, 0o755
        made.devmajor, made.devminor = 8, 0
        return made, content
    up = "../" * 12
    return {
        "symlink": [layer("symlink-1", entry("etc", tarfile.SYMTYPE, str(outside))), layer("symlink-2", entry("etc/pwned", content=b"x"))],
        "hardlink": [layer("hardlink", entry("leak", tarfile.LNKTYPE, f"{up}{outside}/secret"))],
        "device": [layer("device", entry("dev-sda", tarfile.BLKTYPE))],
        "whiteout": [layer("whiteout-1", entry("out", tarfile.SYMTYPE, str(outside))), layer("whiteout-2", entry("out/.wh.secret"), entry(f"{up}{outside}/.wh.secret".lstrip("/")))],
    }


def build(images, folder, listener):
    outside = folder / "outside"
    outside.mkdir()
    secret = outside / "secret"
    secret.write_text("of the host")
    built = {"label": images.build("label", "label.sh"), "echo": images.echo(), "list": images.build("list", "list.sh"), "request": images.build("request", "request.sh"), "outside": outside, "images": images}
    for mode in NAMED:
        built[f"hostile-{mode}"] = images.build(f"hostile-{mode}", "hostile.sh", (mode, "127.0.0.1", listener, str(secret), str(os.getpid())))
    built["closed"] = built["hostile-closed"]
    for trick, archives in tricks(folder, outside).items():
        built[f"trick-{trick}"] = images.build(f"trick-{trick}", "hostile.sh", ("files", "127.0.0.1", listener, "/leak", "1"), archives)
    return built


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", default="transom", help=argparse.SUPPRESS)
    parser.add_argument("--only", default="")
    parser.add_argument("--speed", action="store_true", help="measures instead, see speed.py")
    options = parser.parse_args()
    programs()
    passed, failed = 0, []
    with servers.workspace("xfn") as (folder, _), registries.start() as registry, socket.create_server(("127.0.0.1", 0)) as listener:
        folder.chmod(0o755)
        binary = shutil.copy(cargo.binary(), folder / "transom")
        built = Images(folder, registry)
        if options.speed:
            return 0 if speed.measure(binary, folder, built, built.build("label", "label.sh")) else 1
        images = build(built, folder, str(listener.getsockname()[1]))
        users = [("root", "runc"), ("root", "chroot"), (ORDINARY_USER, "runc"), (ORDINARY_USER, "chroot")]
        cases = [(case, user, engine) for case in (composes, hostile, killed, killed_at_every_step, runner) for user, engine in users]
        cases += [(case, user, engine) for case in (pull_secrets, network) for user, engine in (("root", "runc"), (ORDINARY_USER, "chroot"))]
        cases += [(adapted, "root", "runc"), (adapted, ORDINARY_USER, "chroot"), (original, "root", "runc"), (layers, "root", "runc"), (layers, ORDINARY_USER, "chroot"), (unenforced, ORDINARY_USER, "runc")]
        for case, user, engine in cases:
            name = f"{case.__name__}-{'root' if user == 'root' else 'user'}-{engine}"
            if options.only not in name:
                continue
            # Ordinary users may not make cgroups.
            plane = Plane(binary, folder / name, user, engine, () if user == "root" else ("--accept-unenforced-limits",))
            try:
                case(plane, images)
                passed += 1
                print(f"{name}: passed", flush=True)
            except (AssertionError, OSError, subprocess.SubprocessError) as error:
                failed.append(name)
                print(f"{name}: {error}", flush=True)
                if getattr(plane, "process", None):
                    plane.process.kill()
    print(f"xfn: {passed} passed, {len(failed)} failed", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
