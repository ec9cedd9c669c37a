"""`kill -9` of planes at every step of the start, the upgrade and the stop of a function that runs from its package.

Debug builds kill themselves at a step that TRANSOM_DIE_AT names, see crates/container/src/crash_injection.rs. The next start removes what the killed one left:
directories, cgroups, mounts; processes end by themselves. It is killed too, at the next step. The planes with runc, as root and as an ordinary user, and
that of an ordinary user without an OCI runtime live side by side; crates/transom/tests/scenarios/containers/killed.rs has the steps of root without one.
"""

import concurrent.futures
import http.client
import json
import signal
import time

import leftovers

OLD, NEW = "story-old", "story-new"
FUNCTIONS = "/apis/pkg.crossplane.io/v1/functions"
REVISIONS = "/apis/pkg.crossplane.io/v1/functionrevisions"
THING = "/apis/example.org/v1/things/one"
# What the process of the plane does for a container, in the order in which a life reaches it first.
STEPS = ("its directory is made", "its cgroups are made", "its plan is written", "its first process is started", "it accepts connections",
         "its calls are awaited", "its calls have ended", "it is asked to end", "its first process has ended", "the limits that it reached are read",
         "its cgroups are removed", "its directory is removed", "it is stopped", "all are stopped", "the directory of its session is removed")
# Those that a life reaches once for each of its two containers are also reached a second time: while another container runs, and at the end.
ONCE = ("its calls are awaited", "its calls have ended", "all are stopped", "the directory of its session is removed")
# Ordinary users may not make them.
OF_CGROUPS = {"its cgroups are made", "its cgroups are removed"}


class Life:
    """A plane that is started, has its function upgraded, and is stopped; and is killed on the way."""

    def __init__(self, suite, plane, packages):
        self.suite, self.plane, self.packages = suite, plane, packages
        self.run, self.log = plane.folder / "data/containers/run", plane.folder.parent / f"{plane.folder.name}.log"
        self.pids, self.kills = [], 0

    def prepare(self):
        """The first life, in which an XR is composed."""
        plane = self.plane.start()
        plane.apply(self.suite.function("function-go-templating", "xpkg.crossplane.io/crossplane-contrib/function-go-templating:v0.11.0"))
        plane.apply(self.function(self.packages[0]))
        plane.apply(self.suite.DEFINITION)
        plane.apply(self.suite.COMPOSITION)
        plane.apply(self.suite.thing("one"))
        plane.until_true(THING, "Ready")
        self.composed = self.maps()
        plane.end()

    def function(self, package):
        return self.suite.function(self.suite.NAME, package, **{"transom.io/runtime": "Package"})

    def maps(self):
        """The ConfigMaps that are there, each with its uid: one that was made anew has another."""
        found = self.plane.request("GET", "/api/v1/namespaces/default/configmaps")[1]["items"]
        return sorted((item["metadata"]["name"], item["metadata"]["uid"], json.dumps(item.get("data"))) for item in found)

    def is_killed_at(self, point):
        """Lives until it is killed or stopped. Afterwards nothing is left of the lives before."""
        left = self.sessions()
        if self.plane.is_served(TRANSOM_DIE_AT=point):
            self.upgrade_and_stop(point)
        code = self.plane.process.wait(self.suite.WITHIN)
        kills = self.log.read_text(errors="replace").count("killed at supervised: ")
        assert code == (-signal.SIGKILL if kills > self.kills else 0), (point, code, self.log.read_text(errors="replace")[-2000:])
        is_killed, self.kills = kills > self.kills, kills
        folder = self.plane.folder
        self.suite.until(lambda: f"{point}: processes end: {leftovers.processes(folder)}", lambda: not leftovers.processes(folder))
        self.nothing_left(point, left)
        self.pids.append(self.plane.process.pid)
        if not is_killed:
            self.nothing_left(point, self.sessions())
        elif STEPS[-1] not in point:
            assert self.sessions(), f"{point}: there is something that the next start must remove"
        return is_killed

    def sessions(self):
        return {path.name for path in self.run.iterdir()} if self.run.exists() else set()

    def nothing_left(self, point, sessions):
        """Nothing is there of sessions, and of the processes of planes that are over."""
        assert not sessions & self.sessions(), (point, sessions, self.sessions())
        cgroups = [path for path in self.suite.all_cgroups() for pid in self.pids if f"/transom-{pid}-" in path]
        assert not cgroups, (point, cgroups)
        mounts = [line for line in leftovers.mounts() if str(self.plane.folder) in line]
        assert not mounts, (point, mounts)

    def upgrade_and_stop(self, point):
        """Installs the version that is not installed when the other one runs, and ends the plane when only the new one runs. Requests fail when it is killed."""
        wanted, deadline = None, time.monotonic() + 2 * self.suite.WITHIN
        while self.plane.process.poll() is None:
            assert time.monotonic() < deadline, f"{point}: {self.packages.index(wanted) if wanted else 'none'} is not installed; see {self.log}"
            try:
                if wanted is None:
                    installed = self.plane.request("GET", f"{FUNCTIONS}/{self.suite.NAME}")[1]["spec"]["package"]
                    if self.runs_alone(installed):
                        wanted = self.packages[1 - self.packages.index(installed)]
                        self.plane.apply(self.function(wanted))
                elif self.runs_alone(wanted):
                    self.plane.process.terminate()
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.05)

    def runs_alone(self, package):
        """Whether a version runs, and no other one."""
        healthy = []
        for item in self.plane.request("GET", f"{REVISIONS}?labelSelector=pkg.crossplane.io/package={self.suite.NAME}")[1]["items"]:
            conditions = {c["type"]: c["status"] for c in item.get("status", {}).get("conditions", [])}
            if conditions.get("RuntimeHealthy") == "True":
                healthy.append(item["spec"]["image"])
        return healthy == [package] and sum(line.startswith("/function\0") for line in self.plane.command_lines()) == 1

    def works(self):
        """The last life: the function is called, and what was composed is what it was."""
        plane = self.plane.start()
        plane.until_true(f"{FUNCTIONS}/{self.suite.NAME}", "Healthy")
        assert self.maps() == self.composed, (self.maps(), self.composed)
        plane.apply(self.suite.thing("two"))
        plane.until_true(THING.replace("one", "two"), "Ready")
        plane.end()
        self.pids.append(plane.process.pid)
        assert not self.sessions(), self.sessions()
        self.nothing_left("the end", set())


def killed(suite, plane, packages):
    if not leftovers.killable(plane.binary):
        print("  a release build cannot be killed at steps", flush=True)
        return
    versions = [packages[OLD], packages[NEW]]
    planes = [plane] + [suite.Plane(plane.binary, plane.folder.with_name(f"{plane.folder.name}-{engine}-beside"), suite.ORDINARY_USER, engine) for engine in ("runc", "chroot")]
    try:
        with concurrent.futures.ThreadPoolExecutor(len(planes)) as pool:
            lives = [pool.submit(at_every_step, Life(suite, each, versions)) for each in planes]
            for life in lives:
                life.result()
    finally:
        for each in planes:
            if getattr(each, "process", None) and each.process.poll() is None:
                each.process.kill()


def at_every_step(life):
    began = time.monotonic()
    life.prepare()
    points = [(step, number) for step in STEPS for number in ((1,) if step in ONCE else (1, 2))]
    missed = {step for step, number in points if not life.is_killed_at(f"supervised/{step}:{number}")}
    life.works()
    assert missed == (set() if life.plane.user == "root" else OF_CGROUPS), missed
    who = "root" if life.plane.user == "root" else "a user"
    print(f"  {who} with {life.plane.engine}: {life.kills} kills in {time.monotonic() - began:.0f} s", flush=True)
