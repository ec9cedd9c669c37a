"""The custom resources of the streams: definitions that together use every schema feature, and instances of them.

Instances are drawn from the schema itself, then now and then spoilt in one place, so that validation is
exercised in depth without a list of cases.
"""

import copy

from kinds import Kind, simple, word

GROUP = "diff.example.org"
TEXT, WHOLE, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}


def record(properties, **more):
    return {"type": "object", "properties": properties, **more}


def array(items, **more):
    return {"type": "array", "items": items, **more}


def rule(text, **more):
    return {"rule": text, **more}


WIDGET_SPEC = record({
    "size": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 10, "default": 3},
    "color": {"type": "string", "enum": ["red", "green", "blue"], "default": "red"},
    "title": {"type": "string", "minLength": 2, "maxLength": 8, "pattern": "^[a-z]+$"},
    "note": {"type": "string", "nullable": True},
    "flag": {"type": "boolean", "default": True},
    "target": {"x-kubernetes-int-or-string": True},
    "tags": array({"type": "string"}, **{"x-kubernetes-list-type": "set", "maxItems": 6}),
    "args": array({"type": "string"}),
    "ports": array(record({"port": WHOLE, "protocol": {"type": "string", "default": "TCP"}, "comment": TEXT,
                           "weights": {"type": "object", "additionalProperties": {"type": "integer"}}}, required=["port"]),
                   **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"], "maxItems": 5}),
    "settings": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 5}, "maxProperties": 3},
    "frozen": record({"a": TEXT, "b": WHOLE}, **{"x-kubernetes-map-type": "atomic"}),
    "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "template": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    "limits": record({"min": {"type": "integer", "default": 1}, "max": WHOLE}, **{"x-kubernetes-validations": [
        rule("!has(self.max) || self.min <= self.max", message="min must not exceed max", reason="FieldValueForbidden", fieldPath=".max")]}),
    "klass": {"type": "string", "x-kubernetes-validations": [rule("self == oldSelf", message="klass is immutable")]},
    "nested": record({"inner": record({"deep": {"type": "integer", "default": 7}}, default={})}),
    "replicas": {"type": "integer", "format": "int32"},
}, required=["color"], **{"x-kubernetes-validations": [
    rule("!has(self.title) || self.title != 'forbidden'", messageExpression="'title ' + self.title + ' is taken'"),
    rule("!has(self.tags) || self.tags.all(t, size(t) < 6)")]})

STATUS = record({"phase": TEXT, "ready": FLAG, "replicas": {"type": "integer"}, "labels": TEXT,
                 "conditions": array(record({"type": TEXT, "status": TEXT, "reason": TEXT}, required=["type", "status"]),
                                     **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]})})

GAUGE_SPEC = record({
    "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "multipleOf": 2},
    "huge": {"type": "integer", "format": "int64"},
    "when": {"type": "string", "format": "date-time"},
    "address": {"type": "string", "format": "ipv4"},
    "either": {"type": "object", "properties": {"left": TEXT, "right": WHOLE}, "oneOf": [{"required": ["left"]}, {"required": ["right"]}]},
    "any": {"type": "integer", "anyOf": [{"minimum": 10}, {"maximum": 2}], "not": {"enum": [20]}},
    "all": {"type": "string", "allOf": [{"minLength": 2}, {"pattern": "a"}]},
    "rows": array(array({"type": "integer"}, maxItems=3), minItems=1),
    "key": {"type": "string", "maxLength": 12},
    "maybe": {"type": "object", "nullable": True, "properties": {"x": WHOLE}, "default": {"x": 1}},
    "count": {"type": "integer", "x-kubernetes-validations": [rule("self >= oldSelf", message="count may only grow")]},
})


def version(name, schema, storage=True, served=True, **more):
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def definition(plural, kind, versions, scope="Namespaced", group=GROUP, **names):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": scope, "names": {"plural": plural, "kind": kind, **names}, "versions": versions}}


COLUMNS = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}, {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
           {"name": "First", "type": "string", "jsonPath": ".spec.tags[0]", "priority": 1},
           {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status', "description": "is it?"},
           {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]

DEFINITIONS = [
    definition("widgets", "Widget", [version(
        "v1", record({"spec": WIDGET_SPEC, "status": STATUS}),
        subresources={"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                                              "labelSelectorPath": ".status.labels"}},
        additionalPrinterColumns=COLUMNS, selectableFields=[{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}])],
        shortNames=["wg"], categories=["all", "shapes"]),
    definition("plains", "Plain", [version("v1", record({"spec": WIDGET_SPEC, "status": STATUS}))]),
    definition("gauges", "Gauge", [version("v1", record({"spec": GAUGE_SPEC, "status": STATUS}), subresources={"status": {}})]),
    definition("blobs", "Blob", [version("v1", {"type": "object", "x-kubernetes-preserve-unknown-fields": True})], scope="Cluster"),
    definition("multis", "Multi", [
        version("v1", record({"spec": record({"a": {"type": "string", "default": "one"}, "b": WHOLE, "c": TEXT})})),
        version("v1beta1", record({"spec": record({"a": TEXT, "b": WHOLE, "old": {"type": "string", "default": "was"}})}), storage=False),
        version("v1alpha1", record({"spec": record({"a": TEXT})}), storage=False, deprecated=True,
                deprecationWarning="v1alpha1 Multi is going away")]),
]


def instance(schema, rng, depth=0):
    """A value that the schema is meant to accept."""
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return rng.choice((5, "50%"))
    if schema.get("x-kubernetes-embedded-resource"):
        return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": simple(rng)}, "any": word(rng)}
    kind = schema.get("type")
    if kind == "object":
        if "additionalProperties" in schema:
            return {f"m{index}": instance(schema["additionalProperties"], rng, depth + 1) for index in range(rng.randrange(3))}
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            return {simple(rng): rng.choice((1, word(rng), [1, {"z": None}], {"k": 1.5}, True)) for _ in range(rng.randrange(3))}
        fields = schema.get("properties", {})
        needed = schema.get("required", [])
        found = {key: instance(field, rng, depth + 1) for key, field in fields.items() if key in needed or rng.random() < 0.45}
        if "oneOf" in schema:
            choice = rng.choice(sorted(fields))
            found = {choice: instance(fields[choice], rng, depth + 1)}
        return found
    if kind == "array":
        items = [instance(schema["items"], rng, depth + 1) for _ in range(rng.randrange(schema.get("minItems", 0), 4))]
        return _distinct(items, schema)
    if kind == "integer":
        low, high = schema.get("minimum", 0), schema.get("maximum", 12)
        return rng.randint(low, high)
    if kind == "number":
        return rng.choice((2, 4.0, 6, 2.5))
    if kind == "boolean":
        return rng.random() < 0.5
    return _text(schema, rng)


def _text(schema, rng):
    form = schema.get("format")
    if form == "date-time":
        return "2024-05-06T07:08:09Z"
    if form == "ipv4":
        return "192.0.2.7"
    return simple(rng)[: schema.get("maxLength", 99)]


def _distinct(items, schema):
    keys = schema.get("x-kubernetes-list-map-keys")
    if schema.get("x-kubernetes-list-type") == "set":
        return list(dict.fromkeys(items))
    if keys:
        return list({tuple(item.get(key, "TCP") for key in keys): item for item in items}.values())
    return items


ODD = [None, "", "zzz", -1, 99, 3.5, True, [], {}, [1], {"q": 1}, ["a", "a"], "forbidden", 1e30, [None], "2024"]


def spoil(value, rng):
    """The same value with one place changed to something odd."""
    value = copy.deepcopy(value)
    places = list(_places(value))
    holder, key = rng.choice(places) if places else (value, "spec")
    action = rng.randrange(3)
    if action == 0 and isinstance(holder, dict):
        holder[rng.choice(("unknown", "size", "x-y"))] = rng.choice(ODD)
    elif action == 1 and isinstance(holder, list):
        holder.append(holder[key])
    else:
        holder[key] = rng.choice(ODD)
    return value


def _places(value):
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield value, key
        yield from _places(child)


def _kind(spec):
    names, last = spec["spec"]["names"], spec["spec"]["versions"][0]
    schema = last["schema"]["openAPIV3Schema"]
    body = schema.get("properties", {}).get("spec")
    subresources = last.get("subresources", {})

    def make(rng):
        if body is None:
            return {"free": instance(schema, rng), "list": [1, 2]}
        return {"spec": instance(body, rng)}

    def change(rng):
        patch = make(rng)
        return spoil(patch, rng) if rng.random() < 0.5 else patch

    return Kind(spec["spec"]["group"], last["name"], names["plural"], names["kind"], spec["spec"]["scope"] == "Namespaced", make, change,
                "status" in subresources, "scale" in subresources)


CUSTOM = [_kind(each) for each in DEFINITIONS]
WIDGET, PLAIN, GAUGE, BLOB, MULTI = CUSTOM
