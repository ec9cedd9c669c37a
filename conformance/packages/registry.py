"""A real registry (distribution's) on loopback: anonymous, with basic authentication, with bearer tokens, or with TLS.

`start(…)` gives a `Registry` whose host is `127.0.0.1:PORT`: it has the dots that Crossplane demands of a registry's name, and
needs no name server. Certificates, passwords and the server that hands out tokens are made here; nothing leaves the machine.
"""

import base64
import contextlib
import http.server
import json
import os
import re
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import install
import servers

USER, PASSWORD = "conformance", "open-sesame"
# The bcrypt hash of the password: htpasswd files of this registry have no other kind.
HASHED = "$2y$05$abcdefghijklmnopqrstuutXu9KzOt.1yBoZUeFWoT/914/JfszCO"
KINDS = ("anonymous", "basic", "token", "tls")


class Registry:
    def __init__(self, kind, host, folder, log):
        self.kind, self.host, self.folder, self.log = kind, host, folder, log
        self.authority = folder / "authority.crt" if kind == "tls" else None
        self.seen = 0

    def reference(self, path):
        return f"{self.host}/{path}"

    def docker_config(self):
        """The content of a Docker config that has the credentials."""
        auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        return json.dumps({"auths": {self.host: {"auth": auth}} if self.kind in ("basic", "token") else {}})

    def environment(self):
        """What a command needs to get in: Docker's config, and the authority of its certificate."""
        folder = self.folder / "docker"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(self.docker_config())
        return {"DOCKER_CONFIG": str(folder), **({"SSL_CERT_FILE": str(self.authority)} if self.authority else {})}

    def requests(self):
        """The requests since the last call, as `METHOD path`."""
        lines = self.log.read_text(errors="replace").splitlines()
        found = [match.group(1) for line in lines if (match := re.search(r'"((?:GET|HEAD|POST|PUT|PATCH|DELETE) /v2\S*) HTTP', line))]
        new, self.seen = found[self.seen:], len(found)
        return new


@contextlib.contextmanager
def start(kind="anonymous"):
    with servers.workspace(f"registry-{kind}") as (folder, processes):
        port = servers.free_port()
        config = {"version": 0.1, "log": {"level": "error"}, "storage": {"filesystem": {"rootdirectory": str(folder / "data")}, "delete": {"enabled": True}},
                  "http": {"addr": f"127.0.0.1:{port}", "secret": "conformance"}}
        with contextlib.ExitStack() as stack:
            if kind == "basic":
                (folder / "htpasswd").write_text(f"{USER}:{HASHED}\n")
                config["auth"] = {"htpasswd": {"realm": "conformance", "path": str(folder / "htpasswd")}}
            if kind == "token":
                certificate(folder, "token", "/CN=token")
                realm = stack.enter_context(token_server(folder))
                config["auth"] = {"token": {"realm": realm, "service": "conformance", "issuer": "conformance", "rootcertbundle": str(folder / "token.crt")}}
            if kind == "tls":
                signed_certificate(folder)
                config["http"]["tls"] = {"certificate": str(folder / "server.crt"), "key": str(folder / "server.key")}
            file = folder / "config.yaml"
            file.write_text(json.dumps(config))
            processes.start("registry", install.registry() / "registry", "serve", file, OTEL_TRACES_EXPORTER="none")
            registry = Registry(kind, f"127.0.0.1:{port}", folder, folder / "registry.log")
            processes.await_ready("the registry", lambda: answers(registry))
            registry.requests()
            yield registry


def answers(registry):
    scheme, trusted = ("https", ssl.create_default_context(cafile=registry.authority)) if registry.authority else ("http", None)
    try:
        return urllib.request.urlopen(f"{scheme}://{registry.host}/v2/", timeout=5, context=trusted).status == 200
    except urllib.error.HTTPError as error:
        return error.code == 401


def certificate(folder, name, subject, *more):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", subject, *more,
                    "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"], check=True, capture_output=True)


def signed_certificate(folder):
    """An authority, and a certificate of 127.0.0.1 by it."""
    certificate(folder, "authority", "/CN=conformance authority", "-addext", "basicConstraints=critical,CA:TRUE")
    subprocess.run(["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=registry", "-keyout", folder / "server.key",
                    "-out", folder / "server.csr"], check=True, capture_output=True)
    (folder / "extensions").write_text("subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    subprocess.run(["openssl", "x509", "-req", "-days", "2", "-in", folder / "server.csr", "-CA", folder / "authority.crt",
                    "-CAkey", folder / "authority.key", "-CAcreateserial", "-extfile", folder / "extensions",
                    "-out", folder / "server.crt"], check=True, capture_output=True)


@contextlib.contextmanager
def token_server(folder):
    """Hands out tokens to the user with the password, as the distribution project specifies. Gives its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            query = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)
            given = self.headers.get("Authorization", "")
            expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            if given != expected:
                return self.answer(401, {"errors": [{"code": "UNAUTHORIZED"}]})
            return self.answer(200, {"token": token(folder, query.get("scope", [])), "expires_in": 300})

        def answer(self, code, body):
            data = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    # A client that goes away while its token is made is none of our business.
    server.handle_error = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        # By name: go-containerregistry sends no credentials to an address on loopback that is not the registry's own.
        yield f"http://localhost:{server.server_port}/token"
    finally:
        server.shutdown()


def token(folder, scopes):
    """A JSON web token, signed by the key whose certificate the registry trusts."""
    access = []
    for scope in " ".join(scopes).split():
        kind, name, actions = scope.split(":", 1)[0], scope.split(":", 1)[1].rsplit(":", 1)[0], scope.rsplit(":", 1)[1]
        access.append({"type": kind, "name": name, "actions": actions.split(",")})
    text = (folder / "token.crt").read_text()
    der = "".join(line for line in text.splitlines() if "CERTIFICATE" not in line)
    now = int(time.time())
    claims = {"iss": "conformance", "sub": USER, "aud": "conformance", "exp": now + 300, "nbf": now - 10, "iat": now,
              "jti": os.urandom(8).hex(), "access": access}
    unsigned = ".".join(encoded(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": "RS256", "x5c": [der]}, claims))
    signed = subprocess.run(["openssl", "dgst", "-sha256", "-sign", folder / "token.key", "-binary"], input=unsigned.encode(),
                            check=True, capture_output=True).stdout
    return f"{unsigned}.{encoded(signed)}"


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def pull_secret(registry, namespace, name):
    data = base64.b64encode(registry.docker_config().encode()).decode()
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": name},
            "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": data}}
