"""Renders compositions with the real `crank render` and with Transom, with genuine functions and with ours, and
compares what is printed byte for byte. `--bench` measures cold renders instead. See README.md."""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent)]

import install  # noqa: E402

GOLDEN = ROOT.parent / "shared/conformance/render/golden"
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# What the originals keep behind a gate, our built-ins just do.
FLAGS = {"function-auto-ready": ["--feature-gates=CELHealthcheckCustomizations=true"]}


def transom():
    if os.environ.get("TRANSOM_BIN"):
        return os.environ["TRANSOM_BIN"]
    subprocess.run(["cargo", "build", "--quiet", "-p", "transom"], cwd=ROOT, check=True)
    return TARGET / "debug/transom"


def example():
    """The example program of our SDK."""
    command = ["cargo", "build", "--quiet", "--workspace", "--example", "replicas"]
    if not os.environ.get("TRANSOM_EXAMPLE"):
        subprocess.run(command, cwd=ROOT, check=True)
    return os.environ.get("TRANSOM_EXAMPLE") or TARGET / "debug/examples/replicas"


class Servers:
    """Function servers, each started once and stopped at the end."""

    def __init__(self, stack):
        self.stack, self.addresses = stack, {}

    def start(self, key, command):
        if key not in self.addresses:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                address = f"127.0.0.1:{probe.getsockname()[1]}"
            process = subprocess.Popen([*command, "--insecure", "--address", address],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.stack.callback(process.wait)
            self.stack.callback(process.terminate)
            wait_for(address, process)
            self.addresses[key] = address
        return self.addresses[key]

    def genuine(self, name):
        if name not in install.VERSIONS["functions"]:
            raise install.Unavailable(f"no version of the genuine {name} is named")
        return self.start(("genuine", name), [install.function(name), *FLAGS.get(name, [])])

    def ours(self, name):
        return self.start(("ours", name), [transom(), "function", "serve", name])


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
    return {"apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "metadata": {"name": name, "annotations": annotations},
            "spec": {"package": f"example.org/{package}"}}


class Case:
    """What is rendered: a name, the functions by the name they are called by, and objects for files."""

    def __init__(self, name, functions, xr, composition, **more):
        self.name, self.functions, self.xr, self.composition, self.more = name, functions, xr, composition, more

    def write(self, folder, address_of):
        def put(name, documents):
            (folder / name).write_text("".join(f"---\n{json.dumps(document)}\n" for document in documents))
            return name

        functions = [function(name, package, address_of(package)) for name, package in self.functions.items()]
        command = [put("xr.yaml", [self.xr]), put("composition.yaml", [self.composition]), put("functions.yaml", functions),
                   "-r", "-c", "--timeout", "2m"]
        flags = {"observed": "--observed-resources", "required": "--required-resources", "credentials": "--function-credentials"}
        for kind, flag in flags.items():
            if self.more.get(kind):
                command += [flag, put(f"{kind}.yaml", self.more[kind])]
        return command


def golden_cases():
    seen = set()
    for path in sorted(GOLDEN.rglob("*.json")):
        golden = json.loads(path.read_text())
        given = golden["input"]
        key = json.dumps(given, sort_keys=True)
        if key not in seen and given["composition"]["spec"].get("mode", "Pipeline") == "Pipeline":
            seen.add(key)
            secrets = [{"apiVersion": "v1", "kind": "Secret", **secret} for secret in given.get("credentials", [])]
            yield Case(str(path.relative_to(GOLDEN)), golden["functions"], given["compositeResource"], given["composition"],
                       observed=given.get("observedResources"), required=given.get("requiredResources"), credentials=secrets)


def outcome(command, folder):
    """What a render printed, or the cause it fails with."""
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if run.returncode == 0:
        return run.stdout
    cause = re.search(r'pipeline step ".*?" returned a fatal result: [^\n]*', run.stderr)
    # Causes other than a function's are worded by each program for itself.
    return f"failed: {cause.group(0)}" if cause else "failed"


def compare(case, servers, crank, binary):
    """The outcomes of all ways to render, by way."""
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for whose, address_of in (("genuine", servers.genuine), ("ours", servers.ours)):
            arguments = case.write(folder, address_of)
            outcomes[f"crank, {whose} functions"] = outcome([crank, "render", *arguments], folder)
            outcomes[f"transom, {whose} functions"] = outcome([binary, "render", "--classic-output", *arguments], folder)
        # Without the annotation the package decides: the function runs in process.
        for path in [folder / "functions.yaml"]:
            path.write_text(path.read_text().replace('"Development"', '"InProcess"'))
        outcomes["transom, in process"] = outcome([binary, "render", "--classic-output", *arguments], folder)
    return outcomes


def different(outcomes):
    reference, theirs = next(iter(outcomes.items()))
    return [f"{way} differs from {reference}:\n{first_difference(ours, theirs)}" for way, ours in outcomes.items() if ours != theirs]


def first_difference(ours, theirs):
    for number, (a, b) in enumerate(zip(ours.splitlines() + [""], theirs.splitlines() + [""]), 1):
        if a != b:
            return f"    line {number}: {a[:300]}\n    instead of: {b[:300]}"
    return "    one is longer"


def known():
    """Patterns of cases that differ for a reason: `pattern<TAB>reason`."""
    lines = (HERE / "known.txt").read_text().splitlines()
    return [re.compile(line.split("\t")[0]) for line in lines if line and not line.startswith("#")]


def rendered(options, servers, crank, binary):
    passed, failed, skipped, excused = 0, [], collections.Counter(), known()
    cases = list(golden_cases())
    names = set(subprocess.run([binary, "function", "list"], capture_output=True, text=True).stdout.split())
    for case in cases[::max(1, len(cases) // options.limit)] if options.limit else cases:
        missing = next((package for package in case.functions.values() if package not in names), None)
        try:
            if missing:
                raise install.Unavailable(f"{missing} is not built in")
            differences = different(compare(case, servers, crank, binary))
        except install.Unavailable as why:
            skipped[str(why)] += 1
            continue
        if not differences or any(pattern.search(case.name) for pattern in excused):
            passed += 1
        else:
            failed.append(case.name)
            print("\n".join([f"{case.name}:", *differences]), flush=True)
    for why, count in skipped.items():
        print(f"{count} cases left out: {why}")
    return passed, failed


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
        (small("the example of our SDK", "replicas", {"replicas": 3}, replicas, required=[limits]), [example()]),
    ]
    failed = []
    for case, command in sides:
        address = servers.start(case.name, command)
        with tempfile.TemporaryDirectory() as folder:
            arguments = case.write(pathlib.Path(folder), lambda _: address)
            outcomes = {"crank": outcome([crank, "render", *arguments], folder),
                        "transom": outcome([binary, "render", "--classic-output", *arguments], folder)}
        differences = different(outcomes)
        if outcomes["crank"].startswith("failed") or outcomes["crank"].count("kind: ConfigMap") != 2:
            differences.append(f"unexpected output:\n{outcomes['crank']}")
        if differences:
            failed.append(case.name)
            print("\n".join([f"{case.name}:", *differences]), flush=True)
    return len(sides) - len(failed), failed


def bench(servers, crank, binary):
    """Cold renders of ten resources, and a hundred in one process."""
    template = {"base": {"apiVersion": "example.org/v1", "kind": "Bucket", "spec": {"forProvider": {"acl": "private"}}}, "patches": [
        {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.region", "toFieldPath": "spec.forProvider.region",
         "transforms": [{"type": "map", "map": {"eu": "eu-central-1"}}]},
        {"type": "FromCompositeFieldPath", "fromFieldPath": "metadata.name", "toFieldPath": "metadata.labels[app]"}]}
    resources = [{"name": f"bucket-{number}", **template} for number in range(10)]
    step = {"input": {"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": resources}}
    name = "function-patch-and-transform"
    case = small("ten buckets", name, {"region": "eu"}, step)

    def measure(command, folder, times):
        spans = []
        for _ in range(times):
            began = time.perf_counter()
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            spans.append((time.perf_counter() - began) * 1000)
        return statistics.median(spans), min(spans)

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        arguments = case.write(folder, servers.genuine)
        theirs = measure([crank, "render", *arguments], folder, 10)
        functions = folder / "functions.yaml"
        functions.write_text(functions.read_text().replace('"Development"', '"InProcess"'))
        ours = measure([binary, "render", *arguments], folder, 40)
        many = [{**case.xr, "metadata": {"name": f"thing-{number}"}} for number in range(101)]
        (folder / "many.yaml").write_text("".join(f"---\n{json.dumps(xr)}\n" for xr in many))
        hundred = measure([binary, "render", "many.yaml", *arguments[1:]], folder, 5)
    each = (hundred[0] - ours[0]) / 100
    print(f"{'figure':<42}{'median':>10}{'best':>10}")
    print(f"{'crank render, function running':<42}{theirs[0]:>7.1f} ms{theirs[1]:>7.1f} ms")
    print(f"{'transom render, cold':<42}{ours[0]:>7.1f} ms{ours[1]:>7.1f} ms")
    print(f"{'ratio of the medians':<42}{theirs[0] / ours[0]:>9.0f}×")
    print(f"{'each of 100 further renders in one process':<42}{each:>7.2f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", default="transom", help="ignored: both sides always run")
    parser.add_argument("--limit", type=int, help="render about so many of the cases")
    parser.add_argument("--bench", action="store_true", help="measure instead of comparing")
    options = parser.parse_args()
    crank, binary = install.crank(), transom()
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
