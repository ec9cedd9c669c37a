"""Runs the checks in `main.go` with client-go against one server."""

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
    program = install.openapi()
    with servers.start(options.against) as server:
        return subprocess.run([program, server.kubeconfig]).returncode


if __name__ == "__main__":
    sys.exit(main())
