"""The life of packages, step by step on the real Crossplane and on ours, from the same registry.

After each step both planes must come to hold the same: names, labels, owners, specs, conditions, entries of the Lock, reasons of
events. What differs on purpose is in `known.txt`; the comparison waits until nothing else does.
"""

import json
import time

import api
import install
import platforms
import snapshot

GROUP, PATH = "life.example.org", "acme"
WITHIN = 60  # seconds for a step; the original retries a failed package after up to a minute
CONFIGURATIONS = f"{snapshot.PKG}/v1/configurations"
REVISIONS = f"{snapshot.PKG}/v1/configurationrevisions"


class Plane:
    """One side: a client with the requests that the steps are made of."""

    def __init__(self, name, client):
        self.name, self.client = name, client

    def send(self, method, path, body=None, kind=api.JSON):
        answer = self.client.request(method, path, body=json.dumps(body) if body is not None else None, headers={"Content-Type": kind})
        if answer.rejected:
            raise SystemExit(f"{self.name}: {method} {path}: {answer.code} {answer.body}")
        return answer.body

    def get(self, path):
        answer = self.client.request("GET", path)
        return answer.body if answer.code == 200 else None

    def install(self, name, package, **spec):
        self.send("POST", CONFIGURATIONS, {"apiVersion": "pkg.crossplane.io/v1", "kind": "Configuration", "metadata": {"name": name}, "spec": {"package": package, **spec}})

    def change(self, name, **spec):
        self.send("PATCH", f"{CONFIGURATIONS}/{name}", {"spec": spec}, api.MERGE)

    def pause(self, name, paused):
        self.send("PATCH", f"{CONFIGURATIONS}/{name}", {"metadata": {"annotations": {"crossplane.io/paused": paused}}}, api.MERGE)

    def remove(self, name):
        self.send("DELETE", f"{CONFIGURATIONS}/{name}")

    def current(self, name):
        package = self.get(f"{CONFIGURATIONS}/{name}")
        return package["status"].get("currentRevision", "") if package else ""

    def activate(self, name):
        self.send("PATCH", f"{REVISIONS}/{self.current(name)}", {"spec": {"desiredState": "Active"}}, api.MERGE)

    def conditions(self, name):
        package = self.get(f"{CONFIGURATIONS}/{name}") or {}
        generation = package.get("metadata", {}).get("generation")
        return {one["type"]: one["status"] for one in package.get("status", {}).get("conditions", []) if one.get("observedGeneration") == generation}

    def is_healthy(self, *names):
        return all(self.conditions(name) == {"Installed": "True", "Healthy": "True"} for name in names)


def steps(registry):
    """Name, what is done, and when it is over."""
    def at(name):
        return registry.reference(f"{PATH}/{name}")

    everything = ("platform", "acme-middle", "acme-base")
    yield "install", lambda p: p.install("platform", at("platform:v1.0.0")), lambda p: p.is_healthy(*everything)
    yield "upgrade", lambda p: p.change("platform", package=at("platform:v1.1.0")), lambda p: p.is_healthy(*everything) and has(p, "extras")
    yield "roll back", lambda p: p.change("platform", package=at("platform:v1.0.0")), lambda p: p.is_healthy(*everything)
    yield "another tag of the same image", lambda p: p.change("platform", package=at("platform:same")), lambda p: p.is_healthy(*everything)
    yield ("manual activation", lambda p: p.change("platform", package=at("platform:v2.0.0"), revisionActivationPolicy="Manual"),
           lambda p: p.conditions("platform").get("Installed") == "False")
    yield "activated by hand", lambda p: p.activate("platform"), lambda p: p.is_healthy(*everything)
    yield "labels for all objects", lambda p: p.change("platform", commonLabels={"team": "a"}, commonAnnotations={"cost": "b"}), lambda p: p.is_healthy(*everything)
    yield ("history limit", lambda p: p.change("platform", package=at("platform:v1.1.0"), revisionActivationPolicy="Automatic", revisionHistoryLimit=1),
           lambda p: p.is_healthy(*everything))
    yield "a tag that is not there", lambda p: p.change("platform", package=at("platform:v9.9.9")), lambda p: p.conditions("platform").get("Healthy") == "False"
    yield "back to one that is", lambda p: p.change("platform", package=at("platform:v1.1.0")), lambda p: p.is_healthy(*everything)
    yield "paused", lambda p: p.pause("platform", "true"), lambda p: p.conditions("platform").get("Synced") == "False"
    yield "resumed", lambda p: p.pause("platform", None), lambda p: p.is_healthy(*everything)
    yield "a dependency that nothing satisfies", lambda p: p.install("greedy", at("greedy:v1.0.0")), lambda p: p.conditions("greedy").get("Healthy") == "False"
    yield "removed again", lambda p: p.remove("greedy"), lambda p: p.get(f"{CONFIGURATIONS}/greedy") is None
    yield "needs another Crossplane", lambda p: p.install("future", at("future:v1.0.0")), lambda p: p.conditions("future").get("Healthy") == "False"
    yield "constraint ignored", lambda p: p.change("future", ignoreCrossplaneConstraints=True), lambda p: p.is_healthy("future")
    yield "an object of another package", lambda p: p.install("thief", at("thief:v1.0.0")), lambda p: p.conditions("thief").get("Healthy") == "False"
    yield "thief removed", lambda p: p.remove("thief"), lambda p: p.get(f"{CONFIGURATIONS}/thief") is None
    yield "a dependency upgraded by hand", lambda p: p.change("acme-base", package=at("base:v1.1.0")), lambda p: p.conditions("acme-middle").get("Healthy") == "False"
    yield "and downgraded", lambda p: p.change("acme-base", package=at("base:v1.0.0")), lambda p: p.is_healthy(*everything)
    yield "removal", lambda p: p.remove("platform"), lambda p: p.get(f"{CONFIGURATIONS}/platform") is None and not has(p, "tops")
    # One after the other: what something still depends on is installed again.
    for name in ("acme-middle", "acme-base", "future"):
        yield f"removal of {name}", lambda p, n=name: p.remove(n), lambda p, n=name: p.get(f"{CONFIGURATIONS}/{n}") is None and not locked(p, n)


def has(plane, plural):
    return plane.get(f"{snapshot.EXT}/v2/compositeresourcedefinitions/{plural}.{GROUP}") is not None


def locked(plane, package):
    """Whether the Lock still has a revision of a package."""
    lock = plane.get(f"{snapshot.PKG}/v1beta1/locks/lock") or {}
    return any(entry["name"].startswith(f"{package}-") for entry in lock.get("packages") or [])


def run(planes, registry, options, known):
    real, transom = planes
    platforms.publish(registry, PATH, GROUP)
    crane = install.registry() / "crane"
    platforms.run(crane, "tag", registry.reference(f"{PATH}/platform:v1.0.0"), "same", environment=registry.environment())
    passed = failed = 0
    for name, act, is_over in steps(registry):
        for plane in planes:
            act(plane)
        began, left = time.monotonic(), ["not compared yet"]
        while left and time.monotonic() - began < WITHIN:
            time.sleep(0.2)
            late = [f"{plane.name} did not get there: {plane.conditions('platform')}" for plane in planes if not is_over(plane)]
            found = snapshot.differences(snapshot.take(real.client, GROUP), snapshot.take(transom.client, GROUP))
            left = late or [line for line in found if not known.explains(f"lifecycle: {name}: {line}")]
        for line in left:
            print(f"lifecycle: {name}: {line}", flush=True)
        if options.verbose:
            print(f"lifecycle: {name}: {time.monotonic() - began:.1f} s", flush=True)
        passed, failed = passed + (not left), failed + bool(left)
        if left:
            # What differs now differs in all steps that follow.
            break
    print(f"lifecycle: {passed} steps alike, {failed} differ", flush=True)
    return passed, failed
