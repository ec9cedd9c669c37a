"""Runs container functions: programs of images that read and write a document.

Images are built with umoci, pushed to a real registry (distribution's) with skopeo, and run by `transom up`, `transom render`,
`transom xfn run` and `transom xfn start`, with Debian's runc and with namespaces without an OCI runtime, as root and as an ordinary user. Hostile
images try what they must not be able to do: each attempt is named in a condition within its timeout, and an XR beside them stays ready. Planes are killed
at every step of a run, and nothing is left after the next start. Registries want passwords. The runner of Crossplane v1.13.2 runs the same images with the same documents, and
the steps of our planes, see `original.py`. One pipeline has container functions and a genuine function from its package. The same with crun, and with
cgroups of one version, where that is possible. `--only WORD` picks cases whose name has the word.
Needs root; umoci, skopeo, busybox and runc are installed from the distribution's packages if they are missing.
"""

import argparse
import importlib.util
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
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "packages")]

import cargo  # noqa: E402
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
attempts = module("xfn_attempts", HERE / "attempts.py")
DEFINITION, ORDINARY_USER, Plane, until = runtimes.DEFINITION, runtimes.ORDINARY_USER, runtimes.Plane, runtimes.until
cgroups, function, thing, oci = runtimes.cgroups, runtimes.function, runtimes.thing, runtimes.oci

APPLETS = "sh cat sed awk head tail grep sleep nc kill ls wc tr mount unshare true mknod dd yes".split()
AUTO_READY = "xpkg.crossplane.io/crossplane-contrib/function-auto-ready:v0.7.0"
THING = "/apis/example.org/v1/things"


class Images:
    """Images of programs of busybox, which are built in one layout and pushed to one registry."""

    def __init__(self, folder, registry, binary):
        self.folder, self.registry, self.binary = folder, registry, binary
        self.layout = oci.Layout(folder / "layout")
        programs = folder / "base/bin"
        programs.mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), programs / "busybox")
        for applet in APPLETS:
            (programs / applet).symlink_to("busybox")
        self.layout.new("base")
        self.layout.insert("base", programs, "/bin")

    def build(self, name, script, arguments=(), layers=()):
        self.layout.tag("base", name)
        self.layout.insert(name, HERE / "images" / script, "/function.sh")
        for layer in layers:
            self.layout.add_layer(name, layer)
        words = [f"--config.cmd={word}" for word in ("/function.sh", *arguments)]
        return self.push(name, "--config.entrypoint=/bin/sh", *words)

    def echo(self):
        """A program that writes what it reads, with variables and a directory."""
        self.layout.tag("base", "echo")
        return self.push("echo", "--config.entrypoint=/bin/cat", "--config.cmd=-", "--config.env=COLOUR=red", "--config.env=EMPTY=", "--config.workingdir=/bin")

    def push(self, name, *config):
        self.layout.config(name, *config)
        reference = self.registry.reference(f"conformance/{name}:v1")
        self.layout.push(name, reference)
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


def rendered(plane, images, ready=None):
    files = plane.folder.parent / f"{plane.folder.name}-files"
    files.mkdir()
    files.chmod(0o755)
    (files / "xr.yaml").write_text(json.dumps(of("two", "mixed")))
    (files / "composition.yaml").write_text(json.dumps(compositions(images)[1]))
    (files / "functions.yaml").write_text(json.dumps(ready or function("function-auto-ready", AUTO_READY)))
    command = plane.command("render", files / "xr.yaml", files / "composition.yaml", files / "functions.yaml", "-o", "json",
                            "--container-runtime", plane.engine, *plane.flags)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '"colour": "red"' in done.stdout and '"from": "list"' in done.stdout, done.stdout


def beside(plane, images):
    """One pipeline has container functions and a genuine function, which runs from its package and is called over gRPC."""
    plane.start()
    plane.apply(DEFINITION)
    plane.apply(genuine(images))
    path = f"/apis/pkg.crossplane.io/v1/functions/{runtimes.NAME}"
    plane.until_true(path, "Healthy")
    revision = plane.request("GET", path)[1]["status"]["currentRevision"]
    endpoint = plane.request("GET", f"/apis/pkg.crossplane.io/v1/functionrevisions/{revision}")[1]["status"]["endpoint"]
    assert endpoint == f"container:{revision}", endpoint
    assert any(line.split("\0")[:2] == ["/function", "--insecure"] for line in plane.command_lines()), list(plane.command_lines())
    plane.apply(compositions(images)[1])
    plane.apply(of("two", "mixed"))
    expected = {"sized": SIZED, "listed": {"from": "list"}}
    until(lambda: f"two has {expected}; it has {maps(plane, 'two')}, and is {plane.condition(f'{THING}/two', 'Synced')}", lambda: maps(plane, "two") == expected)
    # What `listed` is ready by: a container function says nothing about that.
    plane.until_true(f"{THING}/two", "Ready")
    without = compositions(images)[1]
    without["spec"]["pipeline"] = without["spec"]["pipeline"][:2]
    plane.apply(without)
    until("without the genuine function it is not ready", lambda: plane.condition(f"{THING}/two", "Ready")["status"] == "False")
    plane.end()
    nothing_left(plane)
    rendered(plane, images, genuine(images))


def genuine(images):
    """The genuine function from its package, which is made and pushed when it is first asked for."""
    return function(runtimes.NAME, images["packages"][runtimes.NAME], **{"transom.io/runtime": "Package"})


def nothing_left(plane):
    run = plane.folder / "data/containers/run"
    assert not run.exists() or not list(run.iterdir()), list(run.iterdir())
    assert not cgroups(), cgroups()
    mounts = pathlib.Path("/proc/mounts").read_text()
    assert str(plane.folder) not in mounts, mounts


def hostile(plane, images):
    """Each attempt fails and is named, within its timeout, and another XR stays ready."""
    attempts.hostile(sys.modules[__name__], plane, images)


def layers(plane, images):
    """Links, devices and whiteouts in layers neither read nor change what is outside of the image."""
    attempts.layers(sys.modules[__name__], plane, images)


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
    why = "there are no cgroups for memory, cpu, pids" if plane.layout else "only root can create cgroups"
    start(plane)
    plane.apply(compositions(images)[1])
    plane.apply(of("two", "mixed"))
    until(lambda: f"the reason is named: {plane.condition(f'{THING}/two', 'Synced')}",
          lambda: f"cannot be enforced here: {why}" in plane.condition(f"{THING}/two", "Synced")["message"])
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
    sides = speed.originals.compare(plane.folder, plane.binary, images)
    speed.originals.runs_our_steps(sys.modules[__name__], sides, plane, images)
    nothing_left(plane)


def build(images, folder, listener):
    outside = folder / "outside"
    outside.mkdir()
    secret = outside / "secret"
    secret.write_text("of the host")
    packages = runtimes.Packages(images.binary, folder, images.registry, [])
    built = {"packages": packages, "label": images.build("label", "label.sh"), "echo": images.echo(), "list": images.build("list", "list.sh"), "request": images.build("request", "request.sh"), "outside": outside, "images": images}
    for mode in attempts.NAMED:
        built[f"hostile-{mode}"] = images.build(f"hostile-{mode}", "hostile.sh", (mode, "127.0.0.1", listener, str(secret), str(os.getpid())))
    built["closed"] = built["hostile-closed"]
    for trick, archives in attempts.tricks(folder, outside).items():
        built[f"trick-{trick}"] = images.build(f"trick-{trick}", "hostile.sh", ("files", "127.0.0.1", listener, "/leak", "1"), archives)
    return built


def elsewhere(folder):
    """Cases with other OCI runtimes, and with cgroups as other machines have them mounted, where these work here by themselves. Those of version 2
    have no controllers then, so that limits cannot be enforced."""
    cases = []
    for engine, layout in runtimes.elsewhere(folder):
        cases += [(case, "root", engine, layout) for case in ((unenforced,) if layout == "v2" else (composes, hostile))]
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", default="transom", help=argparse.SUPPRESS)
    parser.add_argument("--only", default="")
    parser.add_argument("--speed", action="store_true", help="measures instead, see speed.py")
    options = parser.parse_args()
    oci.programs()
    passed, failed = 0, []
    with servers.workspace("xfn") as (folder, _), registries.start() as registry, socket.create_server(("127.0.0.1", 0)) as listener:
        folder.chmod(0o755)
        binary = shutil.copy(cargo.binary(), folder / "transom")
        built = Images(folder, registry, binary)
        if options.speed:
            return 0 if speed.measure(binary, folder, built, built.build("label", "label.sh")) else 1
        images = build(built, folder, str(listener.getsockname()[1]))
        users = [("root", "runc"), ("root", "chroot"), (ORDINARY_USER, "runc"), (ORDINARY_USER, "chroot")]
        cases = [(case, user, engine) for case in (composes, hostile, killed, killed_at_every_step, runner) for user, engine in users]
        cases += [(case, user, engine) for case in (pull_secrets, network) for user, engine in (("root", "runc"), (ORDINARY_USER, "chroot"))]
        cases += [(adapted, "root", "runc"), (adapted, ORDINARY_USER, "chroot"), (original, "root", "runc"), (layers, "root", "runc"), (layers, ORDINARY_USER, "chroot"), (unenforced, ORDINARY_USER, "runc")]
        cases += [(beside, "root", "runc"), (beside, ORDINARY_USER, "chroot")]
        cases = [(*case, "") for case in cases] + elsewhere(folder / "bare")
        for case, user, engine, layout in cases:
            name = "-".join(filter(None, (case.__name__, "root" if user == "root" else "user", engine, layout)))
            if options.only not in name:
                continue
            # Ordinary users may not make cgroups.
            plane = Plane(binary, folder / name, user, engine, () if user == "root" else ("--accept-unenforced-limits",), layout)
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
