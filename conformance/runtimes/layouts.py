"""Which OCI runtimes work on this machine without us, with cgroups as they are mounted and as they are mounted elsewhere.

A process in a mount namespace of its own can have them mounted as on a machine with version 1 only, or with version 2 only: there the controllers that
version 1 uses are missing.
"""

import json
import os
import pathlib
import shutil
import subprocess

import install

# What makes a layout from that of this machine, in a mount namespace of its own.
LAYOUTS = {
    "": "true",
    "v1": "umount /sys/fs/cgroup/unified",
    "v2": "umount -R /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup",
}
PATH = f"{os.environ['PATH']}:/usr/sbin"


def within(layout, command):
    """A command in a layout. It keeps the id of the process."""
    return ["unshare", "-m", "sh", "-c", f'{LAYOUTS[layout]} && exec "$@"', "sh", *command] if layout else command


def bundle(folder):
    """A directory with the configuration of a container that ends at once."""
    if not folder.exists():
        if not shutil.which("busybox"):
            install.debian("busybox-static")
        (folder / "rootfs/bin").mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), folder / "rootfs/bin/true")
        subprocess.run([shutil.which("runc", path=PATH), "spec"], cwd=folder, check=True)
        config = json.loads((folder / "config.json").read_text())
        config["process"] |= {"terminal": False, "args": ["/bin/true"]}
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def problem(engine, layout, folder):
    """Why an OCI runtime does not work by itself in a layout; nothing if it does."""
    program = shutil.which(engine, path=PATH)
    if program is None:
        return "it is not installed"
    command = [program, "--root", str(folder / "state"), *(["--cgroup-manager=cgroupfs"] if engine == "crun" else []), "run", "--bundle", str(bundle(folder / "bundle")), f"bare-{os.getpid()}"]
    done = subprocess.run(within(layout, command), capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"


def usable(engine, folder):
    """The first layout in which an OCI runtime works by itself, or None; what does not work is printed."""
    if engine == "crun" and not shutil.which(engine, path=PATH):
        install.debian(engine)
    for layout in ("", "v1"):
        why = problem(engine, layout, pathlib.Path(folder))
        if why is None:
            return layout
        print(f"{engine}{layout and f' with cgroups {layout}'}: not possible here: {why}", flush=True)
    return None
