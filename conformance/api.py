"""A small persistent HTTP client for an API server: one connection per thread, answers with JSON decoded."""

import http.client
import json
import threading
import time
import urllib.parse

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
YAML = "application/yaml"


class Answer:
    """Status code, headers of interest and the decoded body (text when it is not JSON)."""

    def __init__(self, code, kind, warnings, body):
        self.code, self.kind, self.warnings, self.body = code, kind, warnings, body

    @property
    def rejected(self):
        return self.code >= 400


class Client:
    """Requests to one server. Safe to share between threads."""

    def __init__(self, server, agent="conformance/1"):
        self.server, self.agent, self.local = server, agent, threading.local()

    def request(self, method, path, query=None, body=None, headers=None, timeout=90):
        """Sends one request; a connection that the server closed in between is opened again once."""
        url = path + ("?" + urllib.parse.urlencode(query) if query else "")
        sent = {"User-Agent": self.agent, "Accept": JSON, **self.server.headers(), **(headers or {})}
        if body is not None:
            sent.setdefault("Content-Type", JSON)
            body = body.encode() if isinstance(body, str) else body
        own_credential = "Authorization" in (headers or {})
        slot, tls = ("bare", self.server.bare_tls) if own_credential else ("connection", self.server.tls)
        for attempt in (1, 2):
            connection = getattr(self.local, slot, None)
            if connection is None:
                connection = http.client.HTTPSConnection(self.server.host, timeout=timeout, context=tls)
                setattr(self.local, slot, connection)
            try:
                connection.request(method, url, body=body, headers=sent)
                answer = connection.getresponse()
                data = answer.read()
                break
            except (OSError, http.client.HTTPException):
                connection.close()
                setattr(self.local, slot, None)
                if attempt == 2:
                    raise
        if answer.will_close:
            setattr(self.local, slot, None)
        kind = answer.getheader("Content-Type") or ""
        return Answer(answer.status, kind, answer.headers.get_all("Warning") or [], decode(data, kind))

    def watch(self, path, query, headers=None):
        """The events of a watch that ends by its own timeoutSeconds; an error answer is returned as such."""
        answer = self.request("GET", path, query, headers=headers)
        if answer.code == 200 and isinstance(answer.body, str):
            answer.body = [json.loads(line) for line in answer.body.splitlines() if line]
        elif answer.code == 200 and answer.body is None:
            answer.body = []
        elif answer.code == 200:
            answer.body = [answer.body]
        return answer

    def wait(self, path, ready, within=30):
        """Reads `path` until `ready(answer)`, and gives the last answer."""
        deadline = time.monotonic() + within
        while True:
            answer = self.request("GET", path)
            if ready(answer) or time.monotonic() > deadline:
                return answer
            time.sleep(0.05)


def decode(data, kind):
    """JSON becomes a value, whatever it is labelled; several JSON lines (a watch) and anything else stay text."""
    text = data.decode(errors="replace")
    if "json" in kind or text.startswith("{"):
        try:
            return json.loads(text) if text else None
        except ValueError:
            return text
    return text
