"""An HTTPS server for admission and conversion webhooks, which both servers under comparison call.

The path says whose call it is and how to answer: `/SIDE/allow`, `deny`, `warn`, `label` (a JSON patch), `broken`
(not JSON), `fail` (HTTP 500) or `convert`. Every admission request is kept, per side and object namespace.
"""

import base64
import collections
import contextlib
import http.server
import json
import pathlib
import ssl
import subprocess
import tempfile
import threading


def _certificate(folder):
    """A self-signed certificate for loopback, as (certificate, key) files."""
    pair = [str(pathlib.Path(folder) / name) for name in ("tls.crt", "tls.key")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=webhook",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-out", pair[0], "-keyout", pair[1]], check=True, capture_output=True)
    return pair


def admit(manner, request):
    """The AdmissionReview response in this manner."""
    answer = {"uid": request["uid"], "allowed": manner != "deny"}
    if manner == "deny":
        answer["status"] = {"code": 418, "message": "not on my watch", "reason": "Teapot"}
    elif manner == "warn":
        answer["warnings"] = ["mind the gap"]
    elif manner == "label" and request["operation"] != "DELETE":
        meta = request["object"]["metadata"]
        change = [{"op": "add", "path": "/metadata/labels", "value": {**meta.get("labels", {}), "mutated": "yes"}}]
        answer |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(change).encode()).decode(), "auditAnnotations": {"by": "label"}}
    return answer


def convert(request):
    """v1 keeps `spec.size`, v2 calls it `spec.width`."""
    names = {"v1": "size", "v2": "width"}
    target = request["desiredAPIVersion"].split("/")[1]
    converted = []
    for each in request["objects"]:
        source = each["apiVersion"].split("/")[1]
        spec = dict(each.get("spec") or {})  # ownership is converted too, as objects whose spec may be null
        if names[source] in spec and source != target:
            spec[names[target]] = spec.pop(names[source])
        if spec.get("note") == "unconvertible":
            return {"uid": request["uid"], "result": {"status": "Failure", "message": "cannot convert this"}}
        converted.append({**each, "apiVersion": request["desiredAPIVersion"], **({"spec": spec} if each.get("spec") else {})})
    return {"uid": request["uid"], "convertedObjects": converted, "result": {"status": "Success"}}


class Webhooks:
    """The running server: its address, its authority, and what it was asked."""

    def __init__(self, port, bundle):
        self.url, self.bundle, self.asked = f"https://127.0.0.1:{port}", bundle, collections.defaultdict(list)

    def take(self, side, namespace):
        return self.asked.pop((side, namespace), [])


@contextlib.contextmanager
def serve():
    asked = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            """Nothing: the suite reports."""

        def do_POST(self):
            _, side, manner = self.path.split("?")[0].split("/")
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            request = review["request"]
            if manner == "convert":
                response = convert(request)
            else:
                asked["server"].asked[side, request.get("namespace", "")].append(request)
                response = admit(manner, request)
            body = b"{" if manner == "broken" else json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}).encode()
            self.send_response(500 if manner == "fail" else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with tempfile.TemporaryDirectory() as folder:
        pair = _certificate(folder)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*pair)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        asked["server"] = Webhooks(server.server_port, base64.b64encode(pathlib.Path(pair[0]).read_bytes()).decode())
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield asked["server"]
        finally:
            server.shutdown()
