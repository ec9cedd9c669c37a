"""Runs the checks in `client.py` with the official Python client against one server."""

import argparse
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import install  # noqa: E402
import servers  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", default="transom", choices=("transom", "real"))
    options = parser.parse_args()
    interpreter = install.python()
    with servers.start(options.against) as server:
        return subprocess.run([interpreter, HERE / "client.py", server.kubeconfig]).returncode


if __name__ == "__main__":
    sys.exit(main())
