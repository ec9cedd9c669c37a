"""What the suites run of this repository: the binaries, and examples of its crates.

They are built as `cargo test --workspace` builds them, with the same features, so after the tests nothing is left to do.
`PROFILE` names another profile, `TRANSOM_BIN` another binary.
"""

import functools
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
PROFILE = os.environ.get("PROFILE", "dev")


@functools.cache
def _folder():
    command = ["cargo", "build", "--quiet", "--workspace", "--profile", PROFILE, "--bins", "--examples"]
    subprocess.run(command, cwd=ROOT, check=True)
    return TARGET / ("debug" if PROFILE == "dev" else PROFILE)


def binary():
    return pathlib.Path(os.environ.get("TRANSOM_BIN") or _folder() / "transom")


def bench():
    """The binary that measures: the one beside `TRANSOM_BIN`, if there is one."""
    beside = binary().with_name("transom-bench")
    return beside if beside.exists() else _folder() / "transom-bench"


def example(name):
    return _folder() / "examples" / name
