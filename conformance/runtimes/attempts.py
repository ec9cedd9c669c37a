"""Hostile functions: what each tries fails, is named in a condition, and an XR beside them stays Ready all the while.

What limits stop (memory, processes, files, output, processor time, the time to end) is named by the control plane. What the kernel refuses without a
report is named by the function itself: it tries in a call, and answers with a fatal result that has the errors.
"""

import json

from steady import Steady

FUNCTIONS = "/apis/pkg.crossplane.io/v1/functions"
REVISIONS = "/apis/pkg.crossplane.io/v1/functionrevisions"
THINGS = "/apis/example.org/v1/things"
# What is tried in a call of each function, and how its error is described: as the program itself reports it.
IN_CALLS = {
    "network": {"the host's listener": ("connection refused",), "an outside address": ("network is unreachable",), "names": ("lookup example.org",),
                "interfaces": ("loopback only",), "raw sockets": ("not permitted",)},
    "files": {"a file of the host": ("no such file",), "a file of the host through /proc": ("no such file", "permission denied"), "its root": ("read-only file system",),
              "mounts": ("not permitted", "permission denied"), "devices": ("not permitted",), "another root": ("not permitted",), "its user": ("not permitted", "invalid argument"),
              "kernel settings": ("read-only file system", "permission denied", "no such file"), "kernel log": ("not permitted",)},
    "processes": {"other processes": ("its own only",), "a process of the host": ("no such process", "not tried"), "tracing": ("not permitted", "no such process"),
                  "privileges": ("no capabilities",)},
}
# Less than the processors of a machine, so that the limit is reached on every machine.
FLAGS = ("--function-call-timeout", "3s", "--function-cpu", "500m")


def steady(suite, plane):
    """The XR beside the hostile functions."""
    def sizes():
        items = plane.request("GET", "/api/v1/namespaces/default/configmaps")[1]["items"]
        return [item["data"].get("size") for item in items if item["metadata"].get("labels", {}).get("crossplane.io/composite") == "one"]
    return Steady(suite, plane, f"{THINGS}/one", lambda size: {**suite.thing("one"), "spec": {"size": size}}, sizes)


def steady_composition(suite):
    """Composes a ConfigMap with the size of the XR; the genuine function beside the hostile ones says that it is ready."""
    text = json.dumps(suite.COMPOSITION).replace("data: {a: b}", "data: {a: b, size: '{{ .observed.composite.resource.spec.size }}'}")
    return json.loads(text)


def hostile_thing(plane, mode):
    """An XR whose only function is hostile in the call."""
    kind = {"apiVersion": "example.org/v1", "kind": "Thing"}
    name = f"hostile-{mode}"
    plane.apply({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": name, "labels": {"case": name}},
                 "spec": {"compositeTypeRef": kind, "mode": "Pipeline", "pipeline": [{"step": mode, "functionRef": {"name": name}}]}})
    plane.apply({**kind, "metadata": {"name": name}, "spec": {"size": 1, "crossplane": {"compositionSelector": {"matchLabels": {"case": name}}}}})


def named(suite, plane, path, kind, words):
    """A condition has these words."""
    suite.until(lambda: f"{path} names {words!r}: {plane.condition(path, kind)}", lambda: words in plane.condition(path, kind)["message"])
    return plane.condition(path, kind)["message"]


def hostile(suite, plane, packages):
    """A hostile program gets nothing, and a function beside it works on."""
    plane.flags = (*plane.flags, *FLAGS)
    plane.start()
    plane.apply(suite.function("function-go-templating", "xpkg.crossplane.io/crossplane-contrib/function-go-templating:v0.11.0"))
    plane.apply(suite.function(suite.NAME, packages[suite.NAME], **{"transom.io/runtime": "Package"}))
    plane.apply(suite.DEFINITION)
    plane.apply({**steady_composition(suite), "metadata": {"name": "things", "labels": {"case": "things"}}})
    # Before there is another Composition that it could choose.
    with steady(suite, plane) as beside:
        for mode in ("attempts", "memory", "log", "cpu", "term", *IN_CALLS):
            plane.apply(suite.function(f"hostile-{mode}", packages[f"hostile-{mode}"]))
        for mode in ("cpu", "term", *IN_CALLS):
            hostile_thing(plane, mode)
        in_calls(suite, plane)
        burning(suite, plane)
        beside.is_composed_with(2)
        at_start(suite, plane)
        stubborn(suite, plane, packages)
        beside.is_composed_with(3)
    plane.end()
    assert not list((plane.folder / "data/containers/run").iterdir()), "nothing is left"
    assert not suite.cgroups(), suite.cgroups()


def in_calls(suite, plane):
    """What is tried in a call is in `Synced` of the XR, with the error of each attempt."""
    for mode, attempts in IN_CALLS.items():
        path = f"{THINGS}/hostile-{mode}"
        message = named(suite, plane, path, "Synced", f"{list(attempts)[-1]}: refused")
        assert plane.condition(path, "Synced")["status"] == "False" and "SUCCEEDED" not in message, message
        for attempt, errors in attempts.items():
            assert f"{attempt}: refused (" in message, (attempt, message)
            error = message.split(f"{attempt}: refused (", 1)[1].split("); ")[0]
            assert any(words in error for words in errors), (attempt, error)
        assert plane.condition(path, "Ready")["status"] != "True", mode


def burning(suite, plane):
    """A call that uses all processors is given up after its timeout, and the limit is named where there are cgroups."""
    named(suite, plane, f"{THINGS}/hostile-cpu", "Synced", "did not answer within 3 s")
    if plane.has_cgroups():
        named(suite, plane, f"{FUNCTIONS}/hostile-cpu", "Healthy", "a call took too long while it used all processor time that it may (0.5 of a processor)")


def at_start(suite, plane):
    """What programs try before they are called, or without being called."""
    suite.until("all attempts are made", lambda: "attempts: done" in plane.logs("hostile-attempts"))
    named(suite, plane, f"{FUNCTIONS}/hostile-attempts", "Healthy", "it filled /tmp (64 MiB)")
    if plane.has_cgroups():
        # Where there are none, the kernel refuses processes and counts nothing.
        named(suite, plane, f"{FUNCTIONS}/hostile-attempts", "Healthy", "it reached its limit of processes and threads (512)")
        named(suite, plane, f"{FUNCTIONS}/hostile-memory", "Healthy", "it reached its limit of memory (512 MiB), and processes of it were killed")
    named(suite, plane, f"{FUNCTIONS}/hostile-log", "Healthy", "it printed more than 1 MiB in a second")
    tried = [line for line in plane.logs("hostile-attempts").splitlines() if ": " in line and not line.startswith("attempts")]
    assert len(tried) >= 18, tried
    assert not [line for line in tried if "SUCCEEDED" in line], tried
    memory = f"{FUNCTIONS}/hostile-memory"
    suite.until(lambda: f"the limit of memory is named: {plane.condition(memory, 'Healthy')}",
                lambda: any(words in plane.condition(memory, "Healthy")["message"] for words in ("limit of memory", "ended with exit code 2", "out of memory")))
    held = max(int(line.split()[1]) for line in plane.logs("hostile-memory").splitlines() if line.startswith("holds"))
    assert held <= 512, f"{held} MiB"
    logs = plane.folder / "data/containers/logs/hostile-log"
    suite.until("the endless log is full", lambda: sum(file.stat().st_size for file in logs.iterdir()) > 2 << 20)
    assert sum(file.stat().st_size for file in logs.iterdir()) < 5 << 20


def stubborn(suite, plane, packages):
    """A revision that ignores SIGTERM is killed when it is replaced, and says so."""
    plane.until_true(f"{THINGS}/hostile-term", "Ready")
    revision = plane.request("GET", f"{FUNCTIONS}/hostile-term")[1]["status"]["currentRevision"]
    plane.apply(suite.function("hostile-term", packages["hostile-mild"]))
    named(suite, plane, f"{REVISIONS}/{revision}", "RuntimeHealthy", "it did not end within 5 s of SIGTERM and was killed")
    plane.until_true(f"{FUNCTIONS}/hostile-term", "Healthy")
