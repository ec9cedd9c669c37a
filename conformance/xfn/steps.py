"""`kill -9` at every step of a run, of a process that runs functions and of the processes of its containers.

Debug builds kill themselves at a step that TRANSOM_DIE_AT names, see crates/container/src/crash_injection.rs. After each kill and the next start,
processes, mounts, cgroups, network namespaces and directories are what they were before. The same in planes, for the steps of their own process.
"""

import os
import signal
import subprocess

from leftovers import killable, mounts, namespaces, processes

DOCUMENT = "config:\n  colour: blue\nobserved:\n  composite:\n    resource:\n      spec:\n        size: 3\ndesired:\n  resources: []\n"
# At least so many steps are known, by point; those of `enter` without an OCI runtime only.
LEAST = {"pull": 6, "run": 9, "outer": 5, "init": 5, "enter": 8}


class Before:
    """What there was before anything was killed."""

    def __init__(self, suite, folder):
        self.suite, self.folder = suite, folder
        self.mounts, self.namespaces = mounts(), namespaces()

    def new_mounts(self):
        """Those of the folder: others of the machine come and go."""
        return [line for line in mounts() if str(self.folder) in line and line not in self.mounts]

    def is_back(self, at, run):
        """The kernel ends processes within moments; all else is removed by the next start."""
        suite = self.suite
        suite.until(lambda: f"{at}: processes end: {processes(self.folder)}", lambda: not processes(self.folder))
        suite.until(lambda: f"{at}: network namespaces end: {namespaces() - self.namespaces}", lambda: namespaces() <= self.namespaces)
        suite.until(lambda: f"{at}: mounts end: {self.new_mounts()}", lambda: not self.new_mounts())
        assert not suite.cgroups(), (at, suite.cgroups())
        assert not run.exists() or not list(run.iterdir()), (at, list(run.iterdir()))


class Commands:
    """`transom xfn run` as the user of a plane that is not started."""

    def __init__(self, suite, plane, image):
        self.suite, self.plane, self.image = suite, plane, image
        self.cache = plane.folder / "cache"
        self.before = Before(suite, plane.folder)

    def run(self, die_at=None):
        command = self.plane.command("xfn", "run", self.image, "-", "--cache-dir", self.cache, "--container-runtime", self.plane.engine, *self.plane.flags)
        environment = {**os.environ, **({"TRANSOM_DIE_AT": die_at} if die_at else {})}
        return subprocess.run(command, input=DOCUMENT, capture_output=True, text=True, env=environment, timeout=self.suite.runtimes.WITHIN)

    def next_start(self, at):
        self.suite.until(lambda: f"{at}: processes end: {processes(self.plane.folder)}", lambda: not processes(self.plane.folder))
        done = self.run()
        assert done.returncode == 0 and 'colour: "blue"' in done.stdout, (at, done)
        self.before.is_back(at, self.cache / "containers/run")

    def kill_at_every_step(self, point):
        """Kills at the first step, the second, and so on, until the run passes. The number of kills."""
        number = 0
        while True:
            number += 1
            if point == "pull":
                subprocess.run(["rm", "-rf", self.cache / "containers/images"], check=True, timeout=self.suite.runtimes.WITHIN)
            done = self.run(f"{point}:{number}")
            if done.returncode == 0:
                return number - 1
            assert f"killed at {point}: " in done.stderr, (point, number, done)
            self.next_start(done.stderr.strip().splitlines()[-1])


def killed_at_every_step(suite, plane, images):
    if not killable(plane.binary):
        print("  a release build cannot be killed at steps", flush=True)
        return
    commands = Commands(suite, plane, images["label"])
    commands.next_start("before")
    points = ("pull", "run", "outer", "init", *(("enter",) if plane.engine == "chroot" else ()))
    kills = {point: commands.kill_at_every_step(point) for point in points}
    print(f"  kills: {kills}", flush=True)
    assert all(number >= LEAST[point] for point, number in kills.items()), kills
    for stage in [point for point in points if point not in ("pull", "run")]:
        for number in range(1, kills[stage] + 1):
            # Whether there is an answer depends on whether the process was needed any more.
            commands.run(f"{stage}-alone:{number}")
            commands.next_start(f"{stage}-alone:{number}")
    planes(suite, plane, images, kills)


def planes(suite, plane, images, kills):
    """A plane is killed at the steps of its first run after each start, by itself and when a process of the container is at a step."""
    before = Before(suite, plane.folder)
    plane.start()
    plane.apply(suite.DEFINITION)
    plane.apply(suite.composition("label", {"mode": "Pipeline", "pipeline": [{"step": "label", "inline": suite.inline(images["label"]), "input": suite.CONFIG}]}))
    plane.apply(suite.of("one", "label"))
    suite.until("the XR is composed", lambda: suite.maps(plane, "one") == {"sized": suite.SIZED})
    plane.end()
    for point in [point for point in kills if point != "pull"]:
        for number in range(1, kills[point] + 1):
            at = f"{point}:{number}"
            command = plane.command("up", "--data-dir", plane.folder / "data", "--listen", f"127.0.0.1:{suite.servers.free_port()}",
                                    "--container-runtime", plane.engine, *plane.flags)
            done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TRANSOM_DIE_AT": at}, timeout=suite.runtimes.WITHIN)
            assert done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL) and f"killed at {point}: " in done.stderr, (at, done.returncode, done.stderr[-2000:])
            suite.until(lambda: f"{at}: processes end", lambda: not processes(plane.folder))
            plane.start()
            suite.until(f"{at}: the next start composes", lambda: suite.maps(plane, "one") == {"sized": suite.SIZED})
            plane.end()
            before.is_back(at, plane.folder / "data/containers/run")
