"""Starts the servers under comparison and stops them again.

`real()` is etcd + kube-apiserver + the controllers that belong to it; `transom()` is the binary of this
repository. Both are context managers that give a `Server`: a kubeconfig file and the parsed way in.
Everything listens on loopback and writes to a folder that is removed afterwards. Both keep nothing across
a crash unless asked to be `durable`, which is how they are measured.
"""

import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.parse

import cargo
import install

# Every request once, when it was answered.
AUDIT_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived", "ResponseStarted"],
                "rules": [{"level": "Metadata"}]}
READY_WITHIN = 180  # seconds; a loaded two-core machine needs about twenty


class Server:
    """A running API server, as a kubeconfig describes it."""

    def __init__(self, name, kubeconfig):
        self.name = name
        self.kubeconfig = pathlib.Path(kubeconfig)
        self.pids, self.started, self.seconds_to_ready = [], None, None
        text = self.kubeconfig.read_text()

        def field(key):
            found = re.search(rf"^\s*-?\s*{key}:\s*[\"']?([^\s\"']+)", text, re.M)
            return found and found.group(1)

        self.url = field("server").rstrip("/")
        self.host = urllib.parse.urlparse(self.url).netloc
        self.token = field("token")
        self.tls = ssl.create_default_context(cadata=base64.b64decode(field("certificate-authority-data")).decode())
        self.tls.check_hostname = False
        self.tls.verify_flags &= ~ssl.VERIFY_X509_STRICT if hasattr(ssl, "VERIFY_X509_STRICT") else ~0
        # For requests that bring a credential of their own: a client certificate would win over it.
        self.bare_tls = ssl.create_default_context(cadata=base64.b64decode(field("certificate-authority-data")).decode())
        self.bare_tls.check_hostname = False
        self.bare_tls.verify_flags &= ~ssl.VERIFY_X509_STRICT if hasattr(ssl, "VERIFY_X509_STRICT") else ~0
        if field("client-certificate-data"):
            with tempfile.TemporaryDirectory() as folder:
                pair = []
                for part in ("certificate", "key"):
                    pair.append(os.path.join(folder, part))
                    pathlib.Path(pair[-1]).write_bytes(base64.b64decode(field(f"client-{part}-data")))
                self.tls.load_cert_chain(*pair)

    def headers(self):
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def write_kubeconfig(path, port, authority, token):
    path.write_text(f"""apiVersion: v1
kind: Config
clusters:
- name: real
  cluster:
    server: https://127.0.0.1:{port}
    certificate-authority-data: {base64.b64encode(authority).decode()}
users:
- name: admin
  user:
    token: {token}
contexts:
- name: real
  context:
    cluster: real
    user: admin
current-context: real
""")


class Processes:
    """Child processes with a log file each, ended in reverse order."""

    def __init__(self, folder):
        self.folder, self.children = folder, []

    def start(self, name, *command, **env):
        log = self.folder / f"{name}.log"
        child = subprocess.Popen([str(part) for part in command], stdout=log.open("ab"), stderr=subprocess.STDOUT,
                                 stdin=subprocess.DEVNULL, env={**os.environ, **env})
        self.children.append((name, child, log))
        return child

    def await_ready(self, what, ready, every=0.05):
        deadline = time.monotonic() + READY_WITHIN
        while time.monotonic() < deadline:
            for name, child, log in self.children:
                if child.poll() is not None:
                    raise SystemExit(f"{name} ended with {child.returncode}:\n{log.read_text(errors='replace')[-3000:]}")
            with contextlib.suppress(OSError):
                if ready():
                    return
            time.sleep(every)
        raise SystemExit(f"{what} is not ready after {READY_WITHIN} s; see {self.folder}")

    def describe(self, server, began):
        server.pids, server.seconds_to_ready = [child.pid for _, child, _ in self.children], time.monotonic() - began
        server.started = time.time() - server.seconds_to_ready
        return server

    def stop(self):
        for _, child, _ in reversed(self.children):
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


@contextlib.contextmanager
def workspace(name):
    """A folder and child processes, both gone afterwards."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"transom-{name}-"))
    processes = Processes(folder)
    try:
        yield folder, processes
    finally:
        processes.stop()
        if not os.environ.get("TRANSOM_KEEP"):
            shutil.rmtree(folder, ignore_errors=True)


def _answers(server, path):
    import http.client  # only here: everything else talks through api.py
    connection = http.client.HTTPSConnection(server.host, timeout=5, context=server.tls)
    try:
        connection.request("GET", path, headers=server.headers())
        return connection.getresponse().status == 200
    finally:
        connection.close()


@contextlib.contextmanager
def real(controllers=True, durable=False, users=(), audit=False, fairness=False, flags=()):
    """A real kube-apiserver on a throw-away etcd. `users` are further administrators, by tokens of the same names; with `audit`,
    `server.audit` is the file of all requests; with `fairness`, priority and fairness bound requests as they do by default."""
    programs = install.kubernetes()
    with workspace("real") as (folder, processes):
        store, peer, port = free_port(), free_port(), free_port()
        key = folder / "service-account.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        accounts = [("conformance", "kubernetes-admin"), *((user, user) for user in users)]
        (folder / "tokens.csv").write_text("".join(f"{token},{user},{user},system:masters\n" for token, user in accounts))
        if audit:
            (folder / "audit.json").write_text(json.dumps(AUDIT_POLICY))
            flags = (*flags, f"--audit-policy-file={folder}/audit.json", f"--audit-log-path={folder}/audit.log")
        if not fairness:
            flags = (*flags, "--enable-priority-and-fairness=false", "--max-requests-inflight=0", "--max-mutating-requests-inflight=0")
        began = time.monotonic()
        processes.start("etcd", programs / "etcd", "--data-dir", folder / "etcd", "--log-level=error",
                        *([] if durable else ["--unsafe-no-fsync"]),
                        f"--listen-client-urls=http://127.0.0.1:{store}", f"--advertise-client-urls=http://127.0.0.1:{store}",
                        f"--listen-peer-urls=http://127.0.0.1:{peer}")
        processes.start(
            "kube-apiserver", programs / "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{store}",
            "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--secure-port={port}", f"--cert-dir={folder}/certificates",
            "--endpoint-reconciler-type=none", "--authorization-mode=RBAC", f"--token-auth-file={folder}/tokens.csv",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}", "--service-cluster-ip-range=10.0.0.0/16", "-v=0", *flags)
        certificate = folder / "certificates/apiserver.crt"
        processes.await_ready("the certificate", lambda: certificate.exists() and b"END" in certificate.read_bytes())
        write_kubeconfig(folder / "kubeconfig", port, certificate.read_bytes(), "conformance")
        server = Server("real", folder / "kubeconfig")
        server.folder, server.port, server.authority, server.audit = folder, port, certificate.read_bytes(), folder / "audit.log"
        processes.await_ready("kube-apiserver", lambda: _answers(server, "/readyz"))
        processes.describe(server, began)
        if controllers:
            processes.start("controllers", programs / "controllers", "--kubeconfig", server.kubeconfig)
            processes.await_ready("the service account controller",
                                  lambda: _answers(server, "/api/v1/namespaces/default/serviceaccounts/default"))
        yield server


@contextlib.contextmanager
def transom(durable=False, controllers=False, flags=(), **environment):
    """The server of this repository; with `controllers` the whole control plane."""
    with workspace("transom") as (folder, processes):
        port = free_port()
        kubeconfig = folder / "kubeconfig"
        binary = cargo.binary()
        began = time.monotonic()
        processes.start("transom", binary, "up", *([] if controllers else ["--api-server-only"]), *(["--data-dir", folder / "data"] if durable else ["--in-memory"]),
                        "--listen", f"127.0.0.1:{port}", "--kubeconfig", kubeconfig, *flags, **environment)
        processes.await_ready("the kubeconfig", lambda: kubeconfig.exists() and b"server:" in kubeconfig.read_bytes(), every=0.002)
        server = Server("transom", kubeconfig)
        processes.await_ready("transom", lambda: _answers(server, "/readyz"), every=0.002)
        yield processes.describe(server, began)


def start(kind):
    return {"real": real, "transom": transom}[kind]()
