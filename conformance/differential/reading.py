"""Streams of reads: lists with every selector and page, versions to read at, watches, and other representations."""

import kinds
from operations import Handle, Operation
from writing import PATCHES

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"

LABELS = ["tier=alpha", "tier!=alpha", "tier in (alpha,beta)", "tier notin (alpha)", "tier", "!tier", "tier=alpha,part=1", "part>1", "part<2", "tier==beta",
          "tier in ()", "a b", "=x", "tier=bad value", "part>x", "-bad=1"]
FIELDS = ["metadata.name={}-0", "metadata.name!={}-0", "metadata.namespace={ns}", "spec.color=red", "spec.size=3", "type=Opaque", "nonsense=1", "metadata.name",
          "metadata.name=={}-1,metadata.namespace!=x"]


def listing(kind):
    """A small population listed in every way."""

    def stream(rng, scope):
        namespace = scope.namespace if kind.namespaced else None
        objects = [Handle(kind, f"{scope.name}-{index}", namespace) for index in range(5)]
        for index, each in enumerate(objects):
            yield each.create(kind.make(rng, each.name, {"tier": rng.choice(("alpha", "beta")), "part": str(index), "stream": scope.name}))
        for _ in range(26):
            yield from read(kind, objects, rng, scope)
        if rng.random() < 0.7:
            yield collection(kind, "deletecollection", scope, {"labelSelector": f"stream={scope.name},part in (1,2)"}, method="DELETE")
            yield collection(kind, "list", scope)
        yield collection(kind, "deletecollection", scope, {"dryRun": "All"}, method="DELETE")
        yield collection(kind, "deletecollection", scope, method="DELETE")

    stream.__name__ = f"reads-{kind.plural}"
    return stream


def collection(kind, what, scope, query=None, method="GET", accept=None, **more):
    query = dict(query or {})
    if not kind.namespaced:
        own = f"stream={scope.name}"
        query["labelSelector"] = f"{query['labelSelector']},{own}" if "labelSelector" in query else own
    path = kind.collection(scope.namespace if kind.namespaced else None)
    return Operation(f"{what} {kind.plural}", method, path, query, headers={"Accept": accept} if accept else {}, **more)


def read(kind, objects, rng, scope):
    each = rng.choice(objects)
    choice = rng.choice(("label", "label", "field", "page", "matrix", "matrix", "table", "partial", "get", "getversion", "bump"))
    if choice == "label":
        yield collection(kind, "list.labels", scope, {"labelSelector": rng.choice(LABELS)})
    elif choice == "field":
        yield collection(kind, "list.fields", scope, {"fieldSelector": rng.choice(FIELDS).format(scope.name, ns=scope.namespace)})
    elif choice == "page":
        size = rng.choice((1, 2, 3, 10))
        selector = rng.choice(({}, {}, {"labelSelector": "tier=alpha"}))
        yield collection(kind, "list.page", scope, {"limit": size, **selector}, remember="page")
        more = {"limit": size, "continue": "${page.metadata.continue}", **selector}
        yield collection(kind, "list.next", scope, more, remember="page")
        yield collection(kind, "list.next", scope, {**more, "continue": rng.choice(("${page.metadata.continue}", "garbage", "eyJ2Ijoi"))})
    elif choice == "matrix":
        query = {"resourceVersion": rng.choice(("", "0", "1", each.version, "99999999999", "abc", "-1")),
                 "resourceVersionMatch": rng.choice(("", "Exact", "NotOlderThan", "Nonsense")), "limit": rng.choice(("", "2", "-1", "x"))}
        if query["resourceVersion"] == "1" and query["resourceVersionMatch"] == "Exact":
            query["resourceVersion"] = each.version
        if query["resourceVersion"] == "99999999999" and rng.random() < 0.8:
            query["resourceVersion"] = "0"  # each of these costs three seconds
        yield collection(kind, "list.matrix", scope, {key: value for key, value in query.items() if value})
    elif choice == "table":
        query = rng.choice(({}, {"includeObject": "None"}, {"includeObject": "Object"}, {"includeObject": "Metadata", "limit": "2"}))
        yield collection(kind, "list.table", scope, query, accept=TABLE)
        yield each.get("get.table", headers={"Accept": TABLE}, remember=None)
    elif choice == "partial":
        yield collection(kind, "list.partial", scope, accept=PARTIAL_LIST)
        yield each.get("get.partial", headers={"Accept": rng.choice((PARTIAL, "application/json;as=Nonsense;v=v1;g=meta.k8s.io", "text/html"))}, remember=None)
    elif choice == "get":
        yield each.get()
        yield each.get("get.yaml", headers={"Accept": "application/yaml"}, query={"pretty": rng.choice(("true", "0"))})
    elif choice == "getversion":
        yield each.get("get.version", query={"resourceVersion": rng.choice(("0", "1", each.version, "x"))})
    else:
        yield each.patch(PATCHES["merge"], {"metadata": {"labels": {"tier": rng.choice(("alpha", "beta"))}}})


def watching(kind):
    """Writes, then the history they left, seen through different watches."""

    def stream(rng, scope):
        namespace = scope.namespace if kind.namespaced else None
        objects = [Handle(kind, f"{scope.name}-{index}", namespace) for index in range(3)]
        for each in objects:
            yield each.create(kind.make(rng, each.name, {"tier": "alpha", "stream": scope.name}))
        yield collection(kind, "list", scope, remember="start")
        for _ in range(10):
            each = rng.choice(objects)
            if rng.random() < 0.6:
                yield each.patch(PATCHES["merge"], {"metadata": {"labels": {"tier": rng.choice(("alpha", "beta"))}}})
            elif rng.random() < 0.4:
                yield each.delete()
            else:
                yield each.create(kind.make(rng, each.name, {"tier": rng.choice(("alpha", "beta")), "stream": scope.name}))
        for _ in range(5):
            yield view(kind, objects, rng, scope)

    stream.__name__ = f"watches-{kind.plural}"
    return stream


def view(kind, objects, rng, scope):
    since = {"resourceVersion": "${start.metadata.resourceVersion}"}
    query = rng.choice((
        since, since, {**since, "labelSelector": "tier=alpha"}, {**since, "fieldSelector": f"metadata.name={objects[0].name}"}, {},
        {"resourceVersion": "0"}, {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"},
        {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true", **since},
        {"sendInitialEvents": "true"}, {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan", **since},
        {**since, "resourceVersionMatch": "Exact"}, {**since, "allowWatchBookmarks": "true", "labelSelector": "tier!=alpha"},
        {"resourceVersion": "x"}, {**since, "labelSelector": "a b"}))
    accept = rng.choice((None, None, TABLE, PARTIAL))
    return collection(kind, "watch", scope, {"watch": "true", "timeoutSeconds": "1", **query}, accept=accept, mode="watch")


def single(rng, scope):
    """The deprecated watch paths and names in the query."""
    target = Handle(kinds.CONFIGMAP, f"{scope.name}-w", scope.namespace)
    yield target.create(target.kind.make(rng, target.name))
    for path in (f"/api/v1/watch/namespaces/{scope.namespace}/configmaps", f"/api/v1/watch/namespaces/{scope.namespace}/configmaps/{target.name}"):
        yield Operation("watch.path configmaps", "GET", path, {"timeoutSeconds": "1"}, mode="watch")
