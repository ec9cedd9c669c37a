"""Streams of writes: create, update and every patch type, with the options and mistakes that go with them."""

import copy
import json

import customs
import kinds
from operations import Handle, Operation, as_yaml

PATCHES = {"merge": "application/merge-patch+json", "json": "application/json-patch+json", "strategic": "application/strategic-merge-patch+json"}


def handle(kind, rng, scope, name=None):
    name = name or f"{scope.name}-{rng.choice('abc')}"
    return Handle(kind, name, scope.namespace if kind.namespaced else None)


def options(rng):
    """Query parameters that a write may carry."""
    query = {}
    if rng.random() < 0.15:
        query["dryRun"] = "All"
    if rng.random() < 0.3:
        query["fieldValidation"] = rng.choice(("Strict", "Warn", "Ignore"))
    if rng.random() < 0.3:
        query["fieldManager"] = rng.choice(("one", "two"))
    return query


def stray(body, rng):
    """Sometimes an unknown field."""
    if rng.random() < 0.15:
        body = copy.deepcopy(body)
        rng.choice((body, body["metadata"], body.setdefault("spec", {}) if isinstance(body.get("spec", {}), dict) else body))["stray"] = rng.choice((1, "x"))
    return body


def lifecycle(kind):
    """Random writes on a handful of objects of one kind."""

    def stream(rng, scope):
        for _ in range(36):
            yield from one_write(kind, rng, scope)

    stream.__name__ = f"writes-{kind.plural}"
    return stream


def one_write(kind, rng, scope):
    object_ = handle(kind, rng, scope)
    body = kind.make(rng, object_.name, {"stream": scope.name, "tier": kinds.simple(rng)} if rng.random() < 0.7 else None)
    action = rng.choice(("create", "create", "create", "update", "update", "stale", "patch", "patch", "patch", "patch", "get", "status", "scale",
                         "delete", "metadata", "generate"))
    if action == "create":
        if kind.custom and rng.random() < 0.3:
            body = customs.spoil(body, rng)
        body = stray(body, rng) if isinstance(body.get("metadata"), dict) else body
        if rng.random() < 0.15:
            yield object_.create(as_yaml(body), "create.yaml", query=options(rng), headers={"Content-Type": "application/yaml"})
        else:
            yield object_.create(body, query=options(rng))
    elif action == "update":
        body["metadata"]["resourceVersion"] = object_.version
        yield object_.get()
        yield object_.update(stray(body, rng), query=options(rng))
    elif action == "stale":
        body["metadata"] |= rng.choice(({"resourceVersion": "1"}, {}, {"uid": "00000000-0000-0000-0000-000000000000"}, {"name": "another"},
                                        {"resourceVersion": "abc"}, {"namespace": "elsewhere"}, {"generation": 77}, {"creationTimestamp": None}))
        yield object_.update(body, "update.odd")
    elif action == "patch":
        yield patch(kind, object_, rng)
    elif action == "get":
        yield object_.get()
    elif action == "status" and kind.status:
        yield from status(kind, object_, rng)
    elif action == "scale" and kind.scale:
        yield from scale(object_, rng)
    elif action == "delete":
        yield object_.delete(query=rng.choice(({}, {}, {"dryRun": "All"}, {"propagationPolicy": "Background"}, {"gracePeriodSeconds": "0"})))
    elif action == "metadata":
        yield object_.patch(PATCHES["merge"], {"metadata": metadata(rng, scope)}, "patch.metadata", query=options(rng))
    elif action == "generate":
        del body["metadata"]["name"]
        body["metadata"]["generateName"] = rng.choice((f"{scope.name}-", "g" * 70, "Bad_"))
        yield object_.create(body, "create.generated", remember=None)


def metadata(rng, scope):
    space = Handle(kinds.NAMESPACE, scope.namespace)
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": space.name, "uid": space.field("metadata.uid")}
    return rng.choice((
        {"labels": {"tier": kinds.simple(rng)}}, {"labels": None}, {"labels": {"bad key!": "v"}}, {"labels": {"k": "bad value!"}},
        {"annotations": {"note": kinds.word(rng)}}, {"annotations": {"Bad Key": "x"}}, {"labels": {"k": 5}}, {"labels": []},
        {"finalizers": ["example.org/hold"]}, {"finalizers": ["nodomain"]}, {"finalizers": None}, {"finalizers": []},
        {"ownerReferences": [owner]}, {"ownerReferences": [owner, owner]}, {"ownerReferences": [{**owner, "controller": True}]},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o"}]},
        {"ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]}, {"ownerReferences": None},
        {"deletionTimestamp": "2024-01-01T00:00:00Z"}, {"generation": 9}, {"uid": "x"}, {"resourceVersion": "5"}, {"selfLink": "/x"},
        {"managedFields": []}, {"managedFields": [{}]}, {"name": "renamed"}, {"creationTimestamp": "2000-01-01T00:00:00Z"}, {"annotations": {"n": None}},
    ))


def orphans(rng, scope):
    """Owner references to objects that do not exist, on a kind with rules and on one without."""
    for kind, content in ((customs.GAUGE, {"spec": {"count": 1}}), (kinds.CONFIGMAP, {})):
        target = Handle(kind, f"{scope.name}-o", scope.namespace)
        yield target.create(kind.object(target.name, **content))
        for owner in ({"apiVersion": "v1", "kind": "ConfigMap", "name": "o"}, {"apiVersion": "", "kind": "", "name": "", "uid": ""}):
            yield target.patch(PATCHES["merge"], {"metadata": {"ownerReferences": [owner]}}, "patch.metadata")


def patch(kind, object_, rng):
    change = kind.change(rng)
    form = rng.choice(("merge", "merge", "json", "strategic"))
    if form != "json":
        return object_.patch(PATCHES[form], change, query=options(rng))
    return object_.patch(PATCHES["json"], json_patch(change, rng), query=options(rng))


def json_patch(change, rng):
    """JSON Patch operations aimed at the places that a merge patch would touch."""
    pointer, value = "", change
    while isinstance(value, dict) and value and (pointer.count("/") < 1 or rng.random() < 0.6):
        key = rng.choice(sorted(value))
        pointer, value = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", value[key]
    operation = rng.choice(("add", "add", "replace", "remove", "test", "copy", "move", "odd"))
    if operation == "odd":
        return rng.choice(([{"op": "nonsense", "path": "/x"}], [{"op": "add"}], {"op": "add"}, [], [{"op": "add", "path": "nope", "value": 1}],
                           [{"op": "remove", "path": "/metadata/name"}], [{"op": "replace", "path": "/kind", "value": "Other"}],
                           [{"op": "test", "path": "/metadata/name", "value": "no"}]))
    first = {"op": operation, "path": pointer}
    if operation in ("add", "replace", "test"):
        first["value"] = value
    if operation in ("copy", "move"):
        first = {"op": operation, "from": pointer, "path": "/metadata/annotations"}
    return [first] if rng.random() < 0.7 else [first, {"op": "add", "path": "/metadata/labels", "value": {"tier": "patched"}}]


def status(kind, object_, rng):
    if kind.custom:
        state = customs.instance(customs.STATUS, rng)
        state = customs.spoil(state, rng) if rng.random() < 0.3 else state
    elif kind is kinds.DEPLOYMENT:
        state = rng.choice(({"replicas": 2, "readyReplicas": 1}, {"replicas": -1}, {"observedGeneration": 4}, {
            "conditions": [{"type": "Available", "status": "True", "reason": "Tested", "message": "m"}]}))
    else:
        state = rng.choice(({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}, {"conditions": [{"type": "Up", "status": "True"}]}))
    yield object_.get("get.status", "/status")
    yield object_.patch(PATCHES["merge"], {"status": state, "metadata": {"labels": {"from": "status"}}, "spec": {"replicas": 9}}, "patch.status", "/status")


def scale(object_, rng):
    yield object_.get("get.scale", "/scale", remember=None)
    count = rng.choice((0, 1, 5, -2, "many", None))
    yield object_.patch(PATCHES["merge"], {"spec": {"replicas": count}}, "patch.scale", "/scale", remember=None)
    body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": object_.name, "namespace": object_.namespace},
            "spec": {"replicas": rng.randrange(4)}}
    yield object_.update(body, "update.scale", "/scale", remember=None)


STRATEGIC = [
    {"spec": {"template": {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "new"}, {"name": "C", "value": "3"}]}]}}}},
    {"spec": {"template": {"spec": {"containers": [{"name": "main", "env": [{"name": "B", "$patch": "delete"}]}]}}}},
    {"spec": {"template": {"spec": {"containers": [{"$patch": "replace"}, {"name": "only", "image": "registry.example.org/only:1"}]}}}},
    {"spec": {"template": {"spec": {"$setElementOrder/containers": [{"name": "side"}, {"name": "main"}], "containers": [
        {"name": "side", "image": "registry.example.org/side:2"}]}}}},
    {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate", "rollingUpdate": None}}},
    {"spec": {"template": {"metadata": {"labels": {"$patch": "replace", "app": "alpha"}}}}},
    {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.org/hold"]}},
    {"metadata": {"finalizers": ["example.org/more"]}},
    {"metadata": {"annotations": {"$patch": "delete"}}},
    {"spec": {"template": {"spec": {"containers": [{"image": "no-name"}]}}}},
    {"spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}}},
    {"spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": None, "configMap": {"name": "c"}}]}}}},
    {"spec": {"$patch": "nonsense"}},
    {"spec": {"template": {"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}}}},
    {"spec": {"template": {"spec": {"containers": [{"name": "main", "ports": [{"containerPort": 8080, "protocol": "UDP"}]}]}}}},
]


def strategic(rng, scope):
    """Directives of strategic merge patch on a Deployment."""
    target = Handle(kinds.DEPLOYMENT, f"{scope.name}-d", scope.namespace)
    yield target.create(kinds.DEPLOYMENT.make(rng, target.name))
    for _ in range(24):
        yield target.patch(PATCHES["strategic"], rng.choice(STRATEGIC), "patch.directives")


def encodings(rng, scope):
    """YAML bodies, duplicate and unknown fields, and bodies that are not objects."""
    for kind in (kinds.CONFIGMAP, customs.WIDGET, kinds.DEPLOYMENT):
        target = handle(kind, rng, scope)
        head = f"apiVersion: {kind.api_version}\nkind: {kind.kind}\nmetadata:\n  name: {target.name}\n"
        texts = [
            ("application/yaml", head + "  labels: {a: 'on', b: \"1\"}\n"), ("application/yaml", head + "  labels:\n    a: on\n"),
            ("application/yaml", head + "  name: twice\n"), ("application/yaml", head + "bogus: true\n"), ("application/yaml", "- just\n- a list\n"),
            ("application/yaml", "a: [unclosed"), ("application/json", "{"), ("application/json", "[]"), ("application/json", "null"),
            ("application/json", ""), ("application/json", "\"text\""), ("application/json", "{}"),
            ("application/json", json.dumps(kind.object(target.name))[:-1] + ',"kind":"' + kind.kind + '"}'),
            ("application/json", json.dumps({**kind.object(target.name), "bogus": 1, "metadata": {"name": target.name, "odd": 1}})),
            ("application/json", json.dumps(kind.object(target.name)).replace(kind.kind, "Other")),
            ("application/json", json.dumps(kind.object(target.name)).replace(kind.api_version, "v9")), ("text/plain", "{}"),
            ("application/xml", "<a/>"),
        ]
        for content, text in rng.sample(texts, 12):
            for check in rng.sample(("Strict", "Warn", "Ignore", "Nonsense"), 2):
                yield Operation(f"create.encoded {kind.plural}", "POST", target.collection, {"fieldValidation": check, "dryRun": "All"}, text,
                                {"Content-Type": content})


def events(rng, scope):
    """Events through both of their API groups."""
    space = scope.namespace
    core, new = f"/api/v1/namespaces/{space}/events", f"/apis/events.k8s.io/v1/namespaces/{space}/events"
    involved = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "namespace": space}
    for index in range(4):
        body = {"metadata": {"name": f"e{index}", "namespace": space}, "involvedObject": involved, "reason": kinds.simple(rng), "message": kinds.word(rng),
                "type": rng.choice(("Normal", "Warning", "Odd")), "source": {"component": "tester"}, "count": index,
                "firstTimestamp": "2024-01-01T00:00:00Z", "lastTimestamp": "2024-01-01T00:00:01Z"}
        yield Operation("create events", "POST", core, body=body)
        body = {"metadata": {"name": f"n{index}", "namespace": space}, "regarding": {**involved, "namespace": rng.choice((space, "other"))},
                "reason": rng.choice(("Because", "")), "action": "Testing", "type": "Normal", "note": kinds.simple(rng),
                "eventTime": "2024-01-01T00:00:00.000001Z", "reportingController": rng.choice(("example.org/tester", "")), "reportingInstance": "t-1"}
        yield Operation("create.new events", "POST", new, body=body)
        for place in (core, new):
            for name in ("e", "n"):
                yield Operation("get events", "GET", f"{place}/{name}{index}")
        yield Operation("patch.merge events", "PATCH", f"{core}/e{index}", body={"count": 9, "message": "again"}, headers={"Content-Type": PATCHES["merge"]})
        yield Operation("patch.series events", "PATCH", f"{new}/n{index}", body={"series": {"count": 2, "lastObservedTime": "2024-01-01T00:00:02.000000Z"}},
                        headers={"Content-Type": PATCHES["merge"]})
    for selector in ("involvedObject.name=c", "reason=alpha", "type=Normal", "source=tester", "reportingComponent=tester", "involvedObject.uid=x", "regarding.name=c"):
        for place in (core, new):
            yield Operation("list.fields events", "GET", place, {"fieldSelector": selector})
    yield Operation("list.table events", "GET", core, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}, pick=lambda body: [
        [cell for column, cell in zip(body["columnDefinitions"], row["cells"]) if column["name"] not in ("Last Seen", "First Seen")] for row in body["rows"]])
    yield Operation("deletecollection events", "DELETE", new)
