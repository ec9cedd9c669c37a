"""The same folders, built by the real command line and by ours: the packages must hold the same bytes.

Compared are whether a folder is a package at all, `package.yaml`, the examples, the digest of each layer and of its content,
the image's configuration with its labels, and what each side extracts from the other's file.
"""

import difflib
import gzip
import hashlib
import io
import json
import pathlib
import subprocess
import tarfile
import tempfile

import cargo
import folders
import install


class Image:
    """An image in a file, as `docker save` writes it."""

    def __init__(self, path):
        with tarfile.open(path) as archive:
            files = {entry.name: archive.extractfile(entry).read() for entry in archive if entry.isfile()}
        (entry,) = json.loads(files["manifest.json"])
        self.config = json.loads(files[entry["Config"]])
        stored = [files[layer] for layer in entry["Layers"]]
        self.stored = [digest(layer) for layer in stored]
        self.layers = [gzip.decompress(layer) if layer[:2] == b"\x1f\x8b" else layer for layer in stored]
        self.contents = [digest(layer) for layer in self.layers]

    def file(self, name):
        for layer in self.layers:
            with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
                if name in archive.getnames():
                    return archive.extractfile(name).read()
        return None

    def labels(self):
        return (self.config.get("config") or {}).get("Labels") or {}


def digest(data):
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def build(program, root, folder, output):
    flags = [*folder.flags, *(["--embed-runtime-image-tarball", root / "../runtime.tar"] if folder.runtime else [])]
    ended = subprocess.run([program, "xpkg", "build", "-f", root, "-e", root / "examples", "-o", output, *flags],
                           capture_output=True, text=True, cwd=root)
    return ended.returncode, ended.stderr


def extracted(program, file, output):
    """`package.yaml` as the command line extracts it from a file."""
    ended = subprocess.run([program, "xpkg", "extract", "--from-xpkg", file, "-o", output], capture_output=True, text=True)
    return gzip.decompress(output.read_bytes()) if ended.returncode == 0 else ended.stderr.encode()


def differences(folder, work, tally):
    """Lines `what: theirs -> ours`."""
    root = work / "root"
    for name, text in folder.files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, newline="")
    (work / "runtime.tar").write_bytes(folder.runtime)
    crank, transom = install.crank(), cargo.binary()
    theirs, ours = work / "theirs.xpkg", work / "ours.xpkg"
    (their_code, their_error), (our_code, our_error) = build(crank, root, folder, theirs), build(transom, root, folder, ours)
    if their_code or our_code:
        if (their_code == 0) == (our_code == 0):
            tally["refused"] += 1
            return []
        return [f"exit: {their_code} {their_error.strip()[:300]!r} -> {our_code} {our_error.strip()[:300]!r}"]
    tally["built"] += 1
    return [*compared(Image(theirs), Image(ours), tally), *crossed(crank, transom, theirs, ours, work)]


def compared(theirs, ours, tally):
    found = []
    for name in ("package.yaml", ".up/examples.yaml"):
        one, two = theirs.file(name), ours.file(name)
        if one != two:
            found.append(f"{name}: {shown(one, two)}")
    if found:
        # Digests are made of these.
        return found
    if theirs.contents != ours.contents:
        found.append(f"layers: {theirs.contents} -> {ours.contents}")
    if theirs.stored != ours.stored:
        found.append(f"compressed layers: {theirs.stored} -> {ours.stored}")
    if theirs.labels() != ours.labels():
        found.append(f"labels: {theirs.labels()} -> {ours.labels()}")
    # Labels are compared above; times are those of the build.
    plain = [json.loads(json.dumps(image.config)) for image in (theirs, ours)]
    for config in plain:
        config.get("config", {}).pop("Labels", None)
    for field in sorted({*plain[0], *plain[1]}):
        if plain[0].get(field) != plain[1].get(field):
            found.append(f"config.{field}: {json.dumps(plain[0].get(field))} -> {json.dumps(plain[1].get(field))}")
    tally["layers"] += len(theirs.stored)
    return found


def crossed(crank, transom, theirs, ours, work):
    """What each side reads from the package of the other."""
    found = []
    for file, image in ((theirs, Image(theirs)), (ours, Image(ours))):
        for name, program in (("crank", crank), ("transom", transom)):
            got = extracted(program, file, work / f"{name}-{file.stem}.gz")
            if got != image.file("package.yaml"):
                found.append(f"{name} extracts from {file.stem}: {shown(image.file('package.yaml'), got)}")
    return found


def shown(one, two):
    """The first lines in which two texts differ."""
    if one is None or two is None:
        return f"{'absent' if one is None else 'present'} -> {'absent' if two is None else 'present'}"
    lines = difflib.unified_diff(one.decode(errors="replace").splitlines(), two.decode(errors="replace").splitlines(), lineterm="", n=1)
    return "\n    ".join(list(lines)[2:14])


def run(options, known):
    tally = {"built": 0, "refused": 0, "layers": 0}
    passed = failed = explained = 0
    for folder in folders.all_folders():
        if options.folder and options.folder not in folder.name:
            continue
        with tempfile.TemporaryDirectory(prefix="transom-build-") as work:
            found = differences(folder, pathlib.Path(work), tally)
        unexplained = [line for line in found if not known.explains(f"build: {folder.name}: {line}")]
        explained += len(found) > len(unexplained)
        for line in unexplained:
            print(f"build: {folder.name}: {line}", flush=True)
        passed, failed = passed + (not unexplained), failed + bool(unexplained)
    print(f"build: {passed} folders alike ({explained} differ as known), {failed} differ; {tally}", flush=True)
    return passed, failed
