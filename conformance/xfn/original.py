"""Compares with the original runner, `xfn run` of Crossplane v1.13.2: what programs read, what comes back, and how their containers are
configured. Both sides run the same images with Debian's runc, started by a script that keeps the bundle's `config.json`. The original also runs
steps of our plane: `xfn start` is their `runner.endpoint`, so our client of its protocol meets a genuine server.

The original wants crun, which does not work with every layout of cgroups. In the user namespace that it makes, runc may not limit anything
there, so the script removes the limits from its bundle before runc reads it; they are compared as they were.
"""

import json
import os
import random
import shutil
import subprocess

import install

DOCUMENTS = 40
KEPT, LIMITED = "kept.json", "limited"
# Of the original's bundles, as Go's encoder writes them: the last of the limits is that of processes.
LIMITS = r'"resources":{"devices":\[{"allow":false,"access":"rwm"}\].*"pids":{"limit":32768}},'
# What the cgroup of one of our containers limits, in a line for each file. The id of the container is the last argument.
CGROUPS = """for word; do id=$word; done
for file in memory.limit_in_bytes cpu.cfs_quota_us pids.max memory.max cpu.max; do
  for path in /sys/fs/cgroup/transom/$id/$file /sys/fs/cgroup/*/transom/$id/$file; do [ -r $path ] && echo "$file $(cat $path)"; done
done"""
# Settings of a step: the network, and limits of processors and memory.
SETTINGS = (("Isolated", None, None), ("Runner", "250m", "96Mi"), ("Isolated", "1500m", "200M"))
DEFAULTS = ("100m", "128Mi")
WORDS = ["a", "Thing", "größe", "日本", "true", "0x1F", "1e3", "~", "", "- x", "a: b", "#", "'", '"', "\t", "🙂", "null"]


def script(path, *lines):
    path.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
    path.chmod(0o755)
    return path


class Sides:
    """The commands of both sides."""

    def __init__(self, folder, binary):
        self.folder, self.binary, self.xfn = folder, binary, install.xfn()
        runc = shutil.which("runc", path=os.environ["PATH"] + ":/usr/sbin")
        for side in ("original", "ours"):
            (folder / side).mkdir()
            (folder / side).chmod(0o777)
        folder.chmod(0o755)
        script(folder / "original/crun", 'for word; do case $word in --bundle=*) bundle=${word#--bundle=} ;; esac; done',
               f'cp "$bundle/config.json" {folder}/original/{KEPT}', f"sed -i 's/{LIMITS}//' \"$bundle/config.json\"", f'exec {runc} --rootless true "$@"')
        cgroups = f"{{ {CGROUPS}\n}} > {folder}/ours/{LIMITED}"
        script(folder / "ours/runc", f'for word; do [ -f "$word/config.json" ] && cp "$word/config.json" {folder}/ours/{KEPT}; done', cgroups, f'exec {runc} "$@"')

    def with_crun(self, command):
        """A command of the original, which finds our script."""
        return ["env", f"PATH={self.folder}/original:{os.environ['PATH']}", *command]

    def commands(self, image, document):
        return {
            "original": [*self.with_crun([self.xfn]), "run", "--cache-dir", self.folder / "original", image, document],
            "ours": [self.binary, "xfn", "run", image, document, "--cache-dir", self.folder / "ours/cache", "--container-runtime", self.folder / "ours/runc"],
        }

    def run(self, image, content):
        """The exit codes and outputs of both sides, by side."""
        document = self.folder / "document.yaml"
        document.write_bytes(content)
        return {side: subprocess.run(command, capture_output=True) for side, command in self.commands(image, document).items()}

    def config(self, side):
        return json.loads((self.folder / side / KEPT).read_text())


def value(chance, depth):
    kind = chance.randrange(5 if depth else 3)
    if kind == 0:
        return chance.choice(WORDS)
    if kind == 1:
        return chance.choice([0, -1, 2**53 + 1, 1.5, True, None])
    if kind == 2:
        return "".join(chance.choice(WORDS) for _ in range(chance.randrange(20)))
    if kind == 3:
        return [value(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {f"{chance.choice(WORDS)}{index}": value(chance, depth - 1) for index in range(chance.randrange(4))}


def function_io(chance):
    """A FunctionIO as a document of one of several styles: YAML contains JSON."""
    def resource(index):
        return {"name": f"r{index}", "resource": {"apiVersion": "v1", "kind": "ConfigMap", "data": value(chance, 2)}}
    document = {"config": value(chance, 3), "observed": {"composite": {"resource": {"spec": {"size": chance.randrange(9), "more": value(chance, 4)}}}},
                "desired": {"resources": [resource(index) for index in range(chance.randrange(30))]}}
    text = json.dumps(document, ensure_ascii=chance.random() < 0.5, indent=chance.choice([None, 2]))
    return (text + chance.choice(["", "\n", "\n\n"])).encode()


def documents(chance, count):
    yield b""
    yield b"\xff\x00\xfe not text"
    yield b"x" * (3 << 20)
    for _ in range(count - 3):
        yield function_io(chance)


def compare(folder, binary, images, seed=1, count=DOCUMENTS):
    sides = Sides(folder, binary)
    same_documents(sides, images, random.Random(seed), count)
    same_failures(sides, images)
    tighter_configuration(sides, images)
    return sides


def same_documents(sides, images, chance, count):
    """Programs read what was given, and what they write comes back, byte for byte."""
    for number, content in enumerate(documents(chance, count)):
        image = images["echo"] if number % 2 or number < 3 else images["label"]
        ended = sides.run(image, content)
        original, ours = ended["original"], ended["ours"]
        assert original.returncode == 0, original.stderr
        assert ours.returncode == 0, ours.stderr
        assert ours.stdout == original.stdout, (number, content[:500], original.stdout[:500], ours.stdout[:500])
        if image == images["echo"]:
            assert ours.stdout == content, number


def same_failures(sides, images):
    """A program that fails has no output on either side. We also show what it wrote to standard error."""
    for name in ("hostile-network", "hostile-files"):
        ended = sides.run(images[name], b"{}\n")
        for side, done in ended.items():
            assert done.returncode != 0 and not done.stdout, (side, done)
        assert b"refused" in ended["ours"].stderr, ended


def tighter_configuration(sides, images):
    """The program, its variables and its directory are the same; nothing is allowed that the original does not allow."""
    sides.run(images["echo"], b"{}\n")
    same_process(sides)
    nothing_more(sides)


def same_process(sides):
    original, ours = sides.config("original"), sides.config("ours")
    theirs, own = original["process"], ours["process"]
    assert own["args"] == theirs["args"], (own, theirs)
    assert own["cwd"] == theirs["cwd"], (own, theirs)
    # The last of several variables of a name counts.
    variables = [dict(variable.split("=", 1) for variable in process["env"]) for process in (own, theirs)]
    assert variables[0] == variables[1], variables
    assert ours["hostname"] == original["hostname"], (ours["hostname"], original["hostname"])


def nothing_more(sides):
    original, ours = sides.config("original"), sides.config("ours")
    theirs, own = original["process"], ours["process"]
    assert own["noNewPrivileges"] and not theirs.get("noNewPrivileges"), "none can be gained, which the original did not say"
    for kind, capabilities in own["capabilities"].items():
        assert set(capabilities) <= set(theirs["capabilities"].get(kind, [])), kind
    most = [{limit["type"]: limit["hard"] for limit in process["rlimits"]} for process in (own, theirs)]
    assert all(most[0][kind] <= limit for kind, limit in most[1].items()), most
    assert ours["root"]["readonly"] and original["root"]["readonly"]
    mounts = [{mount["destination"]: mount for mount in config["mounts"]} for config in (ours, original)]
    # Shared memory of 16 MiB is ours alone: the original's is a part of /dev, which has 64 MiB.
    assert set(mounts[0]) - {"/dev/shm"} <= set(mounts[1]), [sorted(each) for each in mounts]
    # With the network of the machine, the file that names are resolved with.
    bound = [{path for path, mount in side.items() if mount["type"] == "bind" and path.startswith("/etc")} for side in mounts]
    assert bound[0] == bound[1], bound
    assert not [path for path, mount in mounts[0].items() if mount["type"] == "bind" and path not in bound[0]], "nothing else of the machine is mounted"
    # /sys is not mounted at all.
    hidden = [path for path in original["linux"]["maskedPaths"] if not path.startswith("/sys/")]
    assert set(hidden) <= set(ours["linux"]["maskedPaths"]), hidden
    protected = {*ours["linux"]["readonlyPaths"], *ours["linux"]["maskedPaths"]}
    assert set(original["linux"]["readonlyPaths"]) <= protected
    assert ours["linux"]["seccomp"]["defaultAction"] == "SCMP_ACT_ERRNO" and "seccomp" not in original["linux"]
    assert ours["linux"]["resources"]["devices"] == original["linux"]["resources"]["devices"]


def runs_our_steps(suite, sides, plane, images):
    """The original serves its protocol, and runs steps of our plane. The answers are the same as when the plane runs them itself; so are the
    network and the limits of the containers."""
    address = f"unix:{sides.folder}/xfn.sock"
    command = [sides.xfn, "start", "--cache-dir", sides.folder / "original", "--network", "unix", "--address", sides.folder / "xfn.sock"]
    served = subprocess.Popen(sides.with_crun(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        suite.until("the original is served", lambda: (sides.folder / "xfn.sock").exists())
        plane.engine = sides.folder / "ours/runc"
        plane.start()
        plane.apply(suite.DEFINITION)
        for number, (policy, cpu, memory) in enumerate(SETTINGS):
            for side, runner in (("original", {"endpoint": address}), ("ours", None)):
                composes(suite, sides, plane, images["label"], f"{side}-{number}", network(policy), limits(cpu, memory), runner)
            same_process(sides)
            nothing_more(sides)
            same_network(sides, policy)
            same_limits(sides, cpu or DEFAULTS[0])
        fails(suite, plane, images["hostile-files"], address)
        plane.end()
    finally:
        served.terminate()
        served.wait()


def network(policy):
    return {"network": {"policy": policy}}


def limits(cpu, memory):
    return {"resources": {"limits": {"cpu": cpu, "memory": memory}}} if cpu else {}


def step(suite, image, runner, **more):
    made = suite.inline(image)
    made["container"] |= {**more, **({"runner": runner} if runner else {})}
    return made


def composes(suite, sides, plane, image, name, network, limits, runner):
    """An XR is composed by a step with these settings. It is gone afterwards: it must not be composed again while another one is looked at."""
    for kept in (sides.folder / "original" / KEPT, sides.folder / "ours" / KEPT):
        if name.startswith(kept.parent.name):
            kept.unlink(missing_ok=True)
    one = step(suite, image, runner, **network, **limits)
    plane.apply(suite.composition(name, {"mode": "Pipeline", "pipeline": [{"step": "label", "inline": one, "input": suite.CONFIG}]}))
    plane.apply(suite.of(name, name))
    path = f"{suite.THING}/{name}"
    suite.until(lambda: f"{name} is composed: {plane.condition(path, 'Synced')}", lambda: suite.maps(plane, name) == {"sized": suite.SIZED})
    plane.request("DELETE", path)
    suite.until(f"{name} is deleted", lambda: plane.request("GET", path)[0] == 404)


def fails(suite, plane, image, address):
    """What the original says about a program that fails is in the condition."""
    plane.apply(suite.composition("fails", {"mode": "Pipeline", "pipeline": [{"step": "fails", "inline": step(suite, image, {"endpoint": address})}]}))
    plane.apply(suite.of("fails", "fails"))
    suite.until(lambda: f"the failure is named: {plane.condition(f'{suite.THING}/fails', 'Synced')}",
                lambda: all(words in plane.condition(f"{suite.THING}/fails", "Synced")["message"] for words in (f"the runner {address} failed: ", "exit status 3")))


def same_network(sides, policy):
    """Our container joins the namespace that its first process has made, unless it has the network of the machine: so our bundle names none."""
    original = {namespace["type"] for namespace in sides.config("original")["linux"]["namespaces"]}
    assert ("network" in original) == (policy == "Isolated"), original
    mounts = [{mount["destination"] for mount in sides.config(side)["mounts"]} for side in ("ours", "original")]
    assert ["/etc/resolv.conf" in each for each in mounts] == [policy == "Runner"] * 2, mounts


def same_limits(sides, cpu):
    """Memory, and processor time in each period. Ours are those of the cgroup that the container's own is in."""
    resources, ours = sides.config("original")["linux"]["resources"], sides.config("ours")["linux"]["resources"]
    # The kernel's own period is that of 100 ms.
    assert (ours["cpu"]["quota"], ours["cpu"]["period"]) == (resources["cpu"]["quota"], resources["cpu"].get("period", 100_000)), (cpu, ours, resources)
    limited = dict(line.split(" ", 1) for line in (sides.folder / "ours" / LIMITED).read_text().splitlines())
    memory = int(limited.get("memory.limit_in_bytes") or limited["memory.max"])
    page = os.sysconf("SC_PAGE_SIZE")
    assert memory // page == resources["memory"]["limit"] // page, (memory, resources)
    assert int(limited["pids.max"]) <= resources["pids"]["limit"], limited
