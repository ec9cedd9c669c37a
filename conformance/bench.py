"""Measures Transom and a real kube-apiserver on etcd, never at the same time, and prints the ratios.

`transom-bench server` does the measuring, with the same client for both; starting and stopping is done here. Both
sync every write to disk. With `--rounds N` the whole is repeated and the table shows each median with the
lowest and highest in brackets.
"""

import argparse
import json
import statistics
import subprocess
import sys

import cargo
import servers

START, RESTARTS = "start to ready", {"transom": 5, "real": 1}
IDLE = "idle memory"

# What we promise: how many times better than the real one, or an upper bound in the figure's own unit.
RATIOS = {START: 40, IDLE: 10, "get, 1 client, median": 5, "get, many clients": 5, "list of 500, median": 5,
          "apply no change, 1 client, median": 8, "apply no change, many clients": 8,
          "apply new, many clients": 9, "create, many clients": 9}
BOUNDS = {IDLE: 30, "new kind to first object, median": 10, "memory per 10,000 objects": 40, "memory per kind": 0.3}


def launch(kind):
    return servers.transom(durable=True) if kind == "transom" else servers.real(controllers=False, durable=True)


def measure(kind, options):
    """One round on one server: figure → (value, unit)."""
    figures = {}
    starts = []
    for _ in range(RESTARTS[kind] - 1):
        with launch(kind) as server:
            starts.append(server.seconds_to_ready * 1000)
    with launch(kind) as server:
        starts.append(server.seconds_to_ready * 1000)
        figures[START] = (statistics.median(starts), "ms")
        command = [cargo.bench(), "server", "--kubeconfig", server.kubeconfig, "--output", "json",
                   *[part for pid in server.pids for part in ("--pid", str(pid))], *options]
        measured = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        figures.update({figure["name"]: (figure["value"], figure["unit"]) for figure in measured})
    return figures


def spread(rounds, name):
    values = sorted(one[name][0] for one in rounds)
    middle = statistics.median(values)
    text = f"{middle:,.2f}" if middle < 100 else f"{middle:,.0f}"
    return middle, text if len(values) == 1 else f"{text} [{values[0]:,.4g}–{values[-1]:,.4g}]"


def verdict(name, ours, ratio):
    wants = []
    if name in RATIOS:
        wants.append((f"≥ {RATIOS[name]}×", ratio >= RATIOS[name]))
    if name in BOUNDS:
        wants.append((f"≤ {BOUNDS[name]}", ours <= BOUNDS[name]))
    if not wants:
        return "", ""
    return ", ".join(want for want, _ in wants), "met" if all(met for _, met in wants) else "missed"


def table(results):
    lines = ["| figure | unit | kube-apiserver + etcd | Transom | ratio | target | |", "|---|---|---:|---:|---:|---|---|"]
    for name, (_, unit) in results["transom"][0].items():
        theirs, their_text = spread(results["real"], name)
        ours, our_text = spread(results["transom"], name)
        better = (ours, theirs) if unit == "/s" else (theirs, ours)
        ratio = better[0] / max(better[1], 1e-9)
        target, met = verdict(name, ours, ratio)
        lines.append(f"| {name} | {unit} | {their_text} | {our_text} | {ratio:,.1f}× | {target} | {met} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", choices=("transom", "real"), help="measure one side and print its figures")
    options, rest = parser.parse_known_args()
    kinds = [options.only] if options.only else ["real", "transom"]
    results = {kind: [] for kind in kinds}
    for number in range(options.rounds):
        for kind in kinds:
            results[kind].append(measure(kind, rest))
            print(f"round {number + 1} of {options.rounds}: {kind} measured", file=sys.stderr, flush=True)
    if not options.only:
        print(table(results))
        return 0
    for name, (_, unit) in results[options.only][0].items():
        print(f"{name:36} {spread(results[options.only], name)[1]:>28} {unit}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
