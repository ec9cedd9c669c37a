"""`sslMode` of provider-sql against a PostgreSQL with `ssl=on`: what each mode accepts and refuses, and client certificates.

The server has a certificate for `localhost` of an authority of its own; it listens at 127.0.0.1 only, so the host names `localhost` and
`127.0.0.1` are the right and the wrong one. It refuses connections without TLS, except those of psql from the suite itself.
"""

import subprocess

import postgres
import suite

SUBJECT_ALTERNATIVE = "subjectAltName=DNS:localhost"


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    def __init__(self, folder, name):
        self.folder, self.name, self.certificate, self.key = folder, name, folder / f"{name}.crt", folder / f"{name}.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
                "-keyout", self.key, "-out", self.certificate)

    def issue(self, name, extension):
        key, request, certificate, extensions = (self.folder / f"{self.name}-{name}.{suffix}" for suffix in ("key", "csr", "crt", "ext"))
        extensions.write_text(extension + "\nbasicConstraints=CA:FALSE\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial", "-days", "2", "-extfile", extensions, "-out", certificate)
        return certificate, key


class Modes:
    """Each case is a ProviderConfig with a Secret of its own, and a Role that uses it."""

    def __init__(self, folder, plane):
        folder.mkdir()
        self.plane, self.folder, self.made = plane, folder, []
        self.own, self.other = Authority(folder, "own"), Authority(folder, "other")
        certificate, key = self.own.issue("server", SUBJECT_ALTERNATIVE)
        self.server = postgres.Postgres(folder / "postgres", ssl="on", ssl_cert_file=certificate, ssl_key_file=key, ssl_ca_file=self.own.certificate)
        for path, mode in ((certificate, 0o644), (key, 0o600), (self.own.certificate, 0o644)):
            self.server.give(path, mode)
        folder.chmod(0o755)
        # `certified` logs in by its certificate alone; the suite's psql is the only one without TLS.
        rules = ["hostssl all certified all cert", "hostssl all all all scram-sha-256", "hostnossl all postgres all scram-sha-256"]
        (folder / "postgres/data/pg_hba.conf").write_text("\n".join(rules) + "\n")
        self.server.start()
        # From now on this one needs TLS, too.
        self.server.psql("CREATE ROLE tls SUPERUSER LOGIN PASSWORD 'tls'; CREATE ROLE certified SUPERUSER LOGIN")

    def role(self, name, mode, endpoint="localhost", authority=None, username="tls", client=None):
        data = {"endpoint": endpoint, "port": str(self.server.port), "username": username, "password": "tls"}
        if authority:
            data["clusterCA"] = authority.certificate.read_text()
        if client:
            data["clientCert"], data["clientKey"] = (path.read_text() for path in client)
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"tls-{name}", "namespace": "default"}, "stringData": data}
        credentials = {"source": "PostgreSQLConnectionSecret", "connectionSecretRef": {"name": f"tls-{name}", "namespace": "default"}}
        config = {"apiVersion": "postgresql.sql.crossplane.io/v1alpha1", "kind": "ProviderConfig", "metadata": {"name": f"tls-{name}"},
                  "spec": {"credentials": credentials, **({"sslMode": mode} if mode else {})}}
        for manifest in (secret, config):
            self.plane.apply(manifest)
        self.made.append(self.plane.apply(suite.managed("Role", f"tls-{name}", {}, providerConfigRef={"name": f"tls-{name}"})))
        return self.made[-1]

    def works(self, *arguments, **options):
        path = self.role(*arguments, **options)
        suite.until(lambda: f"{path} is ready: {suite.condition(self.plane.get(path), 'Synced')}", lambda: suite.is_ready(self.plane.get(path)))
        how = self.server.value("SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'provider-sql'")
        assert how == "t", f"{path} is connected without TLS: {how!r}"

    def refused(self, why, *arguments, **options):
        path = self.role(*arguments, **options)
        message = lambda: suite.condition(self.plane.get(path), "Synced").get("message", "")
        suite.until(lambda: f"{path} says {why!r}, not {message()!r}", lambda: why in message().lower())
        name = path.rpartition("/")[2]
        assert not self.server.exists("pg_roles", "rolname", name), f"{name} was made"
        # It cannot be deleted in the server, either.
        self.plane.patch(path, {"spec": {"deletionPolicy": "Orphan"}})

    def remove(self):
        # Together: one that was just created is gone after half a minute.
        for path in self.made:
            self.plane.delete(path)
        for path in self.made:
            suite.until(f"{path} is gone", lambda: self.plane.get(path) is None)

    def run(self):
        try:
            self.modes()
            self.remove()
        finally:
            self.server.stop()

    def modes(self):
        own, other = self.own, self.other
        self.refused("no encryption", "disable", "disable")
        self.works("require", "require", endpoint="127.0.0.1")
        self.works("require-other-ca", "require", authority=other)
        self.works("ca", "verify-ca", authority=own)
        self.works("ca-wrong-name", "verify-ca", endpoint="127.0.0.1", authority=own)
        self.refused("unknownissuer", "ca-other-ca", "verify-ca", authority=other)
        self.works("full", "verify-full", authority=own)
        self.works("default", None, authority=own)
        self.refused("not valid for name", "full-wrong-name", "verify-full", endpoint="127.0.0.1", authority=own)
        self.refused("unknownissuer", "full-other-ca", "verify-full", authority=other)
        self.refused("unknownissuer", "full-system-ca", "verify-full")
        self.works("client", "verify-full", authority=own, username="certified", client=own.issue("certified", "extendedKeyUsage=clientAuth"))
        self.refused("certificate", "client-none", "verify-full", authority=own, username="certified")
        self.refused("authentication failed", "client-other-name", "verify-full", authority=own, username="certified", client=own.issue("another", "extendedKeyUsage=clientAuth"))
        self.refused("unknownca", "client-other-ca", "verify-full", authority=own, username="certified", client=other.issue("certified", "extendedKeyUsage=clientAuth"))


def run(folder, plane):
    Modes(folder, plane).run()
