"""What a new user does: installs a genuine function from a registry, upgrades it with both versions serving, keeps one Composition at the old one by
a label, moves composite resources over in waves with `transom rollout`, and back again.
"""

import copy
import json
import subprocess

OLD, NEW = "story-old", "story-new"
REVISIONS = "/apis/pkg.crossplane.io/v1/functionrevisions"
COUNT = 4


class Story:
    def __init__(self, suite, plane, packages):
        self.suite, self.plane = suite, plane
        self.packages = {"stable": packages[OLD], "alpha": packages[NEW]}

    def install(self, channel):
        """Installs the version of a channel, from the registry, beside the one before."""
        function = self.suite.function(self.suite.NAME, self.packages[channel], **{"transom.io/runtime": "Package"})
        function["metadata"]["labels"] = {"release-channel": channel}
        function["spec"].update(activeRevisionLimit=2, revisionHistoryLimit=4)
        self.plane.apply(function)
        self.suite.until(lambda: f"the version of {channel} can be called: {self.revisions()}", lambda: self.revisions().get(channel, ("", ""))[1] == "True")

    def revisions(self):
        """The names of the function's active revisions and whether they run, by channel."""
        found = {}
        for item in self.plane.request("GET", f"{REVISIONS}?labelSelector=pkg.crossplane.io/package={self.suite.NAME}")[1]["items"]:
            conditions = {c["type"]: c["status"] for c in item.get("status", {}).get("conditions", [])}
            if item["spec"]["desiredState"] == "Active":
                found[item["metadata"]["labels"].get("release-channel")] = (item["metadata"]["name"], conditions.get("RuntimeHealthy", ""))
        return found

    def compose(self, name, channel, text):
        """A Composition whose last step selects the revision of a channel."""
        composition = copy.deepcopy(self.suite.COMPOSITION)
        composition["metadata"]["name"] = name
        make, ready = composition["spec"]["pipeline"]
        make["input"]["inline"]["template"] = make["input"]["inline"]["template"].replace("a: b", f"a: {text}")
        ready["functionRevisionSelector"] = {"matchLabels": {"release-channel": channel}}
        self.plane.apply(composition)

    def thing(self, name, composition, size=1):
        self.plane.apply({**self.suite.thing(name), "spec": {"size": size, "crossplane": {"compositionRef": {"name": composition}}}})

    def until_composed(self, name, channel, text):
        """Waits until an XR is ready, composed by the revision of a channel, with this text in its ConfigMap."""
        revision = self.revisions()[channel][0]

        def is_so():
            thing = self.plane.request("GET", f"/apis/example.org/v1/things/{name}")[1]
            by = [r["name"] for r in thing.get("status", {}).get("watchedResourceRefs", []) if r["kind"] == "FunctionRevision"]
            maps = self.plane.request("GET", "/api/v1/namespaces/default/configmaps")[1]["items"]
            texts = [m["data"]["a"] for m in maps if any(owner["name"] == name for owner in m["metadata"].get("ownerReferences", []))]
            return by == [revision] and texts == [text] and self.plane.condition(f"/apis/example.org/v1/things/{name}", "Ready")["status"] == "True"
        self.suite.until(f"{name} is composed by {revision} and says {text}", is_so)

    def rollout(self, *arguments):
        """A command of the user. Returns what it prints."""
        command = self.plane.command("rollout", *arguments, "-o", "json", "--kubeconfig", self.plane.folder / "data/kubeconfig")
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return json.loads(done.stdout)


def story(suite, plane, packages):
    user = Story(suite, plane, packages)
    plane.start()
    plane.apply(suite.function("function-go-templating", "xpkg.crossplane.io/crossplane-contrib/function-go-templating:v0.11.0"))
    plane.apply(suite.DEFINITION)
    user.install("stable")
    user.compose("things", "stable", "old")
    user.compose("kept", "stable", "old")
    things = [f"thing-{n}" for n in range(COUNT)]
    for name, composition in [*((name, "things") for name in things), ("kept", "kept")]:
        user.thing(name, composition)
    for name in [*things, "kept"]:
        user.until_composed(name, "stable", "old")

    # The upgrade: both versions serve, and nothing has moved.
    assert user.rollout("pin", "things")["pinned"] == COUNT
    user.install("alpha")
    assert sorted(user.revisions()) == ["alpha", "stable"], user.revisions()
    suite.until("both containers run", lambda: sum("/function" in line for line in plane.command_lines()) >= 2)
    user.compose("things", "alpha", "new")
    # The plan composes with the new version, in a container of the command.
    suite.until("there is a new revision of the Composition", lambda: user.rollout("plan", "things", "--container-runtime", "none")["waves"] != [])
    planned = user.rollout("plan", "things", "--waves", "1,50%,100%", "--container-runtime", plane.engine, "--cache-dir", plane.folder / "cache")
    assert planned["summary"] == {"resources": COUNT, "create": 0, "change": COUNT, "delete": 0, "failing": 0, "unknown": 0}, planned["summary"]
    fields = [field for resource in planned["resources"] for change in resource["changes"] for field in change["fields"]]
    assert fields == [{"path": "data.a", "before": '"old"', "after": '"new"'}] * COUNT, fields
    for name in things:
        user.until_composed(name, "stable", "old")

    # Over in waves, while the other Composition stays at the old version; and back.
    done = user.rollout("start", "things", "--waves", "1,50%,100%", "--yes")
    assert done["phase"] == "Done" and [wave["ready"] for wave in done["waves"]] == [1, 1, 2], done
    for name in things:
        user.until_composed(name, "alpha", "new")
    user.thing("kept", "kept", size=2)
    user.until_composed("kept", "stable", "old")
    assert user.rollout("rollback", "things")["phase"] == "RolledBack"
    for name in things:
        user.until_composed(name, "stable", "old")
    plane.end()
    for folder in (plane.folder / "data", plane.folder / "cache"):
        run = folder / "containers/run"
        assert not run.exists() or not list(run.iterdir()), f"nothing is left in {run}"
    assert not suite.cgroups(), suite.cgroups()
