"""Starts whole control planes, to be measured and compared beside each other: `transom up`, and the real Crossplane.

Crossplane is a process beside kube-apiserver and etcd, and the genuine function-patch-and-transform is one beside it, called
with mutual TLS as in a cluster. There is no kubelet, so nothing could run the function's package: the script itself installs
the function, as paused objects (`crossplane.io/paused`), which the package manager leaves alone, and whose status says where
the function listens. Everything else is what Crossplane does by default, without webhooks. Its metrics and probes cannot be
bound to loopback; they get free ports.
"""

import contextlib
import json
import os
import shutil
import subprocess
import time
import urllib.request

import api
import cargo
import install
import servers

NAMESPACE = "crossplane-system"
FUNCTION = "patch-and-transform"  # what the Composition of `transom-bench plane` names
INIT_ATTEMPTS = 10


def transom(flags=(), **environment):
    return servers.transom(durable=True, controllers=True, flags=flags, **environment)


@contextlib.contextmanager
def controller(flags=(), **environment):
    """`transom controller` beside a durable API server, with its built-in function. Only its own process is measured."""
    with servers.real(controllers=False, durable=True) as server, servers.workspace("controller") as (folder, processes):
        accepted(api.Client(server), "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        accepted_later = {"apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "metadata": {"name": FUNCTION},
                          "spec": {"package": f"example.org/function-{FUNCTION}:{install.VERSIONS['functions'][f'function-{FUNCTION}']}"}}
        probes = servers.free_port()
        processes.start("transom", cargo.binary(), "controller", "--kubeconfig", server.kubeconfig, "--cache-dir", folder / "cache", "--listen-address", "127.0.0.1",
                        "--health-probe-port", probes, "--metrics-port", probes, "--container-runtime", "none", *flags, **environment)
        processes.await_ready("transom controller", lambda: urllib.request.urlopen(f"http://127.0.0.1:{probes}/readyz").status == 200)
        accepted(api.Client(server), "POST", "/apis/pkg.crossplane.io/v1/functions", accepted_later)
        server.pids = [child.pid for _, child, _ in processes.children]
        yield server


@contextlib.contextmanager
def crossplane(function=True, controllers=False, flags=(), only_controllers=False, **environment):
    """Crossplane beside a durable API server; with `controllers` also the garbage collector and its like. With
    `only_controllers`, the processes of the API server are not measured."""
    installed = install.crossplane()
    with servers.real(controllers=controllers, durable=True) as server, servers.workspace("crossplane") as (folder, processes):
        certificates = make_certificates(folder)
        address, probes = f"127.0.0.1:{servers.free_port()}", servers.free_port()
        if function:
            processes.start("function", install.function(f"function-{FUNCTION}"), "--address", address, "--tls-certs-dir", certificates)
        initialise(installed, server, folder)
        if function:
            install_function(api.Client(server), address)
        (folder / "packages").mkdir()
        processes.start(
            "crossplane", installed / "crossplane", "core", "start", "--namespace", NAMESPACE, "--enable-webhooks=false",
            "--package-runtime=External", "--xpkg-cache-dir", folder / "packages", "--xfn-cache-dir", folder / "responses",
            "--tls-client-certs-dir", certificates, "--metrics-port", servers.free_port(), "--health-probe-port", probes, *flags,
            KUBECONFIG=str(server.kubeconfig), **environment)
        processes.await_ready("crossplane", lambda: urllib.request.urlopen(f"http://127.0.0.1:{probes}/readyz").status == 200)
        server.pids = ([] if only_controllers else server.pids) + [child.pid for _, child, _ in processes.children]
        yield server


def make_certificates(folder):
    """A certificate that is its own authority, for both ends of the calls to the function."""
    certificates = folder / "certificates"
    certificates.mkdir()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=function", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", certificates / "tls.key", "-out", certificates / "tls.crt"], check=True, capture_output=True)
    shutil.copyfile(certificates / "tls.crt", certificates / "ca.crt")
    return certificates


def initialise(installed, server, folder):
    """Runs what Crossplane's init container runs. It may fail until the definitions that it applies are served."""
    accepted(api.Client(server), "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    initialise_again(installed, server, folder)


def initialise_again(installed, server, folder):
    """What the init container does when a pod starts again."""
    environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig), "CRDS_PATH": str(installed / "crds"),
                   "TLS_CA_SECRET_NAME": "crossplane-root-ca", "TLS_CLIENT_SECRET_NAME": "crossplane-tls-client"}
    log = folder / "init.log"
    for _ in range(INIT_ATTEMPTS):
        with log.open("ab") as sink:
            ended = subprocess.run([installed / "crossplane", "core", "init", "--namespace", NAMESPACE, "--enable-webhooks=false"],
                                   env=environment, stdout=sink, stderr=sink)
        if ended.returncode == 0:
            return
        time.sleep(0.5)
    raise SystemExit(f"crossplane core init failed:\n{log.read_text(errors='replace')[-3000:]}")


def install_function(client, address):
    """A function that runs already, as an active revision."""
    paused = {"crossplane.io/paused": "true"}
    package = f"example.org/function-{FUNCTION}:{install.VERSIONS['functions'][f'function-{FUNCTION}']}"
    kinds = "/apis/pkg.crossplane.io/v1"
    accepted(client, "POST", f"{kinds}/functions", {
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "metadata": {"name": FUNCTION, "annotations": paused},
        "spec": {"package": package}})
    revision = f"{FUNCTION}-1"
    accepted(client, "POST", f"{kinds}/functionrevisions", {
        "apiVersion": "pkg.crossplane.io/v1", "kind": "FunctionRevision",
        "metadata": {"name": revision, "annotations": paused, "labels": {"pkg.crossplane.io/package": FUNCTION}},
        "spec": {"desiredState": "Active", "image": package, "revision": 1}})
    accepted(client, "PATCH", f"{kinds}/functionrevisions/{revision}/status",
             {"status": {"endpoint": f"dns:///{address}", "capabilities": ["composition"]}}, api.MERGE)


def accepted(client, method, path, body, content_type=api.JSON):
    answer = client.request(method, path, body=json.dumps(body), headers={"Content-Type": content_type})
    if answer.rejected:
        raise SystemExit(f"{method} {path}: {answer.code} {answer.body}")
