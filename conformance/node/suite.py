"""Runs the checks in `client.mjs` with the official JavaScript client against one server."""

import argparse
import os
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
    modules = install.node() / "node_modules"
    with servers.start(options.against) as server:
        return subprocess.run(["node", HERE / "client.mjs", server.kubeconfig], env={**os.environ, "CLIENT_MODULES": str(modules)}).returncode


if __name__ == "__main__":
    sys.exit(main())
