"""How long a package takes to be installed, what it asks of the registry, and what it costs at rest; for `bench.py`.

A Configuration with many definitions and Compositions is pushed to a registry on loopback, installed, removed, and installed again
from the cache. Then nothing happens for a while, and packages with a small and a large layer show whether memory grows with them:
their layers are not annotated, so that all of them are searched for the package.
"""

import argparse
import hashlib
import json
import os
import pathlib
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import api  # noqa: E402
import folders  # noqa: E402
import install  # noqa: E402
import lifecycle  # noqa: E402
import platforms  # noqa: E402
import registry as registries  # noqa: E402
import snapshot  # noqa: E402

FIRST, WARM = "package of the registry to Healthy", "package of the cache to Healthy"
WARM_REQUESTS, IDLE_WRITES, IDLE_REQUESTS = "registry requests from a warm cache", "idle, writes", "idle, registry requests"
GROWTH = "peak memory, more for the large package"
GROUP, WITHIN = "bench.example.org", 300


def measure(launch, options):
    """One round on one control plane: figure → (value, unit)."""
    parser = argparse.ArgumentParser(prog="conformance/run bench -- --only packages")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--definitions", type=int, default=50, help="definitions in the package, and as many Compositions")
    parser.add_argument("--idle", type=float, default=60, help="seconds at rest")
    parser.add_argument("--large", type=int, default=100, help="MB of the large package")
    options = parser.parse_args(options)
    with registries.start() as registry:
        package = publish(registry, "platform", max(1, int(options.definitions * options.scale)))
        sizes = {size: publish(registry, f"of-{size}-mb", 1, size) for size in (1, options.large)}
        with launch() as server:
            plane = lifecycle.Plane(server.name, api.Client(server))
            registry.requests()
            return {**installation(plane, registry, package), **rest(plane, registry, options.idle), **memory(plane, server.pids, sizes)}


def publish(registry, name, definitions, megabytes=0):
    """Builds and pushes a Configuration, with a layer of random bytes if a size is given. Gives its reference."""
    reference = registry.reference(f"bench/{name}:v1.0.0")
    with tempfile.TemporaryDirectory(prefix="transom-bench-") as work:
        root = pathlib.Path(work) / "root"
        root.mkdir()
        kinds = [f"Kind{name.replace('-', '').capitalize()}{number}" for number in range(definitions)]
        for file, text in {"crossplane.yaml": folders.meta("Configuration", name), **platforms.definitions(GROUP, *kinds)}.items():
            (root / file).write_text(text)
        flags = []
        if megabytes:
            runtime = pathlib.Path(work) / "runtime.tar"
            runtime.write_bytes(folders.runtime_image(os.urandom(megabytes << 20)))
            flags = ["--embed-runtime-image-tarball", runtime]
        platforms.run(install.crank(), "xpkg", "build", "-f", root, "-e", root / "examples", "-o", pathlib.Path(work) / "p.xpkg", *flags)
        platforms.run(install.crank(), "xpkg", "push", "-f", pathlib.Path(work) / "p.xpkg", reference, environment=registry.environment())
    if megabytes:
        without_annotations(registry, f"bench/{name}", "v1.0.0")
    return reference


def without_annotations(registry, repository, tag):
    """Replaces an image by one whose layers are not annotated, in the reverse order: the package is found in the last one searched."""
    kind = "application/vnd.docker.distribution.manifest.v2+json"
    manifest = json.loads(request(registry, "GET", f"{repository}/manifests/{tag}", Accept=f"{kind}, application/vnd.oci.image.manifest.v1+json"))
    config = json.loads(request(registry, "GET", f"{repository}/blobs/{manifest['config']['digest']}"))
    config.get("config", {}).pop("Labels", None)
    config.pop("history", None)
    config["rootfs"]["diff_ids"].reverse()
    content = json.dumps(config).encode()
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    location = request(registry, "POST", f"{repository}/blobs/uploads/", header="Location")
    joined = f"{location}{'&' if '?' in location else '?'}digest={digest}"
    request(registry, "PUT", joined, content, **{"Content-Type": "application/octet-stream"})
    manifest["config"].update(digest=digest, size=len(content))
    for layer in manifest["layers"]:
        layer.pop("annotations", None)
    manifest["layers"].reverse()
    manifest.pop("annotations", None)
    request(registry, "PUT", f"{repository}/manifests/{tag}", json.dumps(manifest).encode(), **{"Content-Type": manifest.get("mediaType", kind)})


def request(registry, method, path, body=None, header=None, **headers):
    """The body of the registry's answer, or one of its headers."""
    address = path if path.startswith("http") else f"http://{registry.host}/v2/{path}"
    sent = urllib.request.Request(address, data=body if body is not None else (b"" if method == "POST" else None), method=method, headers=headers)
    with urllib.request.urlopen(sent, timeout=60) as answer:
        return answer.headers[header] if header else answer.read()


def until(ready, what):
    deadline = time.monotonic() + WITHIN
    while not ready():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: not after {WITHIN} s")
        time.sleep(0.005)


def healthy(plane, name, package):
    """Milliseconds from creation to Healthy."""
    began = time.monotonic()
    plane.install(name, package)
    until(lambda: plane.is_healthy(name), f"{plane.name}: {name} is healthy")
    return (time.monotonic() - began) * 1000


def gone(plane, name):
    plane.remove(name)
    definitions = f"{snapshot.EXT}/v2/compositeresourcedefinitions"
    until(lambda: plane.get(f"{lifecycle.CONFIGURATIONS}/{name}") is None and not plane.get(definitions)["items"], f"{plane.name}: {name} is gone")


def installation(plane, registry, package):
    first = healthy(plane, "platform", package)
    asked = len(registry.requests())
    gone(plane, "platform")
    registry.requests()
    warm = healthy(plane, "platform", package)
    again = registry.requests()
    return {FIRST: (first, "ms"), "registry requests": (asked, ""), WARM: (warm, "ms"), WARM_REQUESTS: (len(again), "")}


def revision(plane):
    """The number of the last write of anything."""
    return int(plane.get(lifecycle.CONFIGURATIONS)["metadata"]["resourceVersion"])


def rest(plane, registry, seconds):
    # Events and leases of the installation are written late.
    before = revision(plane)
    until_quiet = time.monotonic() + 30
    while time.monotonic() < until_quiet:
        time.sleep(1)
        now = revision(plane)
        if now == before:
            break
        before = now
    registry.requests()
    time.sleep(seconds)
    return {IDLE_WRITES: (revision(plane) - before, ""), IDLE_REQUESTS: (len(registry.requests()), "")}


def memory(plane, pids, sizes):
    """The most memory that all processes had while a package was installed."""
    peaks = []
    for size, package in sizes.items():
        for pid in pids:
            pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")
        healthy(plane, f"of-{size}-mb", package)
        peaks.append(sum(peak(pid) for pid in pids))
    small, large = peaks
    return {"peak memory, small package": (small, "MB"), "peak memory, large package": (large, "MB"), GROWTH: (max(0, large - small), "MB")}


def peak(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0
