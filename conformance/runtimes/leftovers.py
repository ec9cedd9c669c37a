"""What containers may leave behind when a process that runs them is killed."""

import os
import pathlib


def killable(binary):
    """Whether the binary can be killed at steps: release builds cannot."""
    return b"TRANSOM_DIE_AT" in pathlib.Path(binary).read_bytes()


def namespaces():
    """The network namespaces of all processes of the machine."""
    found = set()
    for entry in pathlib.Path("/proc").glob("[0-9]*/ns/net"):
        try:
            found.add(os.readlink(entry))
        except OSError:
            continue
    return found


def mounts():
    return pathlib.Path("/proc/self/mountinfo").read_text().splitlines()


def processes(folder):
    """Processes that were started from a folder, or that have something of it mounted, as those of its containers have."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if any(str(folder) in (entry / file).read_text(errors="replace") for file in ("cmdline", "mountinfo")):
                found.append(entry.name)
        except OSError:
            continue
    return found
