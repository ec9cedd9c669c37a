"""Kills the plane again and again while it makes and deletes roles, databases and grants, and looks what became of them.

A life ends at a durable write of the plane (`durable`, `lost`), before or after a call of PostgreSQL (`external`), before or after one that
changes something there (`external-change`), or at any time. Each life asks for a role, a database and a grant, and deletes those of an
earlier life; every third of these sets is to be orphaned. In the end everything that was acknowledged has happened, once, and nothing
else: a creation counts if the server completed it and its transaction.
"""

import collections
import contextlib
import random
import re
import time

import suite

GROUP = suite.GROUP
# How many lives later a set is deleted.
KEPT_FOR = 6
KINDS = ("grants", "databases", "roles")


class Server:
    """What the server completed, as its log says: a statement is logged when it begins, and with its duration when it is done."""

    LINE = re.compile(r"^\S+ \S+ \S+ \[(\d+)\] (\w+):  (.*)$")
    CHANGE = re.compile(r'^(CREATE|DROP) (ROLE|DATABASE) (?:IF EXISTS )?"(k\d+)"')

    def __init__(self, log):
        self.running, self.in_transaction = {}, {}
        self.done, self.repeated = collections.Counter(), []
        for line in log.splitlines():
            found = self.LINE.match(line)
            if found:
                self.read(*found.groups())

    def read(self, process, severity, text):
        if severity == "ERROR":
            self.running.pop(process, None)
            if "already exists" in text and re.search(r'"k\d+"', text):
                self.repeated.append(text)
        elif text.startswith("statement: "):
            self.running[process] = text[len("statement: "):]
        elif text.startswith("duration: ") and process in self.running:
            self.complete(process, self.running.pop(process))
        elif text.startswith("connection "):
            self.in_transaction.pop(process, None)

    def complete(self, process, statement):
        if statement.startswith("START TRANSACTION"):
            self.in_transaction[process] = []
        elif statement.startswith("ROLLBACK"):
            self.in_transaction.pop(process, None)
        elif statement.startswith("COMMIT"):
            self.done.update(self.in_transaction.pop(process, []))
        elif found := self.CHANGE.match(statement):
            change = tuple(part.lower() for part in found.groups())
            if process in self.in_transaction:
                self.in_transaction[process].append(change)
            else:
                self.done[change] += 1


class Kills:
    def __init__(self, plane, server, options):
        self.plane, self.server, self.options = plane, server, options
        self.random = random.Random(options.seed)
        # What was asked for, and whether the answer arrived.
        self.asked, self.acknowledged = set(), set()
        self.ends = collections.Counter()

    def path(self, kind, number):
        return f"{GROUP}/{kind}/k{number}"

    def is_orphaned(self, number):
        return number % 3 == 0

    def manifests(self, number):
        name, spec = f"k{number}", {"deletionPolicy": "Orphan" if self.is_orphaned(number) else "Delete"}
        secret = {"name": name, "namespace": "default"}
        yield "roles", suite.managed("Role", name, {"privileges": {"login": True}}, writeConnectionSecretToRef=secret, **spec)
        yield "databases", suite.managed("Database", name, {"ownerRef": {"name": name}}, **spec)
        yield "grants", suite.managed("Grant", name, {"privileges": ["CONNECT"], "roleRef": {"name": name}, "databaseRef": {"name": name}}, **spec)

    def ask(self, what, send):
        self.asked.add(what)
        if not send().rejected:
            self.acknowledged.add(what)

    def work(self, number):
        """Ends with an exception when the plane does."""
        for kind, manifest in self.manifests(number):
            path = self.path(kind, number)
            self.ask(("create", path), lambda: self.plane.send(path, manifest))
        for kind in KINDS if number > KEPT_FOR else ():
            path = self.path(kind, number - KEPT_FOR)
            self.ask(("delete", path), lambda: self.plane.client.request("DELETE", path))

    def life(self, number):
        point = ("external-change", "durable", "external", "external-change", "lost", "any time")[number % 6]
        # There are four places at each change with its connection and observation, and fewer that change something.
        last = {"external-change": 12 if number > KEPT_FOR else 5, "external": 80, "durable": 110, "lost": 110}.get(point)
        place = last and self.random.randint(1 if point.startswith("external") else 20, last)
        self.plane.start(**({"TRANSOM_DIE_AT": f"{point}:{place}"} if place else {}))
        if self.plane.ready():
            with contextlib.suppress(Exception):
                self.work(number)
            deadline = time.monotonic() + (self.options.seconds if place else self.random.uniform(0, 1.5))
            while self.plane.process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
        self.ends[point if self.plane.process.poll() is not None else f"{point}, not reached" if place else point] += 1
        self.plane.kill()

    def run(self):
        for manifest in suite.config(self.server):
            self.plane.apply(manifest)
        self.plane.kill()
        began = time.monotonic()
        for number in range(1, self.options.kills + 1):
            self.life(number)
        took = time.monotonic() - began
        self.plane.start()
        self.plane.ready()
        created, deleted = ({path for what, path in self.acknowledged if what == which} for which in ("create", "delete"))
        for path in sorted(deleted):
            suite.until(lambda: f"{path} is gone: {self.plane.get(path)}", lambda: self.plane.get(path) is None)
        there = {path for what, path in self.asked if what == "create" and self.plane.get(path)}
        never = {path for what, path in self.asked if what == "delete"}
        lost = created - there - never
        assert not lost, f"lost: {sorted(lost)}"
        for path in sorted(there):
            if self.can_be_ready(path, there):
                suite.until(lambda: f"{path} is ready: {self.plane.get(path)}", lambda: suite.is_ready(self.plane.get(path)))
        ready = sum(suite.is_ready(self.plane.get(path)) for path in there)
        self.judge(there, deleted)
        hit = sum(count for end, count in self.ends.items() if end.startswith("external") and "not" not in end)
        assert hit * 4 >= self.options.kills, f"too few lives ended at a call of PostgreSQL: {dict(self.ends)}"
        print(f"      {self.options.kills} kills in {took:.0f} s ({', '.join(f'{count} {end}' for end, count in sorted(self.ends.items()))}); {len(there)} objects, "
              f"{ready} ready; {len(deleted)} deleted", flush=True)

    def can_be_ready(self, path, there):
        """A grant needs its role and its database, a database its role; they may not have been asked for before the end of a life."""
        name = path.rpartition("/")[2]
        needed = {"grants": ("roles", "databases"), "databases": ("roles",), "roles": ()}[path.split("/")[-2]]
        return all(f"{GROUP}/{kind}/{name}" in there for kind in needed)

    def judge(self, there, deleted):
        """Compares what the server did with what it was asked for."""
        server = Server(self.server.log())
        assert not server.repeated, f"created again: {server.repeated[:3]}"
        twice = {change: times for change, times in server.done.items() if change[0] == "create" and times > 1}
        assert not twice, f"created twice: {twice}"
        exists = {("roles", name) for name in self.server.value("SELECT rolname FROM pg_roles WHERE rolname ~ '^k[0-9]+$'").split()}
        exists |= {("databases", name) for name in self.server.value("SELECT datname FROM pg_database WHERE datname ~ '^k[0-9]+$'").split()}
        asked_to_delete = {path for what, path in self.asked if what == "delete"}
        dropped = 0
        for change, what, name in server.done:
            if change == "drop" and server.done["create", what, name]:
                path, number = f"{GROUP}/{what}s/{name}", int(name[1:])
                assert path in asked_to_delete and not self.is_orphaned(number), f"{what} {name} was dropped"
                dropped += 1
        kept = 0
        for change, what, name in server.done:
            kind, path = f"{what}s", f"{GROUP}/{what}s/{name}"
            if change == "create" and path in deleted:
                assert ((kind, name) in exists) == self.is_orphaned(int(name[1:])), f"{what} {name} is there: {(kind, name) in exists}"
                kept += (kind, name) in exists
        for path in there:
            kind, name = path.split("/")[-2:]
            if kind != "grants" and suite.is_ready(self.plane.get(path)):
                assert (kind, name) in exists, f"{path} is ready and {name} is not there"
        for name in (path.split("/")[-1] for path in sorted(there) if "/roles/" in path):
            works = lambda: self.server.psql("SELECT 1", check=False, user=name, password=self.plane.secret(name).get("password", "-")).returncode == 0
            suite.until(f"the secret of {name} works", works)
        many = self.options.kills >= 20
        assert not many or (kept and dropped), f"{dropped} were dropped, {kept} kept"
        print(f"      the server completed {sum(server.done.values())} creations and deletions of roles and databases; {kept} orphans are there", flush=True)


def run(plane, server, options):
    Kills(plane, server, options).run()
