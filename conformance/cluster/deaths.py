"""Pods and processes that end while composite resources change."""

import contextlib
import os
import pathlib
import signal
import time

import functions
import node
from functions import NAME, REVISIONS, TRANSOM, WIDGETS, Changes, is_ready, pods
from running import NAMESPACE, expect, wait

# A process that takes over calls functions only when it has looked at their revisions as the holder of the Lease, and until then says this of
# composite resources, sometimes with an empty message. It should wait instead: then what follows from this is to be removed.
NOT_YET = "this process does not hold the Lease that it would write by"


def deaths(cluster):
    revision = functions.set_up(cluster)
    with Changes(cluster) as changes:
        took = [seconds(of, cluster, changes) for of in (pod_is_deleted, process_is_killed)]
    wrong = [problem for problem in changes.problems if NOT_YET not in problem and not problem.endswith("Synced is False, ReconcileError: None")]
    expect(not wrong, f"conditions: {wrong[:5]}")
    of_function(cluster, revision)
    notes = f"composed again {took[0]:.0f} s after the pod was deleted, {took[1]:.0f} s after the process was killed; {changes.number} changes"
    return notes + (f"; {len(changes.problems)} answers said that {NOT_YET}" if changes.problems else "")


def seconds(event, cluster, changes):
    changes.arrive("changes are composed before")
    began = time.monotonic()
    event(cluster)
    changes.arrive("changes are composed after")
    return time.monotonic() - began


def pod_is_deleted(cluster):
    before = {pod["metadata"]["uid"] for pod in pods(cluster, TRANSOM)}
    cluster.kubectl("delete", "pod", "-n", NAMESPACE, "-l", TRANSOM, "--wait=false")
    wait("another pod is ready", lambda: any(is_ready(pod) and pod["metadata"]["uid"] not in before for pod in pods(cluster, TRANSOM)))


def process_is_killed(cluster):
    found = [int(path.parent.name) for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if command(path).startswith(b"/transom\0controller\0")]
    expect(len(found) == 1, f"one process of Transom: {found}")
    os.kill(found[0], signal.SIGKILL)
    wait("the container is started again", lambda: any(
        is_ready(pod) and pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods(cluster, TRANSOM)))


def command(path):
    with contextlib.suppress(OSError):
        return path.read_bytes()
    return b""


def of_function(cluster, revision):
    """While nothing can run the function, conditions say so; and when it is back, what changed meanwhile is composed."""
    number = functions.size(cluster, WIDGETS[0]) + 1
    cluster.kubectl("cordon", node.NAME)
    cluster.kubectl("delete", "pod", "-n", NAMESPACE, "-l", f"pkg.crossplane.io/revision={revision}")
    cluster.apply(functions.widget(WIDGETS[0], number))
    path = f"{functions.KIND}/{WIDGETS[0]}"
    said = wait("Synced says so", lambda: (found := cluster.condition(path, "Synced")).get("status") == "False" and found["message"])
    expect(NAME in said or revision in said, said)
    wait("RuntimeHealthy says so", lambda: cluster.condition(f"{REVISIONS}/{revision}", "RuntimeHealthy").get("status") == "False")
    cluster.kubectl("uncordon", node.NAME)
    wait("RuntimeHealthy says that it is back", lambda: cluster.is_true(f"{REVISIONS}/{revision}", "RuntimeHealthy"))
    wait("the change is composed", lambda: functions.size(cluster, WIDGETS[0]) == number)
