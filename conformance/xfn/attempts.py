"""Hostile images: what their programs try, and tricks in their layers. Each attempt fails, and is named in the condition of its XR within its timeout;
another XR is composed meanwhile.
"""

import datetime
import io
import tarfile

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
# How long after the creation of an XR its condition may say what its function tried in 3 seconds, on a busy machine that pulls the image first.
NAMED_WITHIN = 40  # seconds
# What the condition of an XR says whose function's image has a trick in its layers.
TRICKS = {"symlink": "cannot unpack \"etc/pwned\"", "hardlink": "the link leaves the image", "device": "has the device \"dev-sda\", which is refused", "whiteout": "cannot unpack \"out/.wh.secret\""}


def hostile(suite, plane, images):
    """Each attempt fails and is named, within its timeout, and another XR is composed meanwhile."""
    suite.start(plane)
    for mode in NAMED:
        spec = {"mode": "Pipeline", "pipeline": [{"step": mode, "inline": suite.inline(images[f"hostile-{mode}"], "3s")}]}
        if mode == "stdin":
            spec["pipeline"][0]["input"] = {**suite.CONFIG, "large": "x" * 500_000}
        plane.apply(suite.composition(mode, spec))
        plane.apply(suite.of(f"hostile-{mode}", mode))
    plane.apply(suite.compositions(images)[1])
    plane.apply(suite.of("two", "mixed"))
    suite.until(lambda: f"the other XR is composed: {plane.condition(f'{suite.THING}/two', 'Synced')}", lambda: suite.maps(plane, "two").get("sized") == suite.SIZED)
    for mode, words in {**NAMED, **(NAMED_BY_CGROUPS if plane.user == "root" else {})}.items():
        def message():
            return plane.condition(f"{suite.THING}/hostile-{mode}", "Synced")["message"]
        suite.until(lambda: f"{mode} is named by one of {words}: {message()!r}", lambda: any(word in message() for word in words))
        assert "SUCCEEDED" not in message(), message()
        within = seconds_until_named(plane, f"{suite.THING}/hostile-{mode}")
        assert within <= NAMED_WITHIN, (mode, within)
    plane.until_true(f"{suite.THING}/two", "Ready")
    plane.end()
    suite.nothing_left(plane)


def seconds_until_named(plane, path):
    """How long after the creation of an XR its condition `Synced` became what it is."""
    created = plane.request("GET", path)[1]["metadata"]["creationTimestamp"]
    times = [datetime.datetime.fromisoformat(text) for text in (created, plane.condition(path, "Synced")["lastTransitionTime"])]
    return (times[1] - times[0]).total_seconds()


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
