"""What a function in a container costs: `conformance/run runtimes -- --speed`, as root, on an idle machine with `PROFILE=release`.

The same genuine function is called as a plain process and in a container, by the same client over loopback (that of the
container's own network namespace, which is how the plane calls it). The time to the first answer is that of `transom render` with the
image unpacked already, less that of `transom render` with the function running already.
"""

import json
import statistics
import subprocess
import time

import cargo
import install
import servers

ROUNDS = 5
RENDERS = 15
LIMITS = {"calls in a container, as a multiple of those of a process": 1.2, "from a cached image to the first answer, ms": 300,
          "selecting one of 10 revisions by labels, µs": 5}


def figures(name, request, at, pid, inside=()):
    """The figures of `transom-bench function` by name."""
    command = [*inside, cargo.bench(), "-o", "json", "function", name, "--request", request, "--calls", "5000", "--at", at, "--pid", str(pid)]
    listed = json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout)
    return {figure["name"]: figure["value"] for figure in listed}


def renders(command):
    times = []
    for _ in range(RENDERS):
        began = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        times.append((time.monotonic() - began) * 1000)
    return statistics.median(times)


def measure(plane, name, package, command):
    """Prints the figures, and returns whether all goals are met. `command` gives the one that renders, by kind and port."""
    request = plane.folder.parent / "speed-request.json"
    xr = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "one"}}
    request.write_text(json.dumps({"meta": {"tag": "speed"}, "observed": {"composite": {"resource": xr}}}))
    port = servers.free_port()
    process = subprocess.Popen([install.function(name), "--insecure", "--address", f"127.0.0.1:{port}"], stderr=subprocess.DEVNULL)
    try:
        plane.start()
        plane.apply(package)
        plane.until_true(f"/apis/pkg.crossplane.io/v1/functions/{name}", "Healthy")
        program = next(pid for pid in plane.below() if open(f"/proc/{pid}/cmdline").read().startswith("/function"))
        ratios, selecting = [], []
        for _ in range(ROUNDS):
            plain = figures(name, request, f"127.0.0.1:{port}", process.pid)
            contained = figures(name, request, "127.0.0.1:9443", program, ("nsenter", "-t", program, "-n"))
            ratios.append(contained["127.0.0.1:9443, each call"] / plain[f"127.0.0.1:{port}, each call"])
            selecting.append(plain["selecting one of 10 revisions by labels"])
        plane.end()
        cached, by_hand = (renders(command(kind, port)) for kind in ("package", "by-hand"))
    finally:
        process.terminate()
        process.wait()
    found = dict(zip(LIMITS, (statistics.median(ratios), cached - by_hand, statistics.median(selecting))))
    for what, value in found.items():
        print(f"{what}: {value:.2f} (goal: at most {LIMITS[what]})", flush=True)
    return all(value <= LIMITS[what] for what, value in found.items())
