"""Several processes on one cluster."""

import random
import time

from platforms import settled
from running import NAMESPACE, changes, expect, wait

LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
LEADER = "crossplane-leader-election-core"
LEASE_SECONDS = 6
FLAGS = ("--leader-election-lease-duration", f"{LEASE_SECONDS}s")
SHARDS = 6
KIND = "/apis/example.org/v1/things"

DEFINITION = {
    "apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition", "metadata": {"name": "things.example.org"},
    "spec": {"scope": "Cluster", "group": "example.org", "names": {"kind": "Thing", "plural": "things"}, "versions": [{
        "name": "v1", "served": True, "referenceable": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"text": {"type": "string"}}}}}}}]}}
COMPOSITION = {
    "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "things"},
    "spec": {"compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "Thing"}, "mode": "Pipeline", "pipeline": [
        {"step": "compose", "functionRef": {"name": "function-patch-and-transform"}, "input": {
            "apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": [
                {"name": f"map-{n}", "readinessChecks": [{"type": "None"}],
                 "base": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"}, "data": {"n": str(n)}},
                 "patches": [{"type": "FromCompositeFieldPath", "fromFieldPath": "spec.text", "toFieldPath": "data.text"}]}
                for n in range(4)]}}]}}
FUNCTION = {"apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "metadata": {"name": "function-patch-and-transform"},
            "spec": {"package": "xpkg.crossplane.io/crossplane-contrib/function-patch-and-transform:v0.10.9"}}


def install(cluster):
    cluster.apply(FUNCTION, DEFINITION)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=120s", "xrd", "--all")
    cluster.apply(COMPOSITION)


def thing(name, text):
    return {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {"text": text}}


def composed(cluster, name, text):
    """Whether a Thing is ready, and all it is composed of has its text."""
    found = cluster.get(f"{KIND}/{name}") or {}
    conditions = {c["type"]: c["status"] for c in found.get("status", {}).get("conditions", [])}
    if conditions.get("Ready") != "True" or conditions.get("Synced") != "True":
        return False
    refs = found.get("spec", {}).get("crossplane", {}).get("resourceRefs", [])
    maps = [cluster.get(f"/api/v1/namespaces/default/configmaps/{ref['name']}") for ref in refs]
    return len(maps) == 4 and all(found and found["data"].get("text") == text for found in maps)


def holder(cluster, lease=LEADER):
    found = cluster.get(f"{LEASES}/{lease}") or {}
    return found.get("spec", {}).get("holderIdentity") or None


def writers(cluster, mark):
    return {line.rsplit(" by ", 1)[1].split(":")[0] for line in changes(cluster.requests(write=True, since=mark))}


def leader(cluster, _):
    a = cluster.start("a", *FLAGS, POD_NAME="a")
    wait("a leads", lambda: (holder(cluster) or "").startswith("a-"))
    install(cluster)
    cluster.apply(thing("one", "1"))
    wait("a composes", lambda: composed(cluster, "one", "1"))
    mark = cluster.audited()
    b = cluster.start("b", *FLAGS, POD_NAME="b")
    cluster.apply(thing("two", "1"))
    wait("a composes again", lambda: composed(cluster, "two", "1"))
    expect("b" not in writers(cluster, mark) - {"kubernetes-admin"}, f"b waits: {changes(cluster.requests('b', write=True, since=mark))}")
    # A process that is stopped for longer than its Lease is replaced, and does not write when it goes on.
    a.pause()
    wait("b leads", lambda: (holder(cluster) or "").startswith("b-"))
    mark = cluster.audited()
    cluster.apply(thing("one", "2"), thing("three", "2"))
    a.resume()
    wait("b composes", lambda: composed(cluster, "one", "2") and composed(cluster, "three", "2"))
    time.sleep(2 * LEASE_SECONDS / 3)
    late = changes(cluster.requests("a", write=True, since=mark))
    expect(not late, f"a writes although b leads: {late}")
    # A clean stop hands over at once: much sooner than the Lease runs out.
    began = time.monotonic()
    expect(b.stop() == 0, "a stop by SIGTERM ends with 0")
    wait("a leads again", lambda: (holder(cluster) or "").startswith("a-"))
    took = time.monotonic() - began
    expect(took < LEASE_SECONDS, f"the hand-over took {took:.1f} s")
    cluster.apply(thing("one", "3"))
    wait("a composes again", lambda: composed(cluster, "one", "3"))
    return f"handed over in {took:.1f} s"


def shard_of(name):
    """The shard of a Thing, as `engine::Ownership` computes it."""
    value = 0xcbf29ce484222325
    for part in (b"composite/things.example.org", b"", name.encode()):
        for byte in part + b"\0":
            value = (value ^ byte) * 0x100000001b3 % 2**64
    value ^= value >> 32
    value = (value * 0x9e3779b97f4a7c15 % 2**64) >> 16
    return 1 + value % SHARDS


def shards(cluster, options):
    flags = (*FLAGS, "--shards", str(SHARDS))
    choice = random.Random(options.seed)
    running = {user: cluster.start(user, *flags, POD_NAME=user) for user in "abc"}
    install(cluster)
    names = [f"thing-{n}" for n in range(30)]
    cluster.apply(*(thing(name, "0") for name in names))
    wait("all are composed", lambda: all(composed(cluster, name, "0") for name in names))
    divided = {user: {e["objectRef"]["name"] for e in cluster.requests(user, write=True) if e["objectRef"].get("resource") == "things"} for user in "abc"}
    expect(sum(1 for mine in divided.values() if mine) == 3, f"work is not divided: { {user: len(mine) for user, mine in divided.items()} }")
    deadline, round_number, events = time.monotonic() + options.seconds, 0, []
    while time.monotonic() < deadline:
        round_number += 1
        user = choice.choice("abc")
        event = choice.choice(("pause", "kill", "stop", "none"))
        events.append(f"{event} {user}")
        if event == "pause":
            running[user].pause()
        elif event == "kill":
            running[user].kill()
        elif event == "stop":
            running[user].stop()
        cluster.apply(*(thing(name, str(round_number)) for name in names))
        time.sleep(choice.uniform(0, 1.5 * LEASE_SECONDS))
        if event == "pause":
            running[user].resume()
        elif event in ("kill", "stop"):
            running[user] = cluster.start(user, *flags, POD_NAME=user, ready=False)
    text = str(round_number)
    wait("none is forgotten", lambda: all(composed(cluster, name, text) for name in names))
    checked = one_writer_at_a_time(cluster, names)
    return f"{round_number} rounds ({', '.join(events)}), {checked} writes checked"


def one_writer_at_a_time(cluster, names):
    """Every write of a Thing was received while its writer held the shard by the Leases that the server stored."""
    events = [e for e in cluster.requests(write=True) if e.get("responseStatus", {}).get("code", 500) < 300]
    taken = {}
    for event in events:
        ref = event["objectRef"]
        if ref.get("resource") == "leases" and ref.get("name", "").startswith("transom-shard-"):
            # Who wrote the Lease took it or gave it up.
            taken.setdefault(int(ref["name"].rsplit("-", 1)[1]), []).append((event["stageTimestamp"], event["user"]["username"]))
    checked = 0
    for event in events:
        ref, user = event["objectRef"], event["user"]["username"]
        if ref.get("resource") != "things" or ref.get("name") not in names or user not in "abc":
            continue
        before = [who for when, who in taken.get(shard_of(ref["name"]), []) if when <= event["requestReceivedTimestamp"]]
        expect(before and before[-1] == user, f"{user} wrote {ref['name']} at {event['requestReceivedTimestamp']} while {before[-1:]} held its shard")
        checked += 1
    expect(checked > len(names), f"only {checked} writes")
    return checked


def budget(cluster, _):
    """Requests for one new Thing with four parts, when others of its kind exist already."""
    cluster.start("a")
    install(cluster)
    cluster.apply(thing("first", "1"))
    wait("the first is composed", lambda: composed(cluster, "first", "1"))
    settled(cluster, "a")
    mark = cluster.audited()
    cluster.apply(thing("second", "1"))
    wait("the second is composed", lambda: composed(cluster, "second", "1"))
    settled(cluster, "a")
    of = [e for e in cluster.requests("a", since=mark) if e["verb"] != "watch" and e.get("objectRef", {}).get("resource") not in ("leases", "events")]
    shown = [f"{e['verb']} {e['requestURI'].split('?')[0]}" for e in of]
    expect(len(of) <= 8, f"{len(of)} requests: {shown}")
    return f"{len(of)} requests"
