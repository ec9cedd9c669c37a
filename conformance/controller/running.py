"""`transom controller` as processes on a real kube-apiserver, each with a user of its own, so that the audit log says which of them sent a request."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time
import urllib.request

import api
import cargo
import install
import servers

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMESPACE = "crossplane-system"
WITHIN = 120  # seconds for anything to become true on a loaded machine


class Failed(Exception):
    """An expectation was not met."""


def expect(condition, message):
    if not condition:
        raise Failed(message)


def wait(what, true, within=WITHIN, every=0.05):
    """Waits until `true()` gives something true, and gives that."""
    deadline = time.monotonic() + within
    while True:
        found = true()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Failed(f"not within {within} s: {what}")
        time.sleep(every)


class Controller:
    """One process."""

    def __init__(self, name, child, probes):
        self.name, self.child, self.probes = name, child, probes

    def probe(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.probes}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()
        except OSError:
            return None, ""

    def ready(self):
        if self.child.poll() is not None:
            raise Failed(f"controller {self.name} ended with {self.child.returncode}")
        return self.probe("/readyz")[0] == 200

    def pause(self):
        self.child.send_signal(signal.SIGSTOP)

    def resume(self):
        self.child.send_signal(signal.SIGCONT)

    def stop(self):
        """A clean stop. Gives the exit code."""
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(30)

    def kill(self):
        self.child.kill()
        self.child.wait()


class Cluster:
    """A real API server, and what is done with it."""

    def __init__(self, server, processes):
        self.server, self.processes, self.client = server, processes, api.Client(server)
        self.kubectl_program = install.kubernetes() / "kubectl"

    def kubectl(self, *arguments, stdin=None, fails=False):
        command = [self.kubectl_program, "--kubeconfig", self.server.kubeconfig, *map(str, arguments)]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, cwd=ROOT)
        if fails is not None and bool(done.returncode) != fails:
            raise Failed(f"kubectl {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def transom(self, *arguments, fails=False, kubeconfig=None):
        """A command of the binary, on this cluster. Gives both outputs."""
        command = [cargo.binary(), *map(str, arguments), "--kubeconfig", kubeconfig or self.server.kubeconfig]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "RUST_LOG": "off"})
        if fails is not None and bool(done.returncode) != fails:
            raise Failed(f"transom {' '.join(map(str, arguments))}: {done.returncode} {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def apply(self, *objects):
        return self.kubectl("apply", "-f", "-", stdin="\n---\n".join(json.dumps(o) for o in objects))

    def get(self, path):
        answer = self.client.request("GET", path)
        return None if answer.rejected else answer.body

    def condition(self, path, kind):
        found = self.get(path) or {}
        return next((c for c in found.get("status", {}).get("conditions", []) if c["type"] == kind), {})

    def is_true(self, path, kind):
        return self.condition(path, kind).get("status") == "True"

    def kubeconfig(self, user):
        """A kubeconfig of one of the server's further users."""
        path = self.server.folder / f"kubeconfig-{user}"
        servers.write_kubeconfig(path, self.server.port, self.server.authority, user)
        return path

    def start(self, user, *flags, ready=True, kubeconfig=None, **environment):
        probes = servers.free_port()
        environment.setdefault("RUST_LOG", "info,kube=off,tower_http=off")
        child = self.processes.start(
            f"controller-{user}", cargo.binary(), "controller", "--kubeconfig", kubeconfig or self.kubeconfig(user), "--listen-address", "127.0.0.1",
            "--health-probe-port", probes, "--metrics-port", probes, "--webhook-port", "0", "--webhook-url=", "--container-runtime", "none", *flags, **environment)
        controller = Controller(user, child, probes)
        if ready:
            wait(f"controller {user} is ready", controller.ready)
        return controller

    def requests(self, user=None, write=None, since=0):
        """The requests of the audit log, in the order of their ends."""
        found = []
        with self.server.audit.open() as lines:
            lines.seek(since)
            for line in lines:
                if not line.endswith("\n"):
                    break
                event = json.loads(line)
                writes = event["verb"] not in ("get", "list", "watch")
                if (user is None or event["user"]["username"] == user) and (write is None or writes == write):
                    found.append(event)
        return found

    def audited(self):
        """The present end of the audit log."""
        return self.server.audit.stat().st_size

    def log(self, user):
        return (self.processes.folder / f"controller-{user}.log").read_text(errors="replace")


def changes(events):
    """Writes other than Leases, reviews, Events and the addresses of webhooks (each process has a port of its own), as `verb resource namespace/name by user`."""
    shown = []
    for event in events:
        ref = event.get("objectRef", {})
        if ref.get("resource") in ("leases", "events", "validatingwebhookconfigurations", "selfsubjectaccessreviews", "selfsubjectreviews"):
            continue
        place = "/".join(part for part in (ref.get("namespace"), ref.get("name")) if part)
        sub = f"/{ref['subresource']}" if ref.get("subresource") else ""
        shown.append(f"{event['verb']} {ref.get('resource')}{sub} {place} by {event['user']['username']}: {event.get('responseStatus', {}).get('code')}")
    return shown


@contextlib.contextmanager
def cluster(users=("a", "b", "c"), fairness=True, controllers=True):
    """A kube-apiserver with priority and fairness and an audit log."""
    with servers.real(controllers=controllers, users=users, audit=True, fairness=fairness) as server:
        with servers.workspace("controller") as (_, processes):
            found = Cluster(server, processes)
            found.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            try:
                yield found
            except Exception:
                if os.environ.get("TRANSOM_KEEP"):
                    print(f"logs: {processes.folder}")
                raise
