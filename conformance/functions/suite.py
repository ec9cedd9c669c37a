"""Compares our built-in functions with the genuine ones, on generated requests.

Each genuine function is compiled from its module and served on a port of its own; the example program `differential` of
the crate `builtins` asks it and ours the same questions and compares the answers in full: generated ones, and those that
published Compositions ask, where the folder with them lies beside the repository. `--only NAME` picks one
function, `--requests` and `--seed` say what is asked, `--serve` asks the binary (`transom function serve`) instead of the
library, `--record DIR` rewrites the tables that plain `cargo test` replays without Go: some calls in full, and the digests
of all answers. `--genuine PROGRAM --version V` names the genuine function where the registry does not hand it out.
"""

import argparse
import contextlib
import pathlib
import resource
import socket
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import cargo  # noqa: E402
import install  # noqa: E402

# How much the originals may take: some have no bounds of their own, and one template must not take the machine.
MOST_KILOBYTES = 6 << 20
# How many questions are asked where it is not the default, and who is asked those of published Compositions, too.
REQUESTS = {"function-go-templating": 20_000}
PUBLISHED = {"function-go-templating"}
# What the originals keep behind a gate, our built-ins just do.
FLAGS = {"function-auto-ready": ["--feature-gates=CELHealthcheckCustomizations=true"]}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def serving(command):
    """A function server, started again whenever it dies of a question; yields its address."""
    address = f"127.0.0.1:{free_port()}"
    bounded = ["sh", "-c", f'ulimit -v {MOST_KILOBYTES}; exec "$0" "$@"']
    command = [*bounded, *command, "--insecure", "--address", address]
    running, stopped = [], threading.Event()

    def supervise():
        while not stopped.is_set():
            running[:] = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)]
            running[0].wait()

    supervisor = threading.Thread(target=supervise, daemon=True)
    supervisor.start()
    try:
        yield f"http://{address}"
    finally:
        stopped.set()
        while supervisor.is_alive():
            for process in running:
                process.terminate()
            supervisor.join(0.1)


def compare(name, genuine, options):
    with contextlib.ExitStack() as stack:
        command = [cargo.example("differential"), name, "--theirs", stack.enter_context(serving([genuine, *FLAGS.get(name, [])])),
                   "--known", HERE / "known.txt", "--seed", str(options.seed),
                   "--requests", str(options.requests or REQUESTS.get(name, 10_000))]
        if options.serve:
            command += ["--ours", stack.enter_context(serving([cargo.binary(), "function", "serve", name]))]
        if options.record:
            subprocess.run([*command, "--record", "40", "--record-to", options.record / f"recorded/{name}.json"], check=True)
            version = options.version or install.VERSIONS["functions"][name]
            command += ["--answers-to", options.record / f"answers/{name}.txt", "--version-of-theirs", version]
        elif not options.requests and options.seed == 1:
            command += ["--all-known"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        failed = subprocess.run(command).returncode
        if name in PUBLISHED and not options.record:
            failed |= subprocess.run([*command[:6], "--published"]).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{name}: {used:.1f} s of processor time, both sides and the questions", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", default="transom", help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--requests", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--record", type=pathlib.Path, help="such as crates/builtins/tests")
    parser.add_argument("--genuine", type=pathlib.Path, help="the program to compare --only NAME with")
    parser.add_argument("--version", help="what version --genuine is of")
    options = parser.parse_args()
    if options.genuine and (len(options.only or []) != 1 or (options.record and not options.version)):
        parser.error("--genuine goes with one --only, and with --version to record")
    compared, failed, missing = [], [], []
    for name in options.only or install.VERSIONS["functions"]:
        try:
            genuine = options.genuine or install.function(name)
        except install.Unavailable as reason:
            print(f"{name}: not compared here, {reason}; cargo test holds it to recorded answers", flush=True)
            missing.append(name)
            continue
        compared.append(name)
        if compare(name, genuine, options):
            failed.append(name)
    print(f"functions: {len(compared) - len(failed)} passed, {len(failed)} failed, {len(missing)} not compared here", flush=True)
    return 1 if failed or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
