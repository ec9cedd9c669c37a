"""What a stream is made of: requests that do not depend on which server they are sent to.

Values that differ per server by nature (resourceVersions, uids, continue tokens, generated names) are
written as `${key.path.to.field}` and filled in from what that very server answered before under `key`.
"""

import dataclasses
import json
import re
from typing import Any, Callable, Optional

PLACEHOLDER = re.compile(r"\$\{([^}]+)\}")


@dataclasses.dataclass
class Operation:
    """One request. `mode` is `plain`, `watch` (events until the stream ends), `await` (repeat until
    `until`) or `asked` (not a request: what the webhooks of namespace `path` were asked)."""

    label: str
    method: str
    path: str
    query: dict = dataclasses.field(default_factory=dict)
    body: Any = None
    headers: dict = dataclasses.field(default_factory=dict)
    remember: Optional[str] = None
    mode: str = "plain"
    until: Optional[Callable] = None
    compare: bool = True
    pick: Optional[Callable] = None  # the part of the body that is compared

    def subject(self):
        """The object that the request is about; None for collections and for paths without a resource."""
        start = 3 if self.path.startswith("/apis/") else 2
        parts = self.path.strip("/").split("/")
        if self.method == "POST":
            name = self.remember.rpartition("/")[2] if self.remember else None
            return Subject("/".join(["", *parts, name]), self.remember) if name else None
        inner = parts[start:start + 1] == ["namespaces"] and parts[start + 2:start + 3] not in ([], ["status"], ["finalize"])
        end = start + (4 if inner else 2)
        return Subject("/".join(["", *parts[:end]]), self.remember) if len(parts) >= end else None

    def describe(self):
        query = "&".join(f"{key}={value}" for key, value in self.query.items())
        lines = [f"{self.method} {self.path}{'?' + query if query else ''}"]
        lines += [f"{key}: {value}" for key, value in self.headers.items()]
        if self.body is not None:
            lines.append(self.body if isinstance(self.body, str) else json.dumps(self.body))
        return "\n".join(lines)


@dataclasses.dataclass
class Subject:
    """One object: where it is, and under which key answers about it are remembered."""

    path: str
    key: Optional[str]


def as_yaml(value, indent=""):
    """Block-style YAML; scalars and empty collections are written as JSON, which YAML includes."""
    if isinstance(value, dict) and value:
        parts = [(f"{indent}{json.dumps(key)}:", item) for key, item in value.items()]
    elif isinstance(value, list) and value:
        parts = [(f"{indent}-", item) for item in value]
    else:
        return f" {json.dumps(value)}\n"
    text = "" if not indent else "\n"
    for head, item in parts:
        text += head + as_yaml(item, indent + "  ")
    return text


class Memory:
    """What one server answered earlier in the stream."""

    def __init__(self):
        self.known = {}

    def learn(self, key, body):
        if key and isinstance(body, dict) and body.get("kind") != "Status":
            self.known[key] = body

    def forget(self, key):
        self.known.pop(key, None)

    def fill(self, value):
        if isinstance(value, str):
            return PLACEHOLDER.sub(lambda found: self._lookup(found.group(1)), value)
        if isinstance(value, dict):
            return {self.fill(key): self.fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        return value

    def _lookup(self, reference):
        key, _, path = reference.partition(".")
        value = self.known.get(key)
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return "0" if value is None else str(value)


class Handle:
    """One object of one resource: makes the operations on it."""

    def __init__(self, kind, name, namespace=None, version=None):
        self.kind, self.name, self.namespace = kind, name, namespace
        self.collection = kind.collection(namespace, version)
        self.path = f"{self.collection}/{name}"
        self.key = f"{kind.plural}/{namespace or ''}/{name}".replace(".", "-")

    def field(self, path):
        return "${" + f"{self.key}.{path}" + "}"

    @property
    def version(self):
        return self.field("metadata.resourceVersion")

    def _operation(self, what, method, path, body=None, **options):
        options.setdefault("remember", self.key)
        return Operation(f"{what} {self.kind.plural}", method, path, body=body, **options)

    def create(self, body, what="create", **options):
        return self._operation(what, "POST", self.collection, body, **options)

    def get(self, what="get", sub="", **options):
        return self._operation(what, "GET", self.path + sub, **options)

    def update(self, body, what="update", sub="", **options):
        return self._operation(what, "PUT", self.path + sub, body, **options)

    def patch(self, content, body, what="patch", sub="", query=None, **options):
        short = content.split("/")[1].split("+")[0].removesuffix("-patch")
        return self._operation(f"{what}.{short}", "PATCH", self.path + sub, body, query=query or {},
                               headers={"Content-Type": content, **options.pop("headers", {})}, **options)

    def apply(self, body, manager, force=None, what="patch", sub="", **query):
        query = {"fieldManager": manager, **query, **({} if force is None else {"force": force})}
        return self.patch("application/apply-patch+yaml", body, what, sub, query)

    def delete(self, body=None, what="delete", **options):
        return self._operation(what, "DELETE", self.path, body, **options)

    def gone(self):
        return self._operation("gone", "GET", self.path, mode="await", until=lambda answer: answer.code == 404)
