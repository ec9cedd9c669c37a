"""What a container function costs: `PROFILE=release conformance/run xfn -- --speed`, as root, on an idle machine.

The same image, the same document (ten desired resources) and the same limits: `runc run` alone, started by a loop, and
`transom xfn run --measure`, which runs the function with runc, and then with namespaces alone. Beside them the original, `xfn run` of Crossplane
v1.13.2, each run a process, and `transom xfn run` likewise. The goals are about runc: a run costs at most 1.5 times the start of the
runtime, and 8 at a time reach 80 % of its rate.
"""

import concurrent.futures
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import time

# Several suites have a file of this name, and so must not be found by it.
_spec = importlib.util.spec_from_file_location("xfn_original", pathlib.Path(__file__).resolve().parent / "original.py")
originals = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(originals)

RUNS = 100
RESOURCES = "".join(f"  - name: r{i}\n    resource: {{apiVersion: v1, kind: ConfigMap, data: {{a: 'b'}}}}\n" for i in range(10))
DOCUMENT = f"observed:\n  composite:\n    resource:\n      spec:\n        size: 3\ndesired:\n  resources:\n{RESOURCES}"
COST_MAX, RATE_MIN = 1.5, 0.8


def bundle(folder, root):
    """A bundle as `runc spec` makes it, with the limits of a container function."""
    folder.mkdir()
    subprocess.run(["runc", "spec"], cwd=folder, check=True)
    config = json.loads((folder / "config.json").read_text())
    config["process"].update(terminal=False, args=["/bin/sh", "/function.sh"], noNewPrivileges=True)
    config["root"] = {"path": str(root), "readonly": True}
    config["mounts"].append({"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["size=64m"]})
    config["linux"]["resources"].update(memory={"limit": 128 << 20}, cpu={"quota": 10_000, "period": 100_000}, pids={"limit": 512})
    (folder / "config.json").write_text(json.dumps(config))


def timed(command, runs, parallel):
    """Runs a command for each number, which gives its arguments; some at a time."""
    def once(number):
        began = time.monotonic()
        subprocess.run(list(map(str, command(number))), input=DOCUMENT.encode(), check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - began
    once(-1)
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        times = list(pool.map(once, range(runs)))
    return {"median_ms": statistics.median(times) * 1000, "per_second": runs / (time.monotonic() - began)}


def measure(binary, folder, images, image):
    """Prints the figures, and returns whether all goals are met. The image is that of label.sh."""
    document, root, alone_in = folder / "document.yaml", folder / "root", folder / "bundle"
    document.write_text(DOCUMENT)
    subprocess.run(["umoci", "unpack", "--image", images.layout.image("label"), root], check=True, capture_output=True)
    (root / "rootfs/tmp").mkdir(exist_ok=True)
    bundle(alone_in, root / "rootfs")
    (folder / "sides").mkdir()
    commands = originals.Sides(folder / "sides", binary).commands(image, document)

    def ours(engine, parallel):
        # The limit of processor time is that of the bundle.
        command = [binary, "xfn", "run", image, document, "--container-runtime", engine, "--cache-dir", folder / "cache",
                   "--measure", str(RUNS), "--parallel", str(parallel)]
        return json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout)
    met = True
    for parallel in (1, 8):
        alone = timed(lambda number: ["runc", "run", "--bundle", alone_in, f"bare-{os.getpid()}-{number}"], RUNS, parallel)
        measured = {f"transom with {engine}": ours(engine, parallel) for engine in ("runc", "chroot")}
        measured |= {f"{side}, as a command": timed(lambda _, command=command: command, RUNS, parallel) for side, command in commands.items()}
        print(f"{parallel} at a time: runc alone {alone['median_ms']:.1f} ms, {alone['per_second']:.1f}/s", flush=True)
        for name, each in measured.items():
            print(f"  {name}: {each['median_ms']:.1f} ms ({each['median_ms'] / alone['median_ms']:.2f} x), "
                  f"{each['per_second']:.1f}/s ({each['per_second'] / alone['per_second']:.0%})", flush=True)
        found = measured["transom with runc"]
        met &= found["median_ms"] <= COST_MAX * alone["median_ms"] if parallel == 1 else found["per_second"] >= RATE_MIN * alone["per_second"]
    print(f"goals (at most {COST_MAX} times runc alone, 8 at a time at least {RATE_MIN:.0%} of its rate): {'met' if met else 'NOT MET'}", flush=True)
    return met
