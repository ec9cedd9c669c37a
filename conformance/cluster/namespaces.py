"""Runs a command in network, mount and process namespaces of its own, in which a node can be made, and leaves nothing behind.

`run(folder, command)` is called outside. This file, as a program, is process 1 inside: it prepares the namespaces, starts the command and
takes the processes that lost their parents, as the shims of containers do. When it ends, the kernel ends all others, and with the last
one mounts, addresses and rules vanish. What belongs to no namespace is removed by `run`: control groups, and the folders that are mounted
over. When `run` itself is killed, process 1 ends too, and the next `run` removes the rest.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

ADDRESS = "10.250.0.1"  # of the node, on its loopback interface
SERVICES = "10.96.0.0/16"
CONTROL_GROUPS = pathlib.Path("/sys/fs/cgroup")
# Paths that containerd, its shims, the plugins for networks, and kubelet have at fixed places.
FIXED = ("/run/netns", "/run/containerd", "/var/lib/cni", "/var/log/containers", "/var/lib/kubelet")
# kubelet writes these settings, which no namespace has for itself. It gets files instead.
SETTINGS = {"/proc/sys/vm/overcommit_memory": "1", "/proc/sys/kernel/panic": "10", "/proc/sys/kernel/panic_on_oops": "1"}
# No other name server is asked: there is no way out.
RESOLVER = f"nameserver {ADDRESS}\nsearch svc.cluster.local cluster.local\noptions ndots:5\n"


def control_groups():
    """Those of pods, under each hierarchy."""
    return [found for name in ("kubepods", "k8s.io") for found in (*CONTROL_GROUPS.glob(f"*/{name}"), *CONTROL_GROUPS.glob(name))]


def has_processes():
    return any(listed.read_text().strip() for group in control_groups() for listed in group.glob("**/cgroup.procs"))


def remove_control_groups(within=10):
    """They can be removed when the kernel has taken away their last process."""
    deadline = time.monotonic() + within
    while control_groups():
        for group in control_groups():
            for folder in sorted((path for path in (group, *group.glob("**/")) if path.is_dir()), key=lambda path: -len(path.parts)):
                with contextlib.suppress(OSError):
                    folder.rmdir()
        if time.monotonic() > deadline:
            raise SystemExit(f"control groups are left: {control_groups()}")
        time.sleep(0.05)


def remove_folders(made):
    """Those of FIXED that were made. What others put there in the meantime stays."""
    for path in reversed(made):
        with contextlib.suppress(OSError):
            path.rmdir()


def make_folders():
    """Makes those of FIXED that are missing, and returns what was made."""
    made = []
    for path in map(pathlib.Path, FIXED):
        missing = [each for each in (*reversed(path.parents), path) if not each.exists()]
        for each in missing:
            each.mkdir()
        made += missing
    return made


def run(folder, command):
    """The exit code of a command in namespaces of its own, whose files are in a folder."""
    if has_processes():
        raise SystemExit("another kubelet runs on this machine: its pods are in the control group kubepods")
    remove_control_groups()
    made = make_folders()
    isolated = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--pid", "--mount", "--propagation", "private", "--fork", "--kill-child", "--mount-proc",
                sys.executable, str(pathlib.Path(__file__).resolve()), str(folder), *map(str, command)]
    child = subprocess.Popen(isolated, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        return child.wait()
    finally:
        child.kill()
        child.wait()
        remove_control_groups()
        remove_folders(made)


def cover(path, content, folder):
    """Mounts a file with this content over another one."""
    file = folder / f"covers-{path.strip('/').replace('/', '-')}"
    file.write_text(content)
    mount("--bind", file, path)


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


def prepare(folder):
    # Pods' mounts must be seen by containerd and kubelet alike, and by nothing outside.
    mount("--make-rshared", "/")
    for path in FIXED:
        mount("-t", "tmpfs", "tmpfs", path)
        mount("--make-rshared", path)
    for path, value in SETTINGS.items():
        cover(path, value + "\n", folder)
    cover("/etc/resolv.conf", RESOLVER, folder)
    for arguments in (["link", "set", "lo", "up"], ["address", "add", f"{ADDRESS}/32", "dev", "lo"],
                      # Without a route, the address of a Service is refused before kube-proxy's rules see the packet.
                      ["route", "add", SERVICES, "dev", "lo", "src", ADDRESS]):
        subprocess.run(["ip", *arguments], check=True)
    pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def main():
    folder, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
    prepare(folder)
    child = subprocess.Popen(command)
    while True:
        ended, status = os.wait()
        if ended == child.pid:
            # At once: nothing is left to do here, and the kernel ends all others.
            os._exit(os.waitstatus_to_exitcode(status) & 0xff)


if __name__ == "__main__":
    main()
