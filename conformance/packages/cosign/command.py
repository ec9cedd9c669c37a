"""The real `cosign` command signs packages in a real registry (distribution's) with a key, as their authors do. Each is pushed by our command line.

`scenarios` are like those of the Go program: what `cosign verify` says of a package decides whether it must be installed.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE.parent)]

import cargo  # noqa: E402
import install  # noqa: E402
import registry as registries  # noqa: E402

MODULE = "github.com/sigstore/cosign/v3"
# There is no transparency log here, whose address would come from the signing config.
OFFLINE = ("--use-signing-config=false", "--tlog-upload=false", "--allow-http-registry=true")
# Signatures in a tag of their own, as cosign wrote them up to version 2, and bundles that refer to the image, its default since version 3.
FORMATS = {"signature": ("--new-bundle-format=false",), "bundle": ("--new-bundle-format=true",)}
META = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: NAME}\n"
DEFINITION = """apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: things.NAME.example.org}
spec:
  group: NAME.example.org
  scope: Cluster
  names: {kind: Thing, plural: things}
  versions:
  - {name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object}}}
"""


def cosign():
    """The command, in the version whose libraries `go.mod` pins, with the versions that its own module pins."""
    version = re.search(rf"{MODULE} (v\S+)", (HERE / "go.mod").read_text()).group(1)

    def build(folder):
        log, work, env = folder / "build.log", folder / "work", {**os.environ, "GOFLAGS": "-mod=readonly -buildvcs=false"}
        found = subprocess.run(["go", "mod", "download", "-json", f"{MODULE}@{version}"], cwd=folder, check=True, capture_output=True, text=True)
        shutil.copytree(json.loads(found.stdout)["Dir"], work, copy_function=shutil.copyfile)
        install._run("chmod", "-R", "u+w", work, log=log)
        install._run("nice", "go", "build", "-p", os.environ.get("TRANSOM_GO_JOBS", "2"), "-ldflags", "-s -w", "-o", folder / "cosign", "./cmd/cosign",
                     cwd=work, log=log, env=env)
        shutil.rmtree(work)

    return install._once(f"cosign-command-{version}", build) / "cosign"


class Command:
    """Runs cosign in a folder of its own, with keys that have no password."""

    def __init__(self, folder):
        self.folder, self.program = folder, cosign()

    def run(self, *arguments):
        return subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**os.environ, "COSIGN_PASSWORD": "", "HOME": str(self.folder)})

    def succeeds(self, *arguments):
        done = self.run(*arguments)
        if done.returncode:
            raise SystemExit(f"cosign {' '.join(arguments)}: {done.stderr}")

    def refusal(self, key, reference, kind):
        """Why `cosign verify` refuses a package; nothing if it accepts it."""
        done = self.run("verify", "--key", f"{key}.pub", "--insecure-ignore-tlog=true", "--allow-http-registry=true", *FORMATS[kind], reference)
        return "" if done.returncode == 0 else done.stderr.strip() or "no reason"


def push(folder, registry, name):
    """A package with a definition of its own. Returns its tag and digest."""
    source, package, tag = folder / name, folder / f"{name}.xpkg", registry.reference(f"signed/{name}:v1.0.0")
    source.mkdir()
    (source / "crossplane.yaml").write_text(META.replace("NAME", name))
    (source / "definition.yaml").write_text(DEFINITION.replace("NAME", name))
    for words in (["build", "-f", source, "-o", package], ["push", "-f", package, tag]):
        subprocess.run([cargo.binary(), "xpkg", *words], check=True, capture_output=True)
    found = subprocess.run([install.registry() / "crane", "digest", tag], check=True, capture_output=True, text=True)
    return tag, f"{tag.rsplit(':', 1)[0]}@{found.stdout.strip()}"


@contextlib.contextmanager
def scenarios():
    """Packages that are signed with one of two keys, and verified with the same or the other one; and one that is not signed."""
    with registries.start() as registry, tempfile.TemporaryDirectory(prefix="transom-cosign-") as work:
        folder = pathlib.Path(work)
        command, made = Command(folder), []
        for key in ("author", "stranger"):
            command.succeeds("generate-key-pair", "--output-key-prefix", key)
        for kind, flags in FORMATS.items():
            for key, reason in (("author", ""), ("stranger", "a signature is not by its key")):
                tag, digest = push(folder, registry, f"command-{kind}-{key}")
                command.succeeds("sign", "--yes", "--key", "author.key", *OFFLINE, *flags, digest)
                made.append(scenario(command, tag, key, kind, reason))
        tag, _ = push(folder, registry, "command-unsigned")
        made.append(scenario(command, tag, "author", "signature", "no signature of it was found"))
        yield made


def scenario(command, tag, key, kind, reason):
    name = tag.rsplit("/", 1)[1].split(":")[0]
    secret = {"name": "", "key": "cosign.pub"}
    return {"name": name, "package": tag, "key": (command.folder / f"{key}.pub").read_text(), "installs": not reason, "reason": reason,
            "authority": {"name": "team", "key": {"secretRef": secret, "hashAlgorithm": "sha256"}}, "cosign": command.refusal(key, tag, kind)}
