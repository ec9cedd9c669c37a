"""Images as users make them: umoci builds them in an OCI layout, and skopeo pushes them to a registry or writes archives.

Both are installed from the distribution's packages if they are missing.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile

import install

PROGRAMS = {"umoci": "umoci", "skopeo": "skopeo", "busybox": "busybox-static", "runc": "runc"}
PATH = f"{os.environ['PATH']}:/usr/sbin"


def programs(*names):
    """Installs those of the programs that are missing; all of them if none is named."""
    missing = [PROGRAMS[name] for name in names or PROGRAMS if not shutil.which(name, path=PATH)]
    if missing:
        install.debian(*missing)


class Layout:
    """An OCI layout in a folder, with an image for each name."""

    def __init__(self, folder):
        programs("umoci", "skopeo")
        self.folder = folder
        self.umoci("init", "--layout", folder)

    @staticmethod
    def umoci(*arguments):
        done = subprocess.run(["umoci", *map(str, arguments)], capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(f"umoci {' '.join(map(str, arguments))}: {done.stderr}")

    def image(self, name):
        return f"{self.folder}:{name}"

    def new(self, name):
        self.umoci("new", "--image", self.image(name))

    def tag(self, name, new):
        self.umoci("tag", "--image", self.image(name), new)

    def insert(self, name, path, inside):
        """Adds a file or folder as a layer."""
        self.umoci("insert", "--image", self.image(name), path, inside)

    def add_layer(self, name, archive):
        self.umoci("raw", "add-layer", "--image", self.image(name), archive)

    def config(self, name, *flags):
        self.umoci("config", "--image", self.image(name), *flags)

    def push(self, name, reference):
        self.copy(name, f"docker://{reference}", "--dest-tls-verify=false")

    def archive(self, name, path):
        """Writes an image as `docker save` does."""
        self.copy(name, f"docker-archive:{path}:conformance/{name}:v1")

    def copy(self, name, to, *flags):
        done = subprocess.run(["skopeo", "copy", *flags, f"oci:{self.image(name)}", to], capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(f"skopeo copy {name} to {to}: {done.stderr}")


def of_program(path, program, arguments=()):
    """Writes an archive of an image that has a program and the libraries that it is linked with, and nothing else."""
    linked = subprocess.run(["ldd", program], capture_output=True, text=True).stdout.split()
    with tempfile.TemporaryDirectory(prefix="transom-image-") as work:
        layout, name = Layout(pathlib.Path(work) / "layout"), "function"
        layout.new(name)
        for file, inside in [(program, "/function"), *((word, word) for word in linked if word.startswith("/"))]:
            # A library may be a link to a file that is called differently.
            layout.insert(name, os.path.realpath(file), inside)
        # Not as its command, which the arguments of a package's runtime replace.
        words = [f"--config.entrypoint={word}" for word in ("/function", *arguments)]
        layout.config(name, "--config.user=65532", *words)
        pathlib.Path(path).unlink(missing_ok=True)
        layout.archive(name, path)
