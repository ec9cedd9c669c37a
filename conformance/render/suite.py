"""Renders compositions with the real `crank render` and with Transom, with genuine functions and with ours, and
compares what is printed byte for byte. `--bench` measures cold renders instead. See README.md."""

import argparse
import collections
import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import cargo  # noqa: E402
import install  # noqa: E402

try:
    import cases  # noqa: E402
except ModuleNotFoundError:  # without PyYAML, which the interpreter with the Kubernetes client has
    os.execv(install.python(), [str(install.python()), *sys.argv])

Case = cases.Case
# What the originals keep behind a gate, our built-ins just do.
FLAGS = {"function-auto-ready": ["--feature-gates=CELHealthcheckCustomizations=true"]}


class Servers:
    """Function servers, each started once and stopped at the end."""

    def __init__(self, stack):
        self.stack, self.addresses, self.processes, self.lock = stack, {}, {}, threading.RLock()

    def start(self, key, command):
        with self.lock:
            return self._start(key, command)

    def _start(self, key, command):
        if key not in self.addresses:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                address = f"127.0.0.1:{probe.getsockname()[1]}"
            process = subprocess.Popen([*command, "--insecure", "--address", address],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.stack.callback(process.wait)
            self.stack.callback(process.terminate)
            wait_for(address, process)
            self.addresses[key], self.processes[address] = address, process
        return self.addresses[key]

    def genuine(self, name):
        if name not in install.VERSIONS["functions"]:
            raise install.Unavailable(f"no version of the genuine {name} is named")
        with self.lock:
            return self.start(("genuine", name), [install.function(name), *FLAGS.get(name, [])])

    def ours(self, name):
        return self.start(("ours", name), [cargo.binary(), "function", "serve", name])


def wait_for(address, process):
    host, port = address.rsplit(":", 1)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection((host, int(port)), 1).close()
            return
        time.sleep(0.05)
    raise SystemExit(f"{process.args[0]} does not listen at {address}")


def function(name, package, address):
    annotations = {"render.crossplane.io/runtime": "Development", "render.crossplane.io/runtime-development-target": address}
    metadata = {"name": name, **({"annotations": annotations} if address else {})}
    return {"apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "metadata": metadata, "spec": {"package": f"example.org/{package}"}}


def outcome(command, folder):
    """What a render printed, or the cause it fails with."""
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if run.returncode == 0:
        return run.stdout
    cause = re.search(r'pipeline step ".*?" returned a fatal result: [^\n]*', run.stderr)
    # Causes other than a function's are worded by each program for itself.
    return f"failed: {cause.group(0)}" if cause else "failed"


def compare(case, servers, crank, binary):
    """The outcomes of all ways to render, by way, and why genuine functions are not among them if they are not."""
    outcomes, missing = {}, None
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)

        def render(whose, function_at, programs=("crank", "transom")):
            arguments = case.write(folder, function_at)
            for program in programs:
                command = [crank, "render"] if program == "crank" else [binary, "render", "--classic-output"]
                outcomes[f"{program}, {whose}"] = outcome([*command, *arguments], folder)

        try:
            render("genuine functions", lambda name, package: function(name, package, servers.genuine(package)))
        except install.Unavailable as why:
            missing = str(why)
        render("our functions", lambda name, package: function(name, package, servers.ours(package)))
        # Without the annotation the package decides: the function runs in process.
        render("in process", lambda name, package: function(name, package, None), programs=["transom"])
    return outcomes, missing


def different(outcomes):
    reference, theirs = next(iter(outcomes.items()))
    return [f"{way} differs from {reference}:\n{first_difference(ours, theirs)}" for way, ours in outcomes.items() if ours != theirs]


def first_difference(ours, theirs):
    for number, (a, b) in enumerate(zip(ours.splitlines() + [""], theirs.splitlines() + [""]), 1):
        if a != b:
            return f"    line {number}: {a[:300]}\n    instead of: {b[:300]}"
    return "    one is longer"


class Known:
    """Cases that differ for a reason: `pattern<TAB>reason`. One that is not needed is a failure, too."""

    def __init__(self):
        lines = (HERE / "known.txt").read_text().splitlines()
        self.patterns = [re.compile(line.split("\t")[0]) for line in lines if line and not line.startswith("#")]
        self.needed = set()

    def excuses(self, name):
        found = [pattern for pattern in self.patterns if pattern.search(name)]
        self.needed.update(found)
        return bool(found)

    def unneeded(self):
        return [f"known.txt: {pattern.pattern} is not needed" for pattern in self.patterns if pattern not in self.needed]


def rendered(options, servers, crank, binary):
    known, unusable, passed, failed, without = Known(), {}, 0, [], collections.Counter()
    names = subprocess.run([binary, "function", "list"], capture_output=True, text=True).stdout.split()
    usable = []
    for name, case in cases.cases(names):
        if isinstance(case, Case):
            usable.append((name, case))
        else:
            unusable[name] = str(case)
    if options.only:
        usable = [(name, case) for name, case in usable if re.search(options.only, name)]
    if options.limit:
        usable = usable[::max(1, len(usable) // options.limit)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda named: compare(named[1], servers, crank, binary), usable)
        for (name, _), (outcomes, missing) in zip(usable, results):
            without[missing] += 1
            differences = different(outcomes)
            if not differences or known.excuses(name):
                passed += 1
                continue
            failed.append(name)
            print("\n".join([f"{name}:", *differences]), flush=True)
    if not (options.only or options.limit):
        failed += [*known.unneeded(), *check_unusable(unusable, options.update)]
    print(f"{len(usable)} cases, {without.pop(None, 0)} of them with the genuine functions")
    for why, count in without.most_common():
        print(f"{count} cases without the genuine functions: {why}")
    for why, count in collections.Counter(unusable.values()).most_common():
        print(f"{count} cases left out: {why}")
    return passed, failed


def check_unusable(unusable, update):
    """Compares with the list that is checked in, if it is of the same data."""
    file, index = HERE / "unusable.txt", cases.DATA / "corpus/index.json"
    data = hashlib.sha256(index.read_bytes()).hexdigest()[:16] if index.exists() else "none"
    lines = [f"# of {data}: case, tab, why both sides cannot render it", *(f"{name}\t{why}" for name, why in sorted(unusable.items()))]
    if update:
        file.write_text("\n".join(lines) + "\n")
    listed = file.read_text().splitlines()
    if listed[0] != lines[0]:
        return []
    changed = sorted(set(listed) ^ set(lines))
    for line in changed[:20]:
        print(f"unusable.txt {'lacks' if line in lines else 'has'}: {line}")
    return ["unusable.txt is not what is left out"] if changed else []


STEP = {"step": "step", "functionRef": {"name": "function"}}


def small(name, package, xr_spec, step, **more):
    kind = {"apiVersion": "example.org/v1", "kind": "Thing"}
    composition = {"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "things"},
                   "spec": {"compositeTypeRef": kind, "mode": "Pipeline", "pipeline": [{**STEP, **step}]}}
    xr = {**kind, "metadata": {"name": "thing"}, "spec": xr_spec}
    return Case(name, {"function": package}, xr, composition, **more)


def steps(servers, crank, binary):
    """Functions of the published Python SDK and of ours, as steps of both programs."""
    limits = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "limits", "namespace": "default"}, "data": {"replicas": "2"}}
    replicas = {"input": {"apiVersion": "example.org/v1", "kind": "Input", "prefix": "map"}}
    sides = [
        (small("a function of the Python SDK", "python", {"names": ["a", "b"]}, {}), [install.python_function(), HERE / "function.py"]),
        (small("the example of our SDK", "replicas", {"replicas": 3}, replicas, required=[limits]), [cargo.example("replicas")]),
    ]
    failed = []
    for case, command in sides:
        address = servers.start(case.name, command)
        with tempfile.TemporaryDirectory() as folder:
            arguments = case.write(pathlib.Path(folder), lambda name, package: function(name, package, address))
            outcomes = {"crank": outcome([crank, "render", *arguments], folder),
                        "transom": outcome([binary, "render", "--classic-output", *arguments], folder)}
        differences = different(outcomes)
        if outcomes["crank"].startswith("failed") or outcomes["crank"].count("kind: ConfigMap") != 2:
            differences.append(f"unexpected output:\n{outcomes['crank']}")
        if differences:
            failed.append(case.name)
            print("\n".join([f"{case.name}:", *differences]), flush=True)
    return len(sides) - len(failed), failed


PATCHED = "function-patch-and-transform"


def ten_buckets():
    """A composition of ten resources by patch-and-transform."""
    template = {"base": {"apiVersion": "example.org/v1", "kind": "Bucket", "spec": {"forProvider": {"acl": "private"}}}, "patches": [
        {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.region", "toFieldPath": "spec.forProvider.region",
         "transforms": [{"type": "map", "map": {"eu": "eu-central-1"}}]},
        {"type": "FromCompositeFieldPath", "fromFieldPath": "metadata.name", "toFieldPath": "metadata.labels[app]"}]}
    resources = [{"name": f"bucket-{number}", **template} for number in range(10)]
    step = {"input": {"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": resources}}
    return small("ten buckets", PATCHED, {"region": "eu"}, step)


def measured(command, folder, times):
    """Milliseconds that a command takes: the median, and the least."""
    spans = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        spans.append((time.perf_counter() - began) * 1000)
    return statistics.median(spans), min(spans)


def bench(servers, crank, binary):
    """Cold renders of ten resources, a hundred in one process, and what a call of the function costs on both sides."""
    case = ten_buckets()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        arguments = case.write(folder, lambda name, package: function(name, package, servers.genuine(package)))
        theirs = measured([crank, "render", *arguments], folder, 20)
        case.write(folder, lambda name, package: function(name, package, None))
        ours = measured([binary, "render", *arguments], folder, 60)
        many = [{**case.xr, "metadata": {"name": f"thing-{number}"}} for number in range(101)]
        (folder / "many.yaml").write_text("".join(f"---\n{json.dumps(xr)}\n" for xr in many))
        hundred = measured([binary, "render", "many.yaml", *arguments[1:]], folder, 5)
        nothing = measured(["true"], folder, 60)
        each = (hundred[0] - ours[0]) / 100
        print(f"{'figure':<42}{'median':>10}{'best':>10}")
        print(f"{'a process that does nothing':<42}{nothing[0]:>7.2f} ms{nothing[1]:>7.2f} ms")
        print(f"{'crank render, function running':<42}{theirs[0]:>7.2f} ms{theirs[1]:>7.2f} ms")
        print(f"{'transom render, cold':<42}{ours[0]:>7.2f} ms{ours[1]:>7.2f} ms")
        print(f"{'ratio of the medians':<42}{theirs[0] / ours[0]:>9.0f}×")
        print(f"{'each of 100 further renders in one process':<42}{each:>7.2f} ms", flush=True)
        bench_calls(case, servers, folder)


def bench_calls(case, servers, folder):
    """What a call of patch-and-transform costs: in process, ours served, the genuine one served."""
    request = {"meta": {"tag": "bench"}, "observed": {"composite": {"resource": case.xr}},
               "input": case.composition["spec"]["pipeline"][0]["input"]}
    (folder / "request.json").write_text(json.dumps(request))
    addresses = {"transom, served": servers.ours(PATCHED), "genuine, served": servers.genuine(PATCHED)}
    command = [cargo.bench(), "function", PATCHED, "--request", folder / "request.json", "--calls", "20000"]
    for address in addresses.values():
        command += ["--at", address, "--pid", str(servers.processes[address].pid)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for name, address in addresses.items():
        text = text.replace(address, name)
    print(text, end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", default="transom", help="ignored: both sides always run")
    parser.add_argument("--limit", type=int, help="render about so many of the cases")
    parser.add_argument("--only", metavar="PATTERN", help="render the cases whose names match")
    parser.add_argument("--update", action="store_true", help="write unusable.txt")
    parser.add_argument("--bench", action="store_true", help="measure instead of comparing")
    options = parser.parse_args()
    crank, binary = install.crank(), cargo.binary()
    with contextlib.ExitStack() as stack:
        servers = Servers(stack)
        if options.bench:
            bench(servers, crank, binary)
            return 0
        totals = [steps(servers, crank, binary), rendered(options, servers, crank, binary)]
    passed, failed = sum(total[0] for total in totals), [name for total in totals for name in total[1]]
    print(f"render: {passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
