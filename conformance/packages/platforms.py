"""Packages that are installed on both sides: three levels of Configurations in several versions.

`platform` depends on `middle`, which depends on `base`. They are built from folders like any other, by the real command line or by
ours, and pushed to a registry under a path of the caller's choice.
"""

import os
import pathlib
import subprocess
import tempfile

import cargo
import folders
import install


def definitions(group, *kinds, note="none"):
    files = {}
    for kind in kinds:
        files[f"{kind.lower()}.yaml"] = folders.definition(kind, f"{kind.lower()}s", group) + "---\n" + folders.composition(f"{kind.lower()}.{group}", kind, group, note)
    return files


def depends(on, constraint, kind="Configuration"):
    return f"  dependsOn:\n  - apiVersion: pkg.crossplane.io/v1\n    kind: {kind}\n    package: {on}\n    version: \"{constraint}\"\n"


def versions(repository, group):
    """Tag → files, of each package; `repository` is where they will be."""
    base, middle = f"{repository}/base", f"{repository}/middle"
    return {
        "base:v1.0.0": {"crossplane.yaml": folders.meta("Configuration", "base"), **definitions(group, "Base")},
        "base:v1.1.0": {"crossplane.yaml": folders.meta("Configuration", "base"), **definitions(group, "Base", note="newer")},
        "middle:v1.0.0": {"crossplane.yaml": folders.meta("Configuration", "middle", depends(base, ">=v1.0.0, <v1.1.0"), "  labels: {level: middle}\n  annotations: {meta.crossplane.io/license: Apache-2.0}\n"),
                          **definitions(group, "Middle")},
        "platform:v1.0.0": {"crossplane.yaml": folders.meta("Configuration", "platform", depends(middle, "^v1.0.0")), **definitions(group, "Top")},
        "platform:v1.1.0": {"crossplane.yaml": folders.meta("Configuration", "platform", depends(middle, "^v1.0.0")), **definitions(group, "Top", "Extra", note="newer")},
        "platform:v2.0.0": {"crossplane.yaml": folders.meta("Configuration", "platform", depends(middle, "^v1.0.0")), **definitions(group, "Extra", note="two")},
        "greedy:v1.0.0": {"crossplane.yaml": folders.meta("Configuration", "greedy", depends(base, ">=v9.0.0")), **definitions(group, "Greedy")},
        "future:v1.0.0": {"crossplane.yaml": folders.meta("Configuration", "future", "  crossplane: {version: \">=v99.0.0\"}"), **definitions(group, "Future")},
        "thief:v1.0.0": {"crossplane.yaml": folders.meta("Configuration", "thief"), **definitions(group, "Mine", "Base")},
    }


def run(*command, environment=None):
    ended = subprocess.run([str(part) for part in command], capture_output=True, text=True, env={**os.environ, **(environment or {})})
    if ended.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def publish(registry, path, group, program="crank", only=None):
    """Builds and pushes all packages below a path of a registry, by one of the command lines. Gives references → digests."""
    tool = install.crank() if program == "crank" else cargo.binary()
    repository, digests = registry.reference(path), {}
    with tempfile.TemporaryDirectory(prefix="transom-publish-") as work:
        for name, files in versions(repository, group).items():
            if only and name not in only:
                continue
            root = pathlib.Path(work) / name.replace(":", "-")
            root.mkdir()
            for file, text in files.items():
                (root / file).write_text(text)
            package = pathlib.Path(work) / "package.xpkg"
            run(tool, "xpkg", "build", "-f", root, "-e", root / "examples", "-o", package)
            run(tool, "xpkg", "push", "-f", package, f"{repository}/{name}", environment=registry.environment())
            digest = run(install.registry() / "crane", "digest", f"{repository}/{name}", environment=registry.environment())
            digests[f"{repository}/{name}"] = digest.strip()
    return digests
