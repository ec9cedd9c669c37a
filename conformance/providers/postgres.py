"""A PostgreSQL server of Debian's packages, on a free port of the loopback address, in a folder of its own.

It refuses to run as root; then it runs as the user of Debian's package. The packages are installed if they are missing.
"""

import glob
import os
import pathlib
import pwd
import shutil
import subprocess
import time

import install
import servers

WITHIN = 60  # seconds


def programs():
    """The folder with `initdb`, `postgres` and `psql`, installed on first use."""
    for _ in range(2):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
        if found:
            return pathlib.Path(found[-1]).parent
        install.debian("postgresql", "postgresql-contrib")
    raise SystemExit("Debian's package postgresql has no server")


class Postgres:
    """A server with the superuser `postgres`, whose password is random. `settings` are further ones of its configuration."""

    def __init__(self, folder, **settings):
        self.bin, self.folder, self.port = programs(), folder, servers.free_port()
        self.settings = settings
        self.password = os.urandom(12).hex()
        self.process = None
        folder.mkdir()
        (folder / "password").write_text(self.password)
        self.as_user = []
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            for path in (folder, folder / "password"):
                shutil.chown(path, user.pw_uid, user.pw_gid)
            folder.parent.chmod(0o755)
            self.as_user = ["setpriv", "--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups"]
        self._run("initdb", "-D", folder / "data", "-U", "postgres", "--pwfile", folder / "password", "--auth", "scram-sha-256", "-E", "UTF8", "--locale", "C")

    def _run(self, program, *arguments):
        ended = subprocess.run([*self.as_user, str(self.bin / program), *map(str, arguments)], capture_output=True, text=True, cwd="/")
        if ended.returncode:
            raise SystemExit(f"{program} failed:\n{ended.stdout}{ended.stderr}")

    def give(self, path, mode):
        """Lets the server read a file that has secrets."""
        path.chmod(mode)
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            shutil.chown(path, user.pw_uid, user.pw_gid)

    def start(self):
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": "", "fsync": "off", "log_statement": "all",
                    "log_connections": "on", "log_duration": "on", "log_line_prefix": "%t [%p] ", "max_connections": 200, **self.settings}
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen([*self.as_user, str(self.bin / "postgres"), "-D", str(self.folder / "data"), *flags],
                                        stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/")
        deadline = time.monotonic() + WITHIN
        while self.psql("SELECT 1", check=False).returncode:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise SystemExit("PostgreSQL does not start:\n" + self.log()[-3000:])
            time.sleep(0.1)
        return self

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(2)  # SIGINT: connections are closed at once.
            self.process.wait(30)

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def psql(self, sql, user="postgres", password=None, database="postgres", check=True):
        command = [self.bin / "psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", user, "-d", database, "-At", "-v", "ON_ERROR_STOP=1", "-c", sql]
        ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PGPASSWORD": password or self.password, "PGCONNECT_TIMEOUT": "10"})
        if check and ended.returncode:
            raise SystemExit(f"psql: {sql}: {ended.stderr}")
        return ended

    def value(self, sql, **options):
        return self.psql(sql, **options).stdout.strip()

    def exists(self, catalog, column, name):
        return self.value(f"SELECT count(*) FROM {catalog} WHERE {column} = '{name}'") == "1"
