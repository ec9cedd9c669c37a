"""Runs the providers that come with Transom against real servers: `provider-sql` with Debian's PostgreSQL; `provider-kubernetes` beside
the genuine one, see kubernetes.py.

A claim becomes a role, a database and a grant that selectors wire together; `psql` logs in with exactly the secret that was
published, and may do exactly what was granted. What is changed by hand in SQL is put right. Deletion and orphaning do what they
say. Restarts and outages of the server heal. Cases in modules of their own: tutorial.py, edges.py, tls.py, and kills.py, which kills the
plane at its durable writes and around calls of the server. speed.py measures (`--speed`). `--only WORD` picks cases whose name has the
word.
"""

import argparse
import base64
import contextlib
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# Other modules of this suite use this one, which is not imported a second time.
sys.modules["suite"] = sys.modules[__name__]
sys.path[:0] = [str(HERE.parent), str(HERE)]

import api  # noqa: E402
import cargo  # noqa: E402
import install  # noqa: E402
import postgres  # noqa: E402
import servers  # noqa: E402

ROOT = HERE.parent.parent
WITHIN = 90  # seconds
GROUP = "/apis/postgresql.sql.crossplane.io/v1alpha1"
MODERN = "/apis/postgresql.sql.m.crossplane.io/v1alpha1"
CLAIMS = "/apis/platform.example.org/v1/namespaces/default/databases"
POLL = {"crossplane.io/poll-interval": "1s"}


class Plane:
    """`transom up` on a folder; it can be killed and started again."""

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, servers.free_port(), None

    def start(self, **environment):
        log = open(self.folder / "plane.log", "ab")
        command = [str(cargo.binary()), "up", "--data-dir", str(self.folder / "plane"), "--listen", f"127.0.0.1:{self.port}"]
        self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**os.environ, **environment})
        return self

    def ready(self):
        deadline = time.monotonic() + WITHIN
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                return False
            with contextlib.suppress(Exception):
                self.client = api.Client(servers.Server("transom", self.folder / "plane/kubeconfig"))
                if self.client.request("GET", "/readyz").code == 200:
                    return True
            time.sleep(0.05)
        raise SystemExit("the plane is not ready")

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def log(self):
        return (self.folder / "plane.log").read_text(errors="replace")

    def apply(self, manifest):
        """One document, by server-side apply; a kind that is not served yet is waited for."""
        group, _, version = manifest["apiVersion"].rpartition("/")
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        metadata = manifest["metadata"]
        space = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
        plural = PLURALS.get(manifest["kind"]) or manifest["kind"].lower() + "s"
        path = f"{root}{space}/{plural}/{metadata['name']}"
        until(f"{path} can be applied", lambda: not self.send(path, manifest).rejected)
        return path

    def send(self, path, manifest):
        return self.client.request("PATCH", path, {"fieldManager": "suite", "force": "true"}, json.dumps(manifest), {"Content-Type": api.APPLY})

    def apply_file(self, path):
        for document in documents(path):
            self.apply(document)

    def patch(self, path, patch):
        answer = self.client.request("PATCH", path, None, json.dumps(patch), {"Content-Type": api.MERGE})
        assert not answer.rejected, answer.body

    def get(self, path):
        answer = self.client.request("GET", path)
        return None if answer.code == 404 else answer.body

    def list(self, path):
        return self.client.request("GET", path).body.get("items", [])

    def delete(self, path):
        self.client.request("DELETE", path)

    def secret(self, name):
        found = self.get(f"/api/v1/namespaces/default/secrets/{name}")
        return {key: base64.b64decode(value).decode() for key, value in (found or {}).get("data", {}).items()}


PLURALS = {"DefaultPrivileges": "defaultprivileges"}


def documents(path):
    """The documents of a YAML file. The environment of the Python client has a library for that, if this one has none."""
    python = sys.executable if importlib.util.find_spec("yaml") else install.python()
    code = "import yaml,json,sys; print(json.dumps([d for d in yaml.safe_load_all(open(sys.argv[1])) if d]))"
    shown = subprocess.run([str(python), "-c", code, str(path)], check=True, capture_output=True, text=True)
    return json.loads(shown.stdout)


def until(what, ready, within=WITHIN):
    deadline = time.monotonic() + within
    while True:
        found = ready()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within} s: {what() if callable(what) else what}")
        time.sleep(0.05)


def condition(found, kind):
    conditions = (found or {}).get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == kind), {})


def is_ready(found):
    return condition(found, "Ready").get("status") == "True" and condition(found, "Synced").get("status") == "True"


def config(server):
    """The Secret with the superuser's credentials, and the ProviderConfigs that lead to it."""
    data = {"endpoint": "127.0.0.1", "port": str(server.port), "username": "postgres", "password": server.password}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "postgres", "namespace": "default"}, "stringData": data}
    credentials = {"source": "PostgreSQLConnectionSecret", "connectionSecretRef": {"name": "postgres", "namespace": "default"}}
    cluster = {"apiVersion": "postgresql.sql.crossplane.io/v1alpha1", "kind": "ProviderConfig", "metadata": {"name": "default"},
               "spec": {"credentials": credentials, "sslMode": "disable"}}
    own = {"source": "PostgreSQLConnectionSecret", "connectionSecretRef": {"name": "postgres"}}
    namespaced = {"apiVersion": "postgresql.sql.m.crossplane.io/v1alpha1", "kind": "ProviderConfig", "metadata": {"name": "own", "namespace": "default"},
                  "spec": {"credentials": own, "sslMode": "disable"}}
    return [secret, cluster, namespaced]


def managed(kind, name, parameters, modern=False, **spec):
    found = {"apiVersion": ("postgresql.sql.m.crossplane.io" if modern else "postgresql.sql.crossplane.io") + "/v1alpha1", "kind": kind,
             "metadata": {"name": name, "annotations": dict(POLL)}, "spec": {"forProvider": parameters, **spec}}
    if modern:
        found["metadata"]["namespace"] = "default"
        found["spec"].setdefault("providerConfigRef", {"kind": "ProviderConfig", "name": "own"})
    return found


class Suite:
    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        self.passed, self.failed = 0, 0

    def case(self, name, check):
        if self.options.only and self.options.only not in name:
            return
        began = time.monotonic()
        try:
            check()
            self.passed += 1
            print(f"ok    {name} ({time.monotonic() - began:.1f} s)", flush=True)
        except (AssertionError, SystemExit) as problem:
            self.failed += 1
            print(f"FAIL  {name}: {problem}", flush=True)

    def compare_kubernetes(self):
        import kubernetes  # it uses functions of this module
        folder = self.folder / "kubernetes"
        folder.mkdir()
        kubernetes.compare(folder)

    def tutorial(self):
        import tutorial
        tutorial.run(self.folder / "tutorial")

    def run(self):
        self.case("kubernetes: the genuine provider-kubernetes and ours make the same", self.compare_kubernetes)
        self.case("tutorial: the commands of the page do what it says", self.tutorial)
        if self.options.only.startswith(("kubernetes", "tutorial")):
            return self.conclude()
        self.server = postgres.Postgres(self.folder / "postgres").start()
        self.plane = Plane(self.folder).start()
        self.plane.ready()
        try:
            self.plane.apply_file(ROOT / "examples/database/platform.yaml")
            for manifest in config(self.server):
                self.plane.apply(manifest)
            self.case("a claim becomes a database that psql can use", self.claim)
            self.case("drift made by hand is put right", self.drift)
            self.case("a larger claim changes the database", self.scale)
            self.case("namespaced kinds do the same", self.modern)
            self.case("schemas, extensions, tables and default privileges", self.others)
            self.case("a password is rotated", self.rotate)
            self.case("a used ProviderConfig is not deleted", self.protected)
            self.case("an outage degrades and heals", self.outage)
            self.case("deletion deletes, and orphaning does not", self.delete)
            if self.options.speed:
                self.case("speed: many Roles beside a plain client", self.speed)
            self.case("passwords are nowhere but in secrets", self.passwords)
            for name, check in self.edges().items():
                self.case(name, check)
            self.case("tls: each mode accepts and refuses what it should", self.tls)
            if self.options.kills:
                self.case("kills around every change lose nothing and repeat nothing", self.kills)
        finally:
            self.plane.kill()
            self.server.stop()
        return self.conclude()

    def conclude(self):
        print(f"providers: {self.passed} passed, {self.failed} failed")
        return 1 if self.failed else 0

    # Each case leaves what the next one begins with.

    def claim(self):
        claim = self.plane.apply(documents(ROOT / "examples/database/claim.yaml")[0])
        until("the claim is ready", lambda: is_ready(self.plane.get(claim)))
        self.details = until("the secret has all keys", lambda: (s := self.plane.secret("orders-connection")) and len(s) == 4 and s)
        user, password = self.details["username"], self.details["password"]
        login = {"user": user, "password": password, "database": "orders"}
        assert self.details["endpoint"] == "127.0.0.1" and self.details["port"] == str(self.server.port), self.details
        assert self.server.value("SELECT current_user", **login) == user
        self.server.psql("CREATE TEMPORARY TABLE mine (a int); INSERT INTO mine VALUES (1)", **login)
        for forbidden in ("CREATE SCHEMA mine", "CREATE DATABASE other", "CREATE ROLE other"):
            refused = self.server.psql(forbidden, check=False, **login)
            assert refused.returncode and "permission denied" in refused.stderr, f"{forbidden}: {refused.stderr}"
        wrong = self.server.psql("SELECT 1", check=False, user=user, password="wrong", database="orders")
        assert "password authentication failed" in wrong.stderr, wrong.stderr
        self.server.psql("CREATE ROLE stranger LOGIN PASSWORD 'x'")
        stranger = self.server.psql("SELECT 1", check=False, user="stranger", password="x", database="orders")
        assert "permission denied for database" in stranger.stderr, stranger.stderr
        grant = self.plane.list(f"{GROUP}/grants")[0]["spec"]["forProvider"]
        assert grant["role"] == user and grant["database"] == "orders" and grant["roleRef"]["name"] and grant["databaseRef"]["name"], grant

    def drift(self):
        for kind in ("databases", "roles", "grants"):
            for found in self.plane.list(f"{GROUP}/{kind}"):
                self.plane.patch(f"{GROUP}/{kind}/{found['metadata']['name']}", {"metadata": {"annotations": POLL}})
        user = self.details["username"]
        self.server.psql('ALTER DATABASE orders CONNECTION LIMIT 3')
        self.server.psql(f'ALTER ROLE "{user}" NOLOGIN')
        self.server.psql(f'REVOKE CONNECT ON DATABASE orders FROM "{user}"')
        self.server.psql("GRANT CONNECT ON DATABASE orders TO PUBLIC")
        until("the limit is put right", lambda: self.server.value("SELECT datconnlimit FROM pg_database WHERE datname = 'orders'") == "10")
        login = {"user": user, "password": self.details["password"], "database": "orders"}
        until("the role can log in", lambda: self.server.psql("SELECT 1", check=False, **login).returncode == 0)
        until("others cannot", lambda: self.server.psql("SELECT 1", check=False, user="stranger", password="x", database="orders").returncode)

    def scale(self):
        self.plane.patch(f"{CLAIMS}/orders", {"spec": {"connections": 25}})
        until("the limit is changed", lambda: self.server.value("SELECT datconnlimit FROM pg_database WHERE datname = 'orders'") == "25")
        until("the claim is ready", lambda: is_ready(self.plane.get(f"{CLAIMS}/orders")))

    def modern(self):
        role = self.plane.apply(managed("Role", "app", {"privileges": {"login": True}}, modern=True, writeConnectionSecretToRef={"name": "app"}))
        # The grant comes before its database: it waits for a watch, and says what for.
        grant = self.plane.apply(managed("Grant", "app", {"privileges": ["ALL"], "roleRef": {"name": "app"}, "databaseSelector": {"matchLabels": {"app": "a"}}}, modern=True))
        waits = until("the grant waits", lambda: condition(self.plane.get(grant), "Synced").get("message"))
        assert "no resources matched selector" in waits and "app=a" in waits, waits
        database = managed("Database", "app", {"ownerRef": {"name": "app"}}, modern=True)
        database["metadata"]["labels"] = {"app": "a"}
        database = self.plane.apply(database)
        for path in (role, database, grant):
            until(f"{path} is ready", lambda: is_ready(self.plane.get(path)))
        secret = self.plane.secret("app")
        assert self.server.value("CREATE SCHEMA mine; SELECT current_user", user="app", password=secret["password"], database="app").endswith("app")

    def others(self):
        self.server.psql("CREATE TABLE public.items (a int, b int); CREATE SEQUENCE public.counter; CREATE FUNCTION public.f(a int, b text) RETURNS int LANGUAGE sql AS 'SELECT 1'", database="app")
        privileges = {"role": "app", "database": "app", "schema": "public"}
        all_of_them = [
            managed("Role", "reader", {"privileges": {"login": False}}),
            managed("Schema", "inventory", {"database": "app", "roleRef": {"name": "reader"}}),
            managed("Extension", "crypto", {"database": "app", "extension": "pgcrypto", "schema": "public"}),
            managed("Grant", "on-table", {**privileges, "role": "reader", "privileges": ["SELECT", "INSERT"], "tables": ["items"]}),
            managed("Grant", "on-column", {**privileges, "role": "reader", "privileges": ["UPDATE"], "tables": ["items"], "columns": ["a"]}),
            managed("Grant", "on-sequence", {**privileges, "role": "reader", "privileges": ["ALL"], "sequences": ["counter"]}),
            managed("Grant", "on-function", {**privileges, "role": "reader", "privileges": ["EXECUTE"], "routines": [{"name": "f", "args": ["integer", "text"]}]}),
            managed("Grant", "on-schema", {**privileges, "role": "reader", "privileges": ["USAGE"]}),
            managed("Grant", "member", {"roleRef": {"name": "reader"}, "memberOf": "pg_monitor", "withOption": "ADMIN"}),
            managed("DefaultPrivileges", "tables", {"database": "app", "roleRef": {"name": "reader"}, "targetRole": "app", "objectType": "table", "schema": "public", "privileges": ["SELECT"]}),
        ]
        paths = [self.plane.apply(manifest) for manifest in all_of_them]
        for path in paths:
            until(f"{path} is ready", lambda: is_ready(self.plane.get(path)))
        granted = self.server.value("SELECT has_table_privilege('reader', 'public.items', 'SELECT,INSERT') AND NOT has_table_privilege('reader', 'public.items', 'DELETE') "
                                    "AND has_column_privilege('reader', 'public.items', 'a', 'UPDATE') AND NOT has_column_privilege('reader', 'public.items', 'b', 'UPDATE') "
                                    "AND has_sequence_privilege('reader', 'public.counter', 'USAGE') AND pg_has_role('reader', 'pg_monitor', 'MEMBER')", database="app")
        assert granted == "t", granted
        self.plane.patch(f"{GROUP}/grants/on-table", {"spec": {"forProvider": {"privileges": ["SELECT"]}}})
        until("what is no longer listed is revoked", lambda: self.server.value("SELECT has_table_privilege('reader', 'public.items', 'INSERT')", database="app") == "f")
        for path in reversed(paths[1:]):
            self.plane.delete(path)
        until("all but the role are gone", lambda: not any(self.plane.get(path) for path in paths[1:]))
        assert self.server.value("SELECT count(*) FROM pg_extension WHERE extname = 'pgcrypto'", database="app") == "0"
        self.plane.delete(paths[0])
        until("the role is dropped", lambda: not self.server.exists("pg_roles", "rolname", "reader"))

    def rotate(self):
        before = self.plane.secret("app")["password"]
        self.plane.patch(f"{MODERN}/namespaces/default/roles/app", {"spec": {"forProvider": {"passwordRotationTrigger": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}}})
        after = until("there is another password", lambda: (p := self.plane.secret("app")["password"]) != before and p)
        login = lambda password: self.server.psql("SELECT 1", check=False, user="app", password=password, database="app").returncode == 0
        assert login(after) and not login(before)
        time.sleep(3)
        assert self.plane.secret("app")["password"] == after, "it is rotated once"

    def protected(self):
        path = f"{GROUP}/providerconfigs/default"
        users = self.plane.get(path)["status"]["users"]
        assert users == 3, users
        self.plane.delete(path)
        until("it says why it stays", lambda: condition(self.plane.get(path), "Terminating").get("reason") == "InUse")
        self.plane_after_protection = path

    def outage(self):
        self.server.stop()
        role = f"{MODERN}/namespaces/default/roles/app"
        broken = until("it degrades", lambda: condition(self.plane.get(role), "Synced").get("reason") == "ReconcileError" and self.plane.get(role))
        assert "failed" in condition(broken, "Synced")["message"], broken["status"]
        waiting = self.plane.apply(managed("Role", "later", {}))
        until("a new one says so, too", lambda: condition(self.plane.get(waiting), "Synced").get("reason") == "ReconcileError")
        self.server.start()
        for path in (role, f"{GROUP}/roles/later"):
            until(f"{path} heals", lambda: is_ready(self.plane.get(path)))
        self.plane.delete(waiting)
        until("it is gone", lambda: self.plane.get(waiting) is None)

    def delete(self):
        for kind in ("databases", "roles", "grants"):
            for found in self.plane.list(f"{MODERN}/namespaces/default/{kind}"):
                policies = ["Observe", "Create", "Update"] if kind == "databases" else ["*"]
                self.plane.patch(f"{MODERN}/namespaces/default/{kind}/{found['metadata']['name']}", {"spec": {"managementPolicies": policies}})
        self.plane.delete(f"{MODERN}/namespaces/default/grants/app")
        self.plane.delete(f"{MODERN}/namespaces/default/databases/app")
        until("the object is gone", lambda: self.plane.get(f"{MODERN}/namespaces/default/databases/app") is None)
        assert self.server.exists("pg_database", "datname", "app"), "it is an orphan"
        self.plane.delete(f"{MODERN}/namespaces/default/roles/app")
        stuck = until("the role says why it stays", lambda: "cannot be dropped" in condition(self.plane.get(f"{MODERN}/namespaces/default/roles/app"), "Synced").get("message", ""))
        assert stuck
        self.server.psql("DROP DATABASE app")
        until("the role is gone", lambda: self.plane.get(f"{MODERN}/namespaces/default/roles/app") is None)
        assert not self.server.exists("pg_roles", "rolname", "app")
        self.plane.delete(f"{CLAIMS}/orders")
        until("the claim is gone", lambda: self.plane.get(f"{CLAIMS}/orders") is None)
        until("and its database", lambda: not self.server.exists("pg_database", "datname", "orders"))
        until("and its role", lambda: not self.server.exists("pg_roles", "rolname", self.details["username"]))
        until("the ProviderConfig goes with its last user", lambda: self.plane.get(f"{GROUP}/providerconfigs/default") is None)

    def passwords(self):
        for text in (self.plane.log(), self.server.log()):
            assert self.details["password"] not in text
        events = str(self.plane.list("/api/v1/events"))
        assert self.details["password"] not in events and self.server.password not in events

    def edges(self):
        import edges
        # The cases before these delete them.
        for manifest in config(self.server):
            self.plane.apply(manifest)
        return edges.Edges(self.plane, self.server).cases()

    def tls(self):
        import tls
        tls.run(self.folder / "tls", self.plane)

    def speed(self):
        import speed
        speed.run(self.plane, self.server, self.options)

    def kills(self):
        import kills
        kills.run(self.plane, self.server, self.options)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", choices=("transom", "real"), default="transom")
    parser.add_argument("--only", default="")
    parser.add_argument("--kills", type=int, default=20, help="how often the plane is killed while it makes and deletes roles and databases")
    parser.add_argument("--speed", action="store_true", help="measures only, see speed.py")
    parser.add_argument("--count", type=int, default=1000, help="of Roles that --speed makes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4)
    options = parser.parse_args()
    if options.speed:
        options.only = "speed"
    if options.against == "real":
        print("providers: 0 passed, 0 failed (their peers are PostgreSQL and the genuine provider-kubernetes)")
        return 0
    with servers.workspace("providers") as (folder, _):
        return Suite(folder, options).run()


if __name__ == "__main__":
    sys.exit(main())
