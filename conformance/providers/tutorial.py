"""`docs/tutorial-database.md`, command by command: its blocks are read from the page and run in their order in one shell, with
`transom up` in a second one, against PostgreSQL and with kubectl and psql.

Only the ports differ, because others may use those of the page: that of PostgreSQL is replaced, and `transom up` gets another one. The
SQL of the page is typed into the psql that was started before it. After the blocks of each section, its claims are
checked.
"""

import json
import os
import pwd
import re
import shutil
import subprocess

import cargo
import install
import postgres
import servers
import suite

PAGE = suite.ROOT / "docs/tutorial-database.md"
PAGE_PORT = "5433"
# A block may wait for two minutes itself, several times.
BLOCK_WITHIN = 600
DATABASES = "databases.postgresql.sql.crossplane.io"
ROLES = "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'orders-%'"


def sections(text):
    """The headings of the page, each with its blocks: their language and text."""
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        heading, _, rest = part.partition("\n")
        yield heading, re.findall(r"^```(\w+)\n(.*?)^```$", rest, flags=re.M | re.S)


class Shell:
    """One shell, which runs block after block."""

    def __init__(self, folder, prelude):
        self.folder, self.blocks = folder, 0
        log = open(folder / "shell.log", "ab")
        self.process = subprocess.Popen(["bash"], cwd=folder, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True)
        self.run(prelude)

    def run(self, block, typed=""):
        """What the block prints. It must succeed."""
        self.blocks += 1
        script, keyboard, printed, code = (self.folder / f"{self.blocks}.{part}" for part in ("sh", "typed", "printed", "code"))
        script.write_text(block)
        keyboard.write_text(typed)
        # Each command has to succeed, as for a reader who stops at the first one that fails.
        self.process.stdin.write(f"set -e; . {script} <{keyboard} >{printed} 2>&1; set +e; echo 0 >{code}.new; mv {code}.new {code}\n")
        self.process.stdin.flush()
        suite.until(lambda: f"the end of:\n{block}{self.text(printed)}", lambda: code.exists() or self.process.poll() is not None, within=BLOCK_WITHIN)
        assert code.exists(), f"failed:\n{block}{self.text(printed)}"
        return self.text(printed)

    def text(self, path):
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def prelude(folder):
    """The programs by their names; root runs those of PostgreSQL as its user, as the page demands."""
    (folder / "bin").mkdir()
    (folder / "bin/transom").symlink_to(cargo.binary())
    if not shutil.which("kubectl"):
        (folder / "bin/kubectl").symlink_to(install.kubernetes() / "kubectl")
    programs = postgres.programs()
    lines = [f"export PATH={folder}/bin:{programs}:$PATH"]
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        shutil.chown(folder, user.pw_uid, user.pw_gid)
        for program in ("initdb", "pg_ctl"):
            lines.append(f'{program}() {{ setpriv --reuid {user.pw_uid} --regid {user.pw_gid} --clear-groups {programs}/{program} "$@"; }}')
    for needed in (folder, folder.parent):
        needed.chmod(0o755)
    return "\n".join(lines) + "\n"


class Tutorial:
    def __init__(self, folder):
        self.folder, self.port, self.plane = folder, servers.free_port(), None
        (folder / "examples").symlink_to(suite.ROOT / "examples")
        self.shell = Shell(folder, prelude(folder))

    def run(self):
        # After which block of which section what is to be seen. It is seen soon, and not always at once.
        checks = {("Start", 0): self.started, ("Start", 1): self.ready, ("The platform", 1): self.platform, ("Claim a database", 0): self.claimed,
                  ("Claim a database", 1): self.granted, ("Scale it", 0): self.scaled, ("Break it", 0): self.scaled, ("Break it", 1): self.degraded,
                  ("Break it", 2): self.healed, ("Delete it", 0): self.deleted}
        try:
            for heading, blocks in sections(PAGE.read_text()):
                for number, (language, block) in enumerate(blocks):
                    typed = "".join(text for language_of_next, text in blocks[number + 1:number + 2] if language_of_next == "sql")
                    printed = self.block(language, block.replace(PAGE_PORT, str(self.port)), typed)
                    checks.pop((heading, number), lambda _: None)(printed)
        finally:
            self.stop()
        assert not checks, f"the page has no longer {list(checks)}"

    def block(self, language, block, typed):
        if language == "sql":
            return None
        if block.startswith("transom up"):
            return self.start(block)
        return self.shell.run(block, typed)

    def stop(self):
        if self.plane:
            self.plane.terminate()
            self.plane.wait(30)
        self.shell.close()
        stop = f". {self.folder}/1.sh; cd {self.folder}; pg_ctl -D ./postgres -m immediate stop"
        subprocess.run(["bash", "-c", stop], capture_output=True)

    def start(self, block):
        listen = f"--listen 127.0.0.1:{servers.free_port()}"
        command = f"exec env PATH={self.folder}/bin:$PATH {block.strip()} {listen}"
        log = open(self.folder / "plane.log", "ab")
        self.plane = subprocess.Popen(["bash", "-c", command], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        kubeconfig = self.folder / "plane/kubeconfig"
        suite.until("there is a kubeconfig", lambda: kubeconfig.exists() and "server:" in kubeconfig.read_text())
        self.kubeconfig = kubeconfig

    def kubectl(self, *arguments):
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        return subprocess.run(["kubectl", *arguments], capture_output=True, text=True, env=environment)

    def sql(self, text):
        environment = {**os.environ, "PGPASSWORD": "secret"}
        command = [postgres.programs() / "psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-Atc", text]
        return subprocess.run(command, capture_output=True, text=True, env=environment).stdout.strip()

    def limit(self, expected):
        select = "SELECT datconnlimit FROM pg_database WHERE datname = 'orders'"
        suite.until(lambda: f"the limit is {expected}, not {self.sql(select)}", lambda: self.sql(select) == expected)

    def synced(self):
        items = json.loads(self.kubectl("get", DATABASES, "-o", "json").stdout or "{}").get("items", [])
        return [suite.condition(found, "Synced").get("status") for found in items]

    def started(self, _):
        assert self.sql("SELECT 1") == "1"

    def ready(self, _):
        suite.until("the plane is ready", lambda: self.kubectl("get", "--raw", "/readyz").returncode == 0)

    def platform(self, printed):
        assert "providerconfig.postgresql.sql.crossplane.io/default created" in printed, printed

    def claimed(self, printed):
        for kind in ("role", "database", "grant"):
            assert f"{kind}.postgresql.sql.crossplane.io/" in printed, printed

    def granted(self, printed):
        assert "CREATE TABLE" in printed and "permission denied for database orders" in printed, printed
        assert not self.sql("SELECT 1 FROM pg_database WHERE datname = 'orders' AND datacl::text LIKE '%{=%'"), "no other role can connect"
        assert self.sql(ROLES) == "1", "there is one role"

    def scaled(self, _):
        self.limit("25")

    def degraded(self, _):
        suite.until(lambda: f"SYNCED is False, not {self.synced()}", lambda: self.synced() == ["False"])

    def healed(self, _):
        assert self.synced() == ["True"], self.synced()

    def deleted(self, _):
        databases = "SELECT count(*) FROM pg_database WHERE datname = 'orders'"
        suite.until(lambda: f"database and role are dropped: {self.kubectl('get', 'managed').stdout}", lambda: self.sql(databases) == self.sql(ROLES) == "0")
        suite.until("no managed resource is left", lambda: "No resources found" in self.kubectl("get", "managed").stderr)


def run(folder):
    folder.mkdir()
    Tutorial(folder).run()
