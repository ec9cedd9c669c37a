"""Packages go both ways: what the real command line pushes installs here, what ours pushes installs in the real Crossplane.

For each kind of registry (anonymous, basic authentication, tokens, TLS with an authority of its own): both command lines push, `crane`
checks and copies, both extract, and both planes install with a dependency, with pull secrets where they are needed.
"""

import gzip
import json
import pathlib
import tempfile
import time

import cargo
import install
import platforms
import registry as registries
from lifecycle import CONFIGURATIONS
from planes import NAMESPACE

WITHIN = 90  # seconds
IMAGE_CONFIGS = "/apis/pkg.crossplane.io/v1beta1/imageconfigs"


def run(planes, by_kind, options, known):
    passed = failed = 0
    for kind, registry in by_kind.items():
        for name, check in checks(planes, kind, registry):
            try:
                problem = check()
            except SystemExit as error:
                problem = str(error)
            if problem and not known.explains(f"registries: {kind}: {name}: {problem}"):
                print(f"registries: {kind}: {name}: {problem}", flush=True)
                failed += 1
            else:
                passed += 1
    print(f"registries: {passed} checks passed, {failed} failed", flush=True)
    return passed, failed


def checks(planes, kind, registry):
    real, transom = planes
    crane, environment = install.registry() / "crane", registry.environment()
    theirs, ours, copied = f"{kind}/theirs", f"{kind}/ours", f"{kind}/copied"
    only = ("base:v1.0.0", "middle:v1.0.0", "platform:v1.0.0")

    def push(program, path, group):
        platforms.publish(registry, path, group, program, only)

    yield "crank pushes", lambda: push("crank", theirs, f"theirs.{kind}.example.org")
    yield "transom pushes", lambda: push("transom", ours, f"ours.{kind}.example.org")
    for path in (theirs, ours):
        reference = registry.reference(f"{path}/platform:v1.0.0")
        yield f"crane validates {path}", lambda r=reference: platforms.run(crane, "validate", "--remote", r, environment=environment) and None
        yield f"annotated layers of {path}", lambda r=reference: annotated(json.loads(platforms.run(crane, "manifest", r, environment=environment)))
        yield f"both extract {path}", lambda r=reference: extracted(r, environment)
    for name in only:
        yield f"crane copies {name}", lambda n=name: platforms.run(crane, "copy", registry.reference(f"{ours}/{n}"), registry.reference(f"{copied}/{n}"), environment=environment) and None
    needs_secret = kind in ("basic", "token")
    if needs_secret:
        yield "without a secret it is refused", lambda: refused(transom, f"{kind}-refused", registry.reference(f"{theirs}/base:v1.0.0"))
        for plane in planes:
            plane.send("POST", f"/api/v1/namespaces/{NAMESPACE}/secrets", registries.pull_secret(registry, NAMESPACE, f"pull-{kind}"))
        # The original does not hand pull secrets on to dependencies: an ImageConfig gives them to all.
        real.send("POST", IMAGE_CONFIGS, {"apiVersion": "pkg.crossplane.io/v1beta1", "kind": "ImageConfig", "metadata": {"name": f"pull-{kind}"}, "spec": {
            "matchImages": [{"type": "Prefix", "prefix": registry.host}], "registry": {"authentication": {"pullSecretRef": {"name": f"pull-{kind}"}}}}})
    secret = {"packagePullSecrets": [{"name": f"pull-{kind}"}]} if needs_secret else {}
    yield "what crank pushed installs here", lambda: installed(transom, f"{kind}-theirs", registry.reference(f"{theirs}/platform:v1.0.0"), f"{kind}-theirs", secret)
    yield "what transom pushed installs there", lambda: installed(real, f"{kind}-ours", registry.reference(f"{ours}/platform:v1.0.0"), f"{kind}-ours", secret)
    yield "what crane copied installs there", lambda: replaced(real, f"{kind}-ours", registry.reference(f"{copied}/platform:v1.0.0"))


def annotated(manifest):
    kinds = [layer.get("annotations", {}).get("io.crossplane.xpkg") for layer in manifest["layers"]]
    return None if kinds == ["base"] else f"layers annotated {kinds}"


def extracted(reference, environment):
    texts = []
    with tempfile.TemporaryDirectory() as work:
        for number, program in enumerate((install.crank(), cargo.binary())):
            file = pathlib.Path(work) / f"{number}.gz"
            platforms.run(program, "xpkg", "extract", reference, "-o", file, environment=environment)
            texts.append(gzip.decompress(file.read_bytes()))
    return None if texts[0] == texts[1] else "another package.yaml"


def until(ready, describe):
    deadline = time.monotonic() + WITHIN
    while not ready():
        if time.monotonic() > deadline:
            return describe()
        time.sleep(0.1)
    return None


def installed(plane, name, package, prefix, spec):
    plane.install(name, package, **spec)
    return until(lambda: plane.is_healthy(name, f"{prefix}-middle", f"{prefix}-base"),
                 lambda: json.dumps([(item["metadata"]["name"], item.get("status", {}).get("conditions")) for item in plane.get(CONFIGURATIONS)["items"]]))


def replaced(plane, name, package):
    plane.change(name, package=package)
    return until(lambda: plane.is_healthy(name), lambda: json.dumps(plane.get(f"{CONFIGURATIONS}/{name}").get("status")))


def refused(plane, name, package):
    plane.install(name, package)
    problem = until(lambda: plane.conditions(name).get("Installed") == "False", lambda: json.dumps(plane.conditions(name)))
    message = json.dumps((plane.get(f"{CONFIGURATIONS}/{name}") or {}).get("status"))
    plane.remove(name)
    return problem or (f"the password is in {message}" if registries.PASSWORD in message else None)
