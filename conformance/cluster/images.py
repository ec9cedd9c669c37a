"""Images and packages of programs that this machine has, pushed to the cluster's registry."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import install
import oci
from node import REGISTRY

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, authority):
    environment = {**os.environ, "SSL_CERT_FILE": str(authority), "CA_BUNDLE_PATH": str(authority), "RUST_LOG": "off"}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")


class Images:
    """What is pushed to the registry, by the binary that is tested where it can."""

    def __init__(self, node, binary):
        self.folder, self.authority = node.folder / "pushed", node.authority
        self.folder.mkdir()
        self.pause = node.programs / "pause"
        # A copy, because another one may be built in the meantime.
        self.binary = pathlib.Path(shutil.copy(binary, self.folder / "transom"))

    def push_pause(self):
        """The image of what holds a pod's namespaces."""
        oci.of_program(self.folder / "pause.tar", self.pause)
        self.push(self.folder / "pause.tar", f"{REGISTRY}/pause:v1")

    def push_transom(self):
        """Transom's own image, by deploy/image. Returns its reference."""
        reference, file = f"{REGISTRY}/transom:v1", self.folder / "transom.tar"
        run(sys.executable, ROOT / "deploy/image", self.binary, file, "--tag", reference, "--with-libraries", authority=self.authority)
        self.push(file, reference)
        return reference

    def push(self, file, reference):
        run(install.registry() / "crane", "push", file, reference, authority=self.authority)

    def package(self, name, program, tag, metadata):
        """A package whose program is a genuine one. `metadata` is its crossplane.yaml, or the folder that has it. Returns its reference."""
        place = self.folder / f"{name}-{tag}"
        place.mkdir()
        source = metadata
        if isinstance(metadata, dict):
            source = place / "source"
            source.mkdir()
            (source / "crossplane.yaml").write_text(json.dumps(metadata))
        reference = f"{REGISTRY}/conformance/{name}:{tag}"
        oci.of_program(place / "image.tar", program)
        run(self.binary, "xpkg", "build", "-f", source, "-o", place / "p.xpkg", "--embed-runtime-image-tarball", place / "image.tar", authority=self.authority)
        run(self.binary, "xpkg", "push", "-f", place / "p.xpkg", reference, authority=self.authority)
        return reference
