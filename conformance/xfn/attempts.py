"""Hostile images: what their programs try, and tricks in their layers. Each attempt fails, and is named in the condition of its XR, and each call ends
within its timeout; another XR stays ready meanwhile, and is composed as it is changed.
"""

import io
import re
import tarfile

from steady import Steady

# What the condition of an XR with a hostile function says: with cgroups, and without.
NAMED = {
    "network": ("network: refused",), "files": ("files: refused",), "processes": ("processes: refused",), "proc": ("proc: refused",),
    "fork": ("limit of 512 processes", "limit of memory", "can't fork", "Resource temporarily unavailable", "did not end within"),
    "memory": ("limit of memory", "memory exhausted", "out of memory"), "cpu": ("did not end within 3 s",), "disk": ("No space left on device",),
    "stderr": ("more than 1048576 bytes to standard error",), "stdout": ("more than 67108864 bytes to standard output", "did not end within"),
    "stdin": ("did not end within 3 s",), "closed": ("its output is not a FunctionIO: it is empty",),
    "term": ("did not end within 3 s",), "daemon": ("did not end within 3 s",),
}
# The same where cgroups limit it.
NAMED_BY_CGROUPS = {"fork": ("it reached its limit of 512 processes", "it reached its limit of memory, 128 MiB"), "memory": ("it reached its limit of memory, 128 MiB",),
                    "cpu": ("did not end within 3 s; it used all of its 100 m of processor time",)}
TIMEOUT = 3  # seconds
# What a call may take beyond its timeout, on a busy machine: its image is pulled first, its container made, and ended. With the timeout it is the upper bound of
# a bucket of the histogram.
GRACE = 7  # seconds
CALLS = "function_run_function_seconds"
# What the condition of an XR says whose function's image has a trick in its layers.
TRICKS = {"symlink": "cannot unpack \"etc/pwned\"", "hardlink": "the link leaves the image", "device": "has the device \"dev-sda\", which is refused", "whiteout": "cannot unpack \"out/.wh.secret\""}


def hostile(suite, plane, images):
    """Each attempt fails and is named, each call ends within its timeout, and another XR stays ready all the while."""
    suite.start(plane)
    plane.apply(suite.compositions(images)[1])
    with steady(suite, plane) as beside:
        for mode in NAMED:
            spec = {"mode": "Pipeline", "pipeline": [{"step": mode, "inline": suite.inline(images[f"hostile-{mode}"], f"{TIMEOUT}s")}]}
            if mode == "stdin":
                spec["pipeline"][0]["input"] = {**suite.CONFIG, "large": "x" * 500_000}
            plane.apply(suite.composition(mode, spec))
            plane.apply(suite.of(f"hostile-{mode}", mode))
        beside.is_composed_with(2)
        for mode, words in {**NAMED, **(NAMED_BY_CGROUPS if plane.user == "root" else {})}.items():
            is_named(suite, plane, mode, words)
        beside.is_composed_with(3)
        ended_in_time(plane)
    plane.end()
    suite.nothing_left(plane)


def steady(suite, plane):
    """The XR beside the hostile ones: its container functions compose what a built-in function calls ready."""
    def manifest(size):
        return {**suite.of("two", "mixed"), "spec": {**suite.of("two", "mixed")["spec"], "size": size}}
    return Steady(suite, plane, f"{suite.THING}/two", manifest, lambda: [data["size"] for data in suite.maps(plane, "two").values() if "size" in data])


def is_named(suite, plane, mode, words):
    def message():
        return plane.condition(f"{suite.THING}/hostile-{mode}", "Synced")["message"]
    suite.until(lambda: f"{mode} is named by one of {words}: {message()!r}", lambda: any(word in message() for word in words))
    assert "SUCCEEDED" not in message(), message()


def ended_in_time(plane):
    """No call of a hostile function took longer than its timeout and the grace, as the plane measures calls."""
    within, slowest = TIMEOUT + GRACE, {}
    metrics = plane.request("GET", "/metrics")[1]
    for mode in NAMED:
        calls, took, in_time = (total(metrics, f"{CALLS}_{kind}", function_name=mode, **bound) for kind, bound in
                                (("count", {}), ("sum", {}), ("bucket", {"le": within})))
        assert calls > 0 and in_time == calls, f"{mode}: {calls - in_time:.0f} of {calls:.0f} calls took longer than {within} s"
        slowest[mode] = took / calls
    mode = max(slowest, key=slowest.get)
    print(f"  all calls ended within {within} s of {TIMEOUT} s and a grace; those that took longest, of {mode}, {slowest[mode]:.1f} s on average", flush=True)


def total(metrics, name, **labels):
    """The sum of the series of a metric that have these labels."""
    found = [line for line in metrics.splitlines() if line.startswith(f"{name}{{") and all(f'{key}="{value}"' in line for key, value in labels.items())]
    return sum(float(re.search(r"\} (\S+)", line).group(1)) for line in found)


def layers(suite, plane, images):
    """Links, devices and whiteouts in layers neither read nor change what is outside of the image."""
    suite.start(plane)
    outside = images["outside"]
    for trick in TRICKS:
        plane.apply(suite.composition(trick, {"mode": "Pipeline", "pipeline": [{"step": trick, "inline": suite.inline(images[f"trick-{trick}"], "5s")}]}))
        plane.apply(suite.of(f"trick-{trick}", trick))
    for trick, words in TRICKS.items():
        condition = lambda: plane.condition(f"{suite.THING}/trick-{trick}", "Synced")  # noqa: E731
        suite.until(lambda: f"{trick} is named by {words!r}: {condition()}", lambda: words in condition()["message"])
        message = condition()["message"]
        assert condition()["status"] == "False" and "SUCCEEDED" not in message, message
        assert sorted(path.name for path in outside.iterdir()) == ["secret"], list(outside.iterdir())
        assert (outside / "secret").read_text() == "of the host"
        print(f"  {trick}: {condition()['status']} {message[:160]}", flush=True)
    plane.end()
    suite.nothing_left(plane)


def tricks(folder, outside):
    """Layers that try to reach a folder of the host: each is a list of archives."""
    def layer(name, *entries):
        path = folder / f"{name}.tar"
        with tarfile.open(path, "w") as archive:
            for entry, content in entries:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        return path

    def entry(name, kind=tarfile.REGTYPE, target="", content=b""):
        made = tarfile.TarInfo(name)
        made.type, made.linkname, made.mode = kind, target, 0o755
        made.devmajor, made.devminor = 8, 0
        return made, content
    up = "../" * 12
    return {
        "symlink": [layer("symlink-1", entry("etc", tarfile.SYMTYPE, str(outside))), layer("symlink-2", entry("etc/pwned", content=b"x"))],
        "hardlink": [layer("hardlink", entry("leak", tarfile.LNKTYPE, f"{up}{outside}/secret"))],
        "device": [layer("device", entry("dev-sda", tarfile.BLKTYPE))],
        "whiteout": [layer("whiteout-1", entry("out", tarfile.SYMTYPE, str(outside))), layer("whiteout-2", entry("out/.wh.secret"), entry(f"{up}{outside}/.wh.secret".lstrip("/")))],
    }
