"""Measures Transom beside the real programs, never at the same time, and prints a table for each comparison.

| comparison | Transom | the peer |
|---|---|---|
| `server` | its API server | kube-apiserver on etcd |
| `plane` | `transom up` | Crossplane with function-patch-and-transform on kube-apiserver and etcd |
| `cluster` | `transom controller` on kube-apiserver and etcd | Crossplane with function-patch-and-transform, on the same; memory and processor time are those of the controllers and functions alone |
| `large` | `transom up` with thousands of composed resources, by two shapes, and the requests that it serves meanwhile | none: it has targets of its own |
| `packages` | `transom up`, and its dependency resolution alone | Crossplane on kube-apiserver and etcd, both with the same registry |

`transom-bench` does the measuring (`packages/measuring.py` that of packages), with the same client, the same manifests and the
same work for both sides; starting and stopping is done here. All sync every write to disk. `--only` picks one comparison,
`--side` one side of it; `--strict` exits with 1 if a target is missed; `--scale` sends fewer requests; other options are for what measures and need `--only`. With `--rounds N` the whole is repeated and the
tables show each median with the lowest and highest in brackets.
"""

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys

import cargo
import planes
import servers
from packages import measuring

START, IDLE = "start to ready", "idle memory"
MISSED = "missed"
SOLVER_PACKAGES = 1000
# Composite resources that are composed at the same time, and how many resources each has.
LARGE_SHAPES = ((2, 10_000), (8, 3_000))
LARGE_CPU = "processor time for each resource"
LARGE_EVENNESS = f"{LARGE_CPU}, the higher by the lower"
LARGE_REQUESTS = ("probe on a new connection", "get", "patch")
LARGE_LATENCY_MS = 50
LARGE_MEMORY_MB = 1_073  # 1 GiB
LARGE_CPU_RATIO = 1.3


def of_shape(shape, figure):
    return f"{shape[0]} of {shape[1]:,}: {figure}"


@dataclasses.dataclass
class Comparison:
    """Two sides, and what we promise: a ratio, an upper bound or a lower bound, by the name of the figure."""

    peer: str
    sides: dict
    ratios: dict = dataclasses.field(default_factory=dict)
    at_most: dict = dataclasses.field(default_factory=dict)
    at_least: dict = dataclasses.field(default_factory=dict)


COMPARISONS = {
    "server": Comparison(
        peer="kube-apiserver + etcd",
        sides={"real": lambda: servers.real(controllers=False, durable=True), "transom": lambda: servers.transom(durable=True)},
        ratios={START: 40, IDLE: 10, "get, 1 client, median": 5, "get, many clients": 5, "list of 500, median": 5,
                "apply no change, 1 client, median": 8, "apply no change, many clients": 8,
                "apply new, many clients": 9, "create, many clients": 9},
        at_most={IDLE: 30, "new kind to first object, median": 10, "memory per 10,000 objects": 40, "memory per kind": 0.3}),
    "plane": Comparison(
        peer="Crossplane",
        sides={"real": planes.crossplane, "transom": planes.transom},
        at_most={"start to first ready composite resource": 400, "memory, one definition": 30,
                 "create to ready, one at a time, median": 5, "create to ready, one at a time, 99 %": 60,
                 "events for each": 3, "drift to reverted, median": 2.5, "part deleted to re-created, median": 2.5,
                 "parts re-created after more than 20 ms": 0, "burst, processor time for each": 2.5,
                 "idle, write requests in a minute": 0, "idle, processor time in a minute for each": 0.5,
                 "memory, 1,400 composite resources at rest": 140},
        at_least={"burst, ready in a second": 300}),
    "cluster": Comparison(
        peer="Crossplane",
        sides={"real": lambda: planes.crossplane(only_controllers=True), "transom": planes.controller},
        ratios={"burst, ready in a second": 2.5, "create to ready, one at a time, median": 4,
                "idle, processor time in a minute for each": 100, "memory, 1,400 composite resources at rest": 5},
        at_most={"idle, write requests in a minute": 0}),
    "large": Comparison(
        peer="",
        sides={"transom": None},
        at_most={LARGE_EVENNESS: LARGE_CPU_RATIO,
                 **{of_shape(shape, "peak memory"): LARGE_MEMORY_MB for shape in LARGE_SHAPES},
                 **{of_shape(shape, f"{request}, 99 %"): LARGE_LATENCY_MS for shape in LARGE_SHAPES for request in LARGE_REQUESTS}}),
    "packages": Comparison(
        peer="Crossplane",
        sides={"real": lambda: planes.crossplane(function=False, controllers=True), "transom": planes.transom},
        ratios={measuring.FIRST: 10},
        at_most={measuring.WARM_REQUESTS: 1, measuring.IDLE_WRITES: 0, measuring.IDLE_REQUESTS: 0, measuring.GROWTH: 10,
                 **{f"solver, {shape}: {what}": 50 for shape in ("a chain", "10 dependencies each")
                    for what in ("step, half missing", "step, half outdated", "one revision resolved")}}),
}


def measure_server(launch, restarts, options):
    """One round on one API server: figure → (value, unit)."""
    starts = []
    for _ in range(restarts - 1):
        with launch() as server:
            starts.append(server.seconds_to_ready * 1000)
    with launch() as server:
        starts.append(server.seconds_to_ready * 1000)
        return {START: (statistics.median(starts), "ms"), **figures("server", server, options)}


def measure_plane(launch, options):
    """One round on one control plane."""
    with launch() as server:
        return figures("plane", server, ["--started", str(server.started), *options])


def measure_large(options):
    """One round of each shape, and how much their costs differ. A smaller scale composes fewer resources of as many XRs."""
    _, scale, *rest = options
    measured = {}
    for shape in LARGE_SHAPES:
        resources = max(1, round(shape[1] * float(scale)))
        found = printed("large", ["--composites", str(shape[0]), "--resources", str(resources), *rest])
        measured.update({of_shape(shape, name): figure for name, figure in found.items()})
    costs = [measured[of_shape(shape, LARGE_CPU)][0] for shape in LARGE_SHAPES]
    return {**measured, LARGE_EVENNESS: (max(costs) / min(costs), "")}


def measure_packages(launch, side, options):
    """One round of packages on one control plane. Our dependency resolution is measured alone, too: the original's needs a server."""
    measured = measuring.measure(launch, options)
    return {**measured, **printed("solver", ["--packages", str(SOLVER_PACKAGES)])} if side == "transom" else measured


def figures(what, server, options):
    return printed(what, ["--kubeconfig", server.kubeconfig, *[part for pid in server.pids for part in ("--pid", str(pid))], *options])


def printed(what, options):
    """The figures that a command of `transom-bench` prints."""
    measured = subprocess.run([cargo.bench(), what, "--output", "json", *options], check=True, stdout=subprocess.PIPE).stdout
    return {figure["name"]: (figure["value"], figure["unit"]) for figure in json.loads(measured)}


def measure(name, side, options):
    if name == "large":
        return measure_large(options)
    launch = COMPARISONS[name].sides[side]
    if name in ("plane", "cluster"):
        return measure_plane(launch, options)
    if name == "packages":
        return measure_packages(launch, side, options)
    return measure_server(launch, 5 if side == "transom" else 1, options)


def spread(rounds, name):
    values = sorted(one[name][0] for one in rounds)
    middle = statistics.median(values)
    text = f"{middle:,.2f}" if middle < 100 else f"{middle:,.0f}"
    return middle, text if len(values) == 1 else f"{text} [{values[0]:,.4g}–{values[-1]:,.4g}]"


def verdict(comparison, name, ours, ratio):
    wants = []
    if name in comparison.ratios:
        wants.append((f"≥ {comparison.ratios[name]}×", ratio is not None and ratio >= comparison.ratios[name]))
    if name in comparison.at_most:
        wants.append((f"≤ {comparison.at_most[name]}", ours <= comparison.at_most[name]))
    if name in comparison.at_least:
        wants.append((f"≥ {comparison.at_least[name]}", ours >= comparison.at_least[name]))
    if not wants:
        return "", ""
    return ", ".join(want for want, _ in wants), "met" if all(met for _, met in wants) else MISSED


def table(comparison, results):
    """The table of a comparison, and the figures that miss their target."""
    missed = []
    theirs_first = results.get("real", [{}])[0]
    lines = [f"| figure | unit | {comparison.peer} | Transom | ratio | target | |", "|---|---|---:|---:|---:|---|---|"]
    for name, (_, unit) in results["transom"][0].items():
        ours, our_text = spread(results["transom"], name)
        their_text, ratio = "", None
        if name in theirs_first:
            theirs, their_text = spread(results["real"], name)
            better = (ours, theirs) if unit == "/s" else (theirs, ours)
            ratio = better[0] / better[1] if better[0] and better[1] else None
        target, met = verdict(comparison, name, ours, ratio)
        if met == MISSED:
            missed.append(name)
        shown = f"{ratio:,.1f}×" if ratio else ""
        lines.append(f"| {name} | {unit} | {their_text} | {our_text} | {shown} | {target} | {met} |")
    return "\n".join(lines), missed


def compare(name, options, rest):
    """Measures and prints a comparison. Returns the figures that miss their target."""
    comparison = COMPARISONS[name]
    sides = [side for side in comparison.sides if options.side in (None, side)]
    if not sides:
        return []
    results = {side: [] for side in sides}
    for number in range(options.rounds):
        for side in sides:
            results[side].append(measure(name, side, ["--scale", options.scale, *rest]))
            print(f"{name}, round {number + 1} of {options.rounds}: {side} measured", file=sys.stderr, flush=True)
    if not options.side:
        text, missed = table(comparison, results)
        print(f"\n{name}:\n\n{text}", flush=True)
        return missed
    for figure, (_, unit) in results[options.side][0].items():
        print(f"{figure:52} {spread(results[options.side], figure)[1]:>28} {unit}", flush=True)
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", choices=COMPARISONS)
    parser.add_argument("--side", choices=("transom", "real"), help="measure one side and print its figures")
    parser.add_argument("--scale", default="1", help="a multiple of the usual number of requests")
    options, rest = parser.parse_known_args()
    if rest and not options.only:
        parser.error(f"{' '.join(rest)}: needs --only")
    if options.strict and options.side:
        parser.error("--strict: targets are for both sides; leave out --side")
    missed = [f"{name}: {figure}" for name in ([options.only] if options.only else COMPARISONS) for figure in compare(name, options, rest)]
    if options.strict and missed:
        print(f"missed: {'; '.join(missed)}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
