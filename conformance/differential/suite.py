"""Sends the same streams of operations to two servers and compares every answer.

A stream is a seeded generator with a namespace of its own; streams run side by side. Each operation goes
to both servers, the answers are normalised and compared. An object that a difference left in two states is
removed from both, so that every difference is a cause and none a consequence. A difference is reported once
per signature with both answers; the summary groups all of them. Differences that `known.txt` explains do not
fail the suite; an explanation that nothing needs any more does.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import pathlib
import random
import re
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import admitting  # noqa: E402
import api  # noqa: E402
import applying  # noqa: E402
import certifying  # noqa: E402
import customs  # noqa: E402
import defining  # noqa: E402
import deleting  # noqa: E402
import kinds  # noqa: E402
import reading  # noqa: E402
import refusing  # noqa: E402
import servers  # noqa: E402
import stored  # noqa: E402
import webhooks  # noqa: E402
import writing  # noqa: E402
from normalise import Normaliser, agree, meet  # noqa: E402
from operations import Handle, Memory, Operation  # noqa: E402

SETTLE_WITHIN = 30  # seconds until an awaited state must have come
SHOWN = 3000  # characters of an answer in a report

NAMED = [kind for kind in [*kinds.BUILT_IN, *customs.CUSTOM]]
FAMILIES = (
    [writing.lifecycle(kind) for kind in NAMED] + [applying.contest(kind) for kind in NAMED] + [reading.listing(kind) for kind in NAMED]
    + [reading.watching(kind) for kind in (kinds.CONFIGMAP, kinds.SECRET, customs.WIDGET, customs.PLAIN, kinds.DEPLOYMENT)]
    + [deleting.finalizers(kind) for kind in NAMED if kind is not kinds.SERVICE]
    + [writing.lifecycle(kind) for kind in customs.CUSTOM] * 2 + [applying.ownership] * 6 + [applying.emptied, writing.orphans]
    + [writing.strategic, writing.encodings, reading.single, deleting.family, deleting.namespaces, defining.refused, defining.life,
       defining.documents, defining.built_in, defining.versions, refusing.protocol, writing.events, refusing.tokens]
)
# These run once, after all others, so that they change neither the numbers nor the random choices of the streams before them.
ONCE = [certifying.requests]
# What is served and has differences that are not explained yet (reviews, webhooks, policies, the stored kinds), and conversion by
# webhooks. Run it with --later. Decisions about rights are compared by the suite rbac.
LATER = [refusing.access, admitting.admission, admitting.policies, admitting.conversion, *(writing.lifecycle(kind) for kind in stored.STORED)]


@dataclasses.dataclass
class Scope:
    """What a stream may call its own: names that start with `name`, and a namespace."""

    name: str

    @property
    def namespace(self):
        return self.name


class Endpoint:
    """One server as seen by one stream."""

    def __init__(self, client, side, webhooks):
        self.client, self.side, self.webhooks, self.memory, self.normaliser = client, side, webhooks, Memory(), Normaliser()
        self.memory.learn("self", {"side": side, "webhooks": webhooks.url, "bundle": webhooks.bundle})

    def perform(self, operation):
        path, query = self.memory.fill(operation.path), self.memory.fill(operation.query)
        body = operation.body
        if body is not None:
            body = body if isinstance(body, str) else json.dumps(self.memory.fill(body))
        arguments = (operation.method, path, query, body, self.memory.fill(operation.headers))
        if operation.mode == "asked":
            answer = api.Answer(200, "", [], {"asked": self.webhooks.take(self.side, path)})
        elif operation.mode == "watch":
            answer = self.client.watch(path, query, operation.headers)
        elif operation.mode == "await":
            answer = self._await(operation.until, arguments)
        else:
            answer = self.client.request(*arguments)
        self.memory.learn(operation.remember, answer.body)
        return answer

    def remove(self, subject):
        """Takes an object away, whatever holds it, and what was learnt about it."""
        self.client.request("PATCH", subject.path, body=json.dumps({"metadata": {"finalizers": None}}), headers={"Content-Type": api.MERGE})
        self.client.request("DELETE", subject.path, {"gracePeriodSeconds": "0", "propagationPolicy": "Background"})
        self.client.wait(subject.path, lambda answer: answer.code == 404, SETTLE_WITHIN)
        self.memory.forget(subject.key)

    def _await(self, until, arguments):
        deadline = time.monotonic() + SETTLE_WITHIN
        while True:
            answer = self.client.request(*arguments)
            try:
                settled = until(answer)
            except (KeyError, AttributeError, TypeError):
                settled = False
            if settled or time.monotonic() > deadline:
                return answer
            time.sleep(0.1)


def differences(left, right, path=""):
    """Places where two values differ, as (path, left, right)."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted({*left, *right}, key=str):
            yield from differences(left.get(key, "<absent>"), right.get(key, "<absent>"), f"{path}.{key}")
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for one, other in zip(left, right):
            yield from differences(one, other, f"{path}[]")
    elif left != right or type(left) is not type(right):
        yield path.lstrip("."), left, right


def verdict_of(answer):
    """A code with what a Status says about it."""
    body = answer["body"] if isinstance(answer["body"], dict) else {}
    causes = (body.get("details") or {}).get("causes") if body.get("kind") == "Status" else None
    told = "; ".join(causes or []) or body.get("message", "")
    return f"{answer['code']} {told}".strip()


def brief(value, limit=160):
    text = value if isinstance(value, str) and value.isprintable() else json.dumps(value, sort_keys=True)
    return text if len(text) <= limit else text[:limit] + "…"


class Report:
    """Counts, and the differences by signature."""

    def __init__(self, known, quiet, log=None):
        self.known, self.quiet, self.log, self.lock = known, quiet, log, threading.Lock()
        self.verdicts, self.groups, self.used, self.codes = (collections.Counter() for _ in range(4))
        self.examples = {}

    def record(self, stream, operation, left, right):
        """Counts one comparison. Says whether the answers are `equal`, differ in a `known` way, or `differ`."""
        found = list(differences(left, right))
        if found and left["code"] != right["code"]:
            found = [("code", verdict_of(left), verdict_of(right))]
        reasons = [self._reason(f"{operation.label} {path}: {brief(one, 1000)} -> {brief(other, 1000)}") for path, one, other in found]
        verdict = "differ" if not all(reasons) else "known" if found else "equal"
        with self.lock:
            self.codes[left["code"]] += 1
            self.verdicts[verdict] += 1
            if self.log:
                told = {"stream": stream, "label": operation.label, "request": operation.describe(), "left": left, "right": right,
                        "verdict": verdict, "found": found}
                self.log.write(json.dumps(told) + "\n")
            if verdict == "differ":
                self._tell(stream, operation, left, right, [place for place, reason in zip(found, reasons) if not reason])
        return verdict

    def _tell(self, stream, operation, left, right, found):
        """Files a difference under its kind, and shows the first of a kind."""
        place, one, other = found[0]
        line = f"{operation.label} {place}: {brief(one)} -> {brief(other)}"
        kind = f"{operation.label.split()[0]} {re.sub(r'[0-9]+', 'N', place)}"
        self.groups[kind] += 1
        if kind not in self.examples:
            self.examples[kind] = line
            if not self.quiet:
                self._show(stream, operation, left, right, found, line)

    def _reason(self, line):
        for pattern, reason in self.known:
            if pattern.search(line):
                self.used[pattern.pattern] += 1
                return reason
        return None

    def _show(self, stream, operation, left, right, found, line):
        print(f"\n--- {stream}: {line}\n{operation.describe()[:SHOWN]}")
        print(f"A {brief(left, SHOWN)}\nB {brief(right, SHOWN)}")
        for path, one, other in found[:12]:
            print(f"  {path}:\n    A {brief(one, 600)}\n    B {brief(other, 600)}")

    def summary(self, complete):
        """Prints everything and returns whether all is well; a `complete` run must have met every known difference."""
        if self.groups:
            print("\nDifferences, most frequent first:")
        for kind, count in self.groups.most_common():
            print(f"{count:5} {kind}    e.g. {self.examples[kind]}")
        idle = [pattern.pattern for pattern, _ in self.known if complete and pattern.pattern not in self.used]
        for pattern in idle:
            print(f"known difference not seen: {pattern}")
        print("answers of the reference by code: " + ", ".join(f"{code}: {count}" for code, count in sorted(self.codes.items())))
        print(f"differential: {self.verdicts['equal']} passed, {self.verdicts['differ'] + len(idle)} failed, {self.verdicts['known']} known differences")
        return not (self.verdicts["differ"] or idle)


def run_stream(family, number, seed, clients, webhooks, report):
    scope = Scope(f"s{number}")
    rng = random.Random(f"{seed}/{number}/{family.__name__}")
    ends = [Endpoint(client, side, webhooks) for client, side in zip(clients, "ab")]
    title = f"{number} {family.__name__}"
    for operation in [*arrive(scope), *family(rng, scope)]:
        if compare(operation, ends, lambda left, right: report.record(title, operation, left, right)) == "parted":
            reunite(operation, ends)


def compare(operation, ends, record):
    """Performs an operation on both servers and records how the answers compare; `parted` when the servers are no
    longer in the same state afterwards."""
    try:
        answers = [end.perform(operation) for end in ends]
    except (OSError, ValueError) as error:
        blank = {"code": 0, "body": None}
        return record(blank, {**blank, "body": f"{type(error).__name__}: {error}"})
    if not operation.compare:
        return "equal"
    if answers[0].code == 504:  # the reference was too slow, which says nothing about the other
        return "parted"
    left, right = (end.normaliser.answer(picked(operation, answer)) for end, answer in zip(ends, answers))
    verdict = record(left, right)
    if verdict == "known":
        agree([end.normaliser for end in ends], answers)
    accepted = [answer["code"] < 300 for answer in (left, right)]
    wrote = operation.method != "GET" and any(accepted)
    return "parted" if wrote and (verdict == "differ" or verdict == "known" and not all(accepted)) else verdict


def reunite(operation, ends):
    """Removes the object of an operation from both servers: what follows starts from the same state again."""
    subject = operation.subject()
    for end in ends if subject else ():
        end.remove(subject)
    meet([end.normaliser for end in ends])


def picked(operation, answer):
    """The answer with the part of its body that is compared; all of it when it has another shape."""
    if operation.pick and not answer.rejected:
        try:
            answer.body = {"picked": operation.pick(answer.body)}
        except (KeyError, TypeError, AttributeError):
            pass
    return answer


def arrive(scope):
    space = Handle(kinds.NAMESPACE, scope.namespace)
    yield space.create(kinds.NAMESPACE.object(scope.namespace))
    for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
        yield Operation("await.automatic", "GET", f"/api/v1/namespaces/{scope.namespace}/{path}", mode="await", until=lambda answer: answer.code == 200)


def establish(client):
    """Creates the standing definitions and waits until their resources take writes."""
    for each in customs.DEFINITIONS:
        answer = client.request("POST", kinds.CRD.collection(), body=json.dumps(each))
        if answer.rejected:
            raise SystemExit(f"{client.server.name} refuses {each['metadata']['name']}: {answer.body}")
    for each, kind in zip(customs.DEFINITIONS, customs.CUSTOM):
        client.wait(f"{kinds.CRD.collection()}/{each['metadata']['name']}", defining.established)
        for version in each["spec"]["versions"]:
            client.wait(kind.collection("default", version["name"]), lambda answer: answer.code == 200)
    # The reference holds the first creation after a definition back; once paid, streams do not time it.
    probe = customs.WIDGET.object("probe", spec={"color": "red"})
    path = customs.WIDGET.collection("default")
    client.request("POST", path, body=json.dumps(probe))
    client.request("DELETE", f"{path}/probe")


def read_known():
    known = []
    for line in (HERE / "known.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, _, reason = line.partition("\t")
            known.append((re.compile(pattern), reason or "unexplained"))
    return known


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", default="transom", choices=("transom", "real"), help="the second server; `real` checks the suite itself")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--operations", type=int, default=10_000, help="roughly how many operations to send")
    parser.add_argument("--streams", type=int, default=8, help="how many streams run side by side")
    parser.add_argument("--only", default="", help="regular expression on the family of a stream")
    parser.add_argument("--quiet", action="store_true", help="only the summary")
    parser.add_argument("--log", type=argparse.FileType("w"), help="write every operation with both answers to this file, a JSON object a line")
    parser.add_argument("--later", action="store_true", help="also compare what Transom does not serve yet")
    options = parser.parse_args()
    families, once = (
        [family for family in group if re.search(options.only, family.__name__)]
        for group in (FAMILIES + (LATER if options.later else []), ONCE)
    )
    report = Report(read_known() if options.against == "transom" else [], options.quiet, options.log)
    with webhooks.serve() as hooks, servers.real() as real, servers.start(options.against) as other:
        clients = [api.Client(real), api.Client(other)]
        for client in clients:
            establish(client)
        run_all(families, once, options, clients, hooks, report)
    defaults = {key: parser.get_default(key) for key in ("seed", "operations", "only")}
    well = report.summary(complete=all(getattr(options, key) == value for key, value in defaults.items()))
    return 0 if well else 1


def run_all(families, once, options, clients, hooks, report):
    began, number = time.monotonic(), 0
    with concurrent.futures.ThreadPoolExecutor(options.streams) as pool:
        waiting = set()
        while families and (report.verdicts.total() < options.operations or number < len(families)):
            while len(waiting) < options.streams + 2:
                family = families[number % len(families)]
                waiting.add(pool.submit(run_stream, family, number, options.seed, clients, hooks, report))
                number += 1
            done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
            for each in done:
                each.result()
        for family in once:
            waiting.add(pool.submit(run_stream, family, number, options.seed, clients, hooks, report))
            number += 1
        for each in concurrent.futures.as_completed(waiting):
            each.result()
    print(f"{number} streams in {time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
