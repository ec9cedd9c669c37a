"""Cases of provider-sql at the edges: a database that cannot be reached beside one that can, what stays after a deletion, passwords that
users give, what is dropped by hand, what protects configurations, and how many connections there are.

Each case makes what it needs, and deletes it. What was just created is gone only after half a minute, so nothing waits for that.
"""

import collections
import re
import socket
import time

import suite

GROUP, MODERN = suite.GROUP, f"{suite.MODERN}/namespaces/default"


class Edges:
    def __init__(self, plane, server):
        self.plane, self.server = plane, server

    def until_ready(self, *paths):
        for path in paths:
            suite.until(lambda: f"{path} is ready: {self.plane.get(path)['status']}", lambda: suite.is_ready(self.plane.get(path)))

    def synced(self, path):
        return suite.condition(self.plane.get(path), "Synced")

    def config(self, name, port=None, kind="ProviderConfig", **spec):
        """A ProviderConfig with a Secret of its own."""
        data = {"endpoint": "127.0.0.1", "port": str(port or self.server.port), "username": "postgres", "password": self.server.password}
        self.plane.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}, "stringData": data})
        reference = {"name": name, "namespace": "default"}
        group = "postgresql.sql.crossplane.io" if kind == "ProviderConfig" else "postgresql.sql.m.crossplane.io"
        spec = {"credentials": {"source": "PostgreSQLConnectionSecret", "connectionSecretRef": reference}, "sslMode": "disable", **spec}
        return self.plane.apply({"apiVersion": f"{group}/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})

    def connections(self):
        """How many connections the provider has now, by database."""
        rows = self.server.value("SELECT datname, count(*) FROM pg_stat_activity WHERE application_name = 'provider-sql' GROUP BY 1")
        return {name: int(count) for name, count in (row.split("|") for row in rows.splitlines())}

    def unreachable(self):
        """More resources of a server that never answers than a pool has connections, beside one of a server that works."""
        with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_server(("127.0.0.1", 0)) as closed:
            refusing = closed.getsockname()[1]
            closed.close()
            self.config("works")
            good = self.plane.apply(suite.managed("Role", "good", {}, providerConfigRef={"name": "works"}))
            self.until_ready(good)
            self.config("silent", silent.getsockname()[1])
            self.config("refusing", refusing)
            bad = [self.plane.apply(suite.managed("Role", f"bad-{n}", {}, providerConfigRef={"name": ("silent", "refusing")[n % 2]})) for n in range(40)]
            began = time.monotonic()
            beside = self.plane.apply(suite.managed("Role", "beside", {}, providerConfigRef={"name": "works"}))
            self.server.psql("ALTER ROLE good CONNECTION LIMIT 3 NOINHERIT")
            self.until_ready(beside)
            suite.until("drift is put right", lambda: self.server.value("SELECT rolinherit FROM pg_roles WHERE rolname = 'good'") == "t")
            took = time.monotonic() - began
            for path, word in ((bad[0], "did not respond within 10 s"), (bad[1], "connection refused")):
                suite.until(lambda: f"{path} says {word!r}: {self.synced(path)}", lambda: word in self.synced(path).get("message", "").lower())
            assert suite.is_ready(self.plane.get(good)), self.plane.get(good)["status"]
            assert took < 30, f"the others took {took:.0f} s"
            for path in bad:
                self.plane.patch(path, {"spec": {"deletionPolicy": "Orphan"}})
                self.plane.delete(path)
            for path in bad:
                suite.until(lambda: f"{path} can be given up", lambda: self.plane.get(path) is None)
        for path in (good, beside):
            self.plane.delete(path)

    def orphan(self):
        """`deletionPolicy: Orphan` leaves a database and its role, with what is in them; they can be adopted again."""
        role = self.plane.apply(suite.managed("Role", "keeper", {"privileges": {"login": True}}, deletionPolicy="Orphan"))
        database = self.plane.apply(suite.managed("Database", "kept", {"ownerRef": {"name": "keeper"}}, deletionPolicy="Orphan"))
        self.until_ready(role, database)
        self.server.psql("CREATE TABLE precious AS SELECT 1 AS a", database="kept")
        for path in (database, role):
            self.plane.delete(path)
            suite.until(f"{path} is gone", lambda: self.plane.get(path) is None)
        assert self.server.value("SELECT a FROM precious", database="kept") == "1", "the database stays"
        assert self.server.exists("pg_roles", "rolname", "keeper"), "and so does its role"
        adopted = self.plane.apply(suite.managed("Database", "kept", {"ownerRef": {"name": "keeper"}, "connectionLimit": 7}))
        suite.until("it says which role is missing", lambda: "keeper" in self.synced(adopted).get("message", ""))
        self.plane.apply(suite.managed("Role", "keeper", {"privileges": {"login": True}}))
        self.until_ready(adopted, role)
        assert self.server.value("SELECT a FROM precious", database="kept") == "1", "it is the same database"
        assert self.server.value("SELECT datconnlimit FROM pg_database WHERE datname = 'kept'") == "7"
        # Nothing was created this time, so nothing is waited for.
        self.plane.delete(adopted)
        suite.until("now it is dropped", lambda: self.plane.get(adopted) is None and not self.server.exists("pg_database", "datname", "kept"))
        self.plane.delete(role)
        suite.until("and so is the role", lambda: self.plane.get(role) is None and not self.server.exists("pg_roles", "rolname", "keeper"))

    def given_password(self):
        """The password of `passwordSecretRef`, and its changes."""
        secret = lambda word: {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine", "namespace": "default"}, "stringData": {"word": word}}
        login = lambda word: self.server.psql("SELECT 1", check=False, user="given", password=word).returncode == 0
        for modern, name in ((False, "given"), (True, "given-modern")):
            self.plane.apply(secret("open sesame"))
            reference = {"name": "mine", "key": "word", **({} if modern else {"namespace": "default"})}
            published = {"name": f"{name}-connection", **({} if modern else {"namespace": "default"})}
            role = suite.managed("Role", name, {"privileges": {"login": True}, "passwordSecretRef": reference}, modern=modern, writeConnectionSecretToRef=published)
            role["metadata"]["annotations"]["crossplane.io/external-name"] = "given"
            path = self.plane.apply(role)
            self.until_ready(path)
            suite.until("the password is the given one", lambda: login("open sesame"))
            assert self.plane.secret(f"{name}-connection")["password"] == "open sesame"
            self.plane.apply(secret("close sesame"))
            suite.until("the password is changed", lambda: login("close sesame") and not login("open sesame"))
            suite.until("and published", lambda: self.plane.secret(f"{name}-connection")["password"] == "close sesame")
            if not modern:
                self.plane.patch(path, {"spec": {"deletionPolicy": "Orphan"}})
            self.plane.delete(path)
            suite.until(f"{path} is gone", lambda: modern or self.plane.get(path) is None)
        assert "sesame" not in self.server.log() and "sesame" not in self.plane.log() and "sesame" not in str(self.plane.list("/api/v1/events"))

    def dropped(self):
        """What is dropped by hand is made again."""
        self.server.psql("CREATE DATABASE shelf")
        manifests = [suite.managed("Role", "dropped", {"privileges": {"login": True}}, writeConnectionSecretToRef={"name": "dropped", "namespace": "default"}),
                     suite.managed("Database", "dropped", {}), suite.managed("Schema", "dropped", {"database": "shelf"}),
                     suite.managed("Extension", "dropped", {"database": "shelf", "extension": "hstore"})]
        paths = [self.plane.apply(manifest) for manifest in manifests]
        self.until_ready(*paths)
        before = self.plane.secret("dropped")["password"]
        self.server.psql("DROP ROLE dropped")
        self.server.psql("DROP DATABASE dropped")
        self.server.psql("DROP SCHEMA dropped; DROP EXTENSION hstore", database="shelf")
        there = lambda: (self.server.exists("pg_roles", "rolname", "dropped") and self.server.exists("pg_database", "datname", "dropped")
                         and self.server.value("SELECT (SELECT count(*) FROM pg_namespace WHERE nspname = 'dropped') + (SELECT count(*) FROM pg_extension WHERE extname = 'hstore')", database="shelf") == "2")
        # What was created less than half a minute ago and is missing may just not be visible yet.
        suite.until("all are there again", there)
        login = lambda: self.server.psql("SELECT 1", check=False, user="dropped", password=self.plane.secret("dropped")["password"]).returncode == 0
        suite.until("with a password that works", login)
        assert self.plane.secret("dropped")["password"] != before, "the role is another one"
        for path in paths:
            self.plane.delete(path)

    def cluster_config(self):
        """A ClusterProviderConfig, which the original forgets to protect."""
        config = self.config("shared", kind="ClusterProviderConfig")
        reference = {"kind": "ClusterProviderConfig", "name": "shared"}
        role = self.plane.apply(suite.managed("Role", "shared", {}, modern=True, providerConfigRef=reference, managementPolicies=["Observe", "Create", "Update"]))
        self.until_ready(role)
        suite.until("its user is counted", lambda: self.plane.get(config).get("status", {}).get("users") == 1)
        self.plane.delete(config)
        suite.until("it says why it stays", lambda: suite.condition(self.plane.get(config), "Terminating").get("reason") == "InUse")
        self.plane.patch(role, {"spec": {"forProvider": {"connectionLimit": 9}}})
        suite.until("it still works", lambda: self.server.value("SELECT rolconnlimit FROM pg_roles WHERE rolname = 'shared'") == "9")
        self.plane.delete(role)
        suite.until("it goes with its last user", lambda: self.plane.get(role) is None and self.plane.get(config) is None)

    def connection_count(self):
        """Statements in another database share few connections, which are not kept; those of a deleted ProviderConfig are closed."""
        for database in ("busy", "home"):
            self.server.psql(f"CREATE DATABASE {database}")
        config = self.config("counted", defaultDatabase="home")
        role = suite.managed("Role", "counted", {}, providerConfigRef={"name": "counted"}, deletionPolicy="Orphan")
        self.server.psql("; ".join(f"CREATE ROLE busy_{n}" for n in range(30)))
        authorized = lambda: len(re.findall(r"connection authorized: user=postgres database=busy application_name=provider-sql", self.server.log()))
        before, most = authorized(), collections.Counter()
        grants = [self.plane.apply(role)]
        for n in range(30):
            grant = suite.managed("Grant", f"busy-{n}", {"role": f"busy_{n}", "database": "busy", "schema": "public", "privileges": ["USAGE"]},
                                  providerConfigRef={"name": "counted"}, deletionPolicy="Orphan")
            # Each is created and observed, and then left alone.
            grant["metadata"]["annotations"] = {"crossplane.io/poll-interval": "1h"}
            grants.append(self.plane.apply(grant))
        for path in grants:
            while not suite.is_ready(self.plane.get(path)):
                most |= collections.Counter(total=sum(self.connections().values()))
            self.until_ready(path)
        opened = authorized() - before
        # Each of the 30 sends at least five statements there.
        assert 0 < opened <= 60, f"{opened} connections to the other database"
        assert most["total"] <= 40, f"{most['total']} connections at once of four ProviderConfigs"
        suite.until(lambda: f"none is kept: {self.connections()}", lambda: "busy" not in self.connections())
        assert self.connections().get("home"), "those to the default database are kept"
        for path in grants:
            self.plane.delete(path)
        self.plane.delete(config)
        suite.until("the ProviderConfig is gone", lambda: self.plane.get(config) is None)
        suite.until(lambda: f"its connections are closed: {self.connections()}", lambda: "home" not in self.connections())

    def cases(self):
        return {
            "edges: an unreachable database degrades its own resources alone": self.unreachable,
            "edges: what is orphaned stays, and can be adopted": self.orphan,
            "edges: passwords that users give": self.given_password,
            "edges: what is dropped by hand is made again": self.dropped,
            "edges: a used ClusterProviderConfig is not deleted": self.cluster_config,
            "edges: connections are few, short-lived, and go with their ProviderConfig": self.connection_count,
        }
