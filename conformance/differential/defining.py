"""Streams about definitions: good and bad CRDs, their life, and how discovery and OpenAPI show them."""

import copy

import customs
import kinds
from customs import array, definition, record, rule, version
from operations import Handle, Operation

OBJECT = {"type": "object"}


def broken(group):
    """Definitions that the reference refuses, each for a reason of its own."""
    def with_schema(schema, **more):
        return definition("things", "Thing", [version("v1", schema, **more)], group=group)

    def spec(properties, **more):
        return with_schema(record({"spec": record(properties, **more)}))

    good = with_schema(record({"spec": OBJECT}))
    cases = [
        {**good, "metadata": {"name": "wrong.name"}}, with_schema({"type": "string"}), with_schema({}), spec({"a": {}}), spec({"a": {"type": "array"}}),
        spec({"a": {"type": "nonsense"}}), spec({"a": {"type": "string", "default": 5}}), spec({"a": {"type": "string", "pattern": "("}}),
        spec({"a": {"type": "object", "additionalProperties": {"type": "string"}, "properties": {"b": {"type": "string"}}}}),
        spec({"a": array({"type": "string"}, uniqueItems=True)}), spec({"a": {"type": "integer", "x-kubernetes-int-or-string": True}}),
        spec({"a": array(record({"k": {"type": "string"}}), **{"x-kubernetes-list-type": "map"})}),
        spec({"a": array(record({"k": {"type": "string"}}), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["z"]})}),
        spec({"a": array(record({"k": {"type": "string"}}), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]})}),
        spec({"a": array(OBJECT, **{"x-kubernetes-list-type": "set"})}), spec({"a": {"type": "object", "x-kubernetes-map-type": "odd"}}),
        spec({"a": {"type": "string", "x-kubernetes-validations": [rule("self.size() >")]}}),
        spec({"a": {"type": "string", "x-kubernetes-validations": [rule("self + 1 == 2")]}}),
        spec({"a": {"type": "string", "x-kubernetes-validations": [rule("size(self)")]}}),
        spec({"a": {"type": "string", "x-kubernetes-validations": [rule("")]}}),
        spec({"a": {"type": "string", "x-kubernetes-validations": [rule("true", message="x", messageExpression="1")]}}),
        spec({"a": {"type": "string", "x-kubernetes-validations": [rule("true", fieldPath=".nope")]}}),
        spec({"a": {"type": "string", "x-kubernetes-validations": [rule("true", reason="Nonsense")]}}),
        spec({"a": array({"type": "string"}, **{"x-kubernetes-validations": [rule("self.all(x, self.all(y, self.all(z, x == y)))")]})}),
        spec({"a": {"type": "string"}}, anyOf=[{"properties": {"zz": {"minLength": 1}}}]),
        spec({"a": {"type": "string"}}, anyOf=[{"properties": {"a": {"type": "string"}}}]), spec({"a": {"$ref": "#/x"}}),
        with_schema(record({"metadata": record({"labels": OBJECT})})), with_schema(record({"spec": OBJECT}), subresources={"scale": {"specReplicasPath": "bad"}}),
        with_schema(record({"spec": OBJECT}), additionalPrinterColumns=[{"name": "A", "type": "odd", "jsonPath": ".a"}]),
        with_schema(record({"spec": OBJECT}), additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": "a[["}]),
        with_schema(record({"spec": OBJECT}), selectableFields=[{"jsonPath": ".spec.none"}]), with_schema(record({"spec": OBJECT}), storage=False),
        with_schema(record({"spec": OBJECT}), served=False), definition("things", "Thing", [], group=group),
        definition("things", "Thing", [version("v1", OBJECT), version("v1", OBJECT)], group=group),
        definition("things", "Thing", [version("Bad_Version", OBJECT)], group=group), definition("things", "thing!", [version("v1", OBJECT)], group=group),
        definition("Things", "Thing", [version("v1", OBJECT)], group=group), definition("things", "Thing", [version("v1", OBJECT)], scope="Nowhere", group=group),
        definition("things", "Thing", [version("v1", OBJECT)], group="sub.k8s.io"), definition("things", "Thing", [version("v1", OBJECT)], group="nodots"),
        definition("things", "Thing", [version("v1", OBJECT)], group=group, shortNames=["UP"]),
        {**good, "spec": {**good["spec"], "conversion": {"strategy": "Webhook"}}}, {**good, "spec": {**good["spec"], "preserveUnknownFields": True}},
        {**good, "spec": {"group": group}}, {key: value for key, value in good.items() if key != "spec"},
        definition("things", "Thing", [{"name": "v1", "served": True, "storage": True}], group=group),
    ]
    return cases


def refused(rng, scope):
    group = f"{scope.name}.example.org"
    for body in rng.sample(broken(group), 30):
        yield Operation("create.broken customresourcedefinitions", "POST", kinds.CRD.collection(), {"dryRun": "All"}, body)
    step = record({"step": {"type": "number", "multipleOf": 0.5, "default": 3}})
    yield Operation("create.factor customresourcedefinitions", "POST", kinds.CRD.collection(), {"dryRun": "All"},
                    definition("things", "Thing", [version("v1", record({"spec": step}))], group=group))
    for each in customs.DEFINITIONS:
        for _ in range(4):
            body = copy.deepcopy(each)
            body["spec"] = customs.spoil(body["spec"], rng)
            body["metadata"]["name"] = "spoilt." + customs.GROUP
            yield Operation("create.spoilt customresourcedefinitions", "POST", kinds.CRD.collection(), {"dryRun": "All"}, body)


def established(answer):
    conditions = answer.body.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def life(rng, scope):
    """One definition from creation through a schema change to its end, with an instance along the way."""
    group = f"{scope.name}.example.org"
    body = definition("things", "Thing", [version("v1", record({"spec": customs.WIDGET_SPEC, "status": customs.STATUS}), subresources={"status": {}})],
                      group=group, shortNames=["th"], categories=["all"])
    crd = Handle(kinds.CRD, f"things.{group}")
    thing = kinds.Kind(group, "v1", "things", "Thing", make=lambda rng: {"spec": customs.instance(customs.WIDGET_SPEC, rng)})
    one = Handle(thing, "one", scope.namespace)
    yield crd.create(body)
    yield crd.get("get.established", mode="await", until=established)
    yield from discovery(group)
    yield Operation("await served", "GET", one.collection, mode="await", until=lambda answer: answer.code == 200)
    yield one.create(thing.make(rng, "one"))
    yield one.get()
    changed = copy.deepcopy(body)
    schema = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    schema["properties"].pop(rng.choice(("size", "flag", "tags", "title")))
    schema["properties"]["fresh"] = {"type": "string", "default": "made"}
    changed["metadata"]["resourceVersion"] = crd.version
    yield crd.update(changed)
    yield one.get("get.migrated", mode="await", until=lambda answer: answer.body.get("spec", {}).get("fresh") == "made")
    yield one.patch("application/merge-patch+json", {"spec": {"args": ["touched"]}})
    for path, value in (("scope", "Cluster"), ("group", "other.example.org"), ("names", {"plural": "others", "kind": "Thing"})):
        wrong = copy.deepcopy(changed)
        wrong["spec"][path] = value
        wrong["metadata"]["resourceVersion"] = crd.version
        yield crd.update(wrong, "update.immutable", query={"dryRun": "All"})
    yield one.patch("application/merge-patch+json", {"metadata": {"finalizers": ["example.org/hold"]}})
    yield crd.delete()
    yield crd.get("get.terminating", mode="await", until=lambda answer: "Terminating" in str(answer.body.get("status")), compare=False)
    yield one.get("get.terminating", mode="await", until=lambda answer: "deletionTimestamp" in answer.body["metadata"])
    yield Handle(thing, "two", scope.namespace).create(thing.make(rng, "two"), "create.terminating")
    yield one.patch("application/merge-patch+json", {"metadata": {"finalizers": None}}, "patch.release")
    yield crd.gone()
    yield Operation("list.removed", "GET", one.collection, mode="await", until=lambda answer: answer.code == 404)


def discovery(group):
    yield Operation("discovery.group", "GET", f"/apis/{group}", mode="await", until=lambda answer: answer.code == 200)
    yield Operation("discovery.resources", "GET", f"/apis/{group}/v1", mode="await", until=lambda answer: answer.code == 200)
    yield Operation("discovery.aggregated", "GET", "/apis", headers={"Accept": AGGREGATED}, mode="await",
                    until=lambda answer: group in str(answer.body), pick=named("items", group))
    yield Operation("openapi.v3", "GET", f"/openapi/v3/apis/{group}/v1", mode="await", until=lambda answer: answer.code == 200)


AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
SCHEMAS = {
    "api/v1": ("core.v1.ConfigMap", "core.v1.Secret", "core.v1.Namespace", "core.v1.ServiceAccount", "core.v1.Service", "core.v1.ServiceSpec"),
    "apis/apps/v1": ("apps.v1.Deployment", "apps.v1.DeploymentSpec", "core.v1.Container", "core.v1.PodSpec"),
    "apis/coordination.k8s.io/v1": ("coordination.v1.Lease", "coordination.v1.LeaseSpec"),
    "apis/rbac.authorization.k8s.io/v1": ("rbac.v1.Role", "rbac.v1.ClusterRoleBinding", "rbac.v1.PolicyRule"),
}
META = [f"io.k8s.apimachinery.pkg.apis.meta.v1.{name}" for name in ("ObjectMeta", "ListMeta", "Status", "DeleteOptions", "OwnerReference", "ManagedFieldsEntry")]
RESOURCES = {"configmaps", "secrets", "namespaces", "namespaces/status", "namespaces/finalize", "services", "services/status", "serviceaccounts",
             "serviceaccounts/token", "events", "deployments", "deployments/status", "deployments/scale", "leases", "roles", "rolebindings", "clusterroles",
             "clusterrolebindings", "customresourcedefinitions", "customresourcedefinitions/status", "subjectaccessreviews", "selfsubjectaccessreviews"}


def named(field, name):
    """Picks the entry of a list that has this name."""
    def pick(body):
        return [each for each in body[field] if (each.get("name") or each.get("metadata", {}).get("name")) == name]
    return pick


def built_in(rng, scope):
    """Discovery and OpenAPI of the built-in kinds that both servers have."""
    for place, names in SCHEMAS.items():
        wanted = [f"io.k8s.api.{name}" for name in names] + META
        yield Operation("openapi.built-in", "GET", f"/openapi/v3/{place}", pick=lambda body, wanted=wanted: {
            name: body["components"]["schemas"].get(name) for name in wanted})
        yield Operation("openapi.index", "GET", "/openapi/v3", pick=lambda body, place=place: sorted(body["paths"].get(place, {})))
    for path in ("/api/v1", "/apis/apps/v1", "/apis/coordination.k8s.io/v1", "/apis/rbac.authorization.k8s.io/v1", "/apis/apiextensions.k8s.io/v1",
                 "/apis/authorization.k8s.io/v1"):
        yield Operation("discovery.built-in", "GET", path, pick=lambda body: {
            **body, "resources": [each for each in body["resources"] if each["name"] in RESOURCES]})
    for group in ("batch", "networking.k8s.io", "policy", "storage.k8s.io", "scheduling.k8s.io", "node.k8s.io", "discovery.k8s.io",
                  "resource.k8s.io", "flowcontrol.apiserver.k8s.io", "admissionregistration.k8s.io", "apps"):
        yield Operation("discovery.built-in", "GET", f"/apis/{group}/v1", pick=lambda body: {
            **body, "resources": [{**each, "storageVersionHash": ""} for each in body["resources"]]})
    for group in ("apps", "rbac.authorization.k8s.io", "coordination.k8s.io", "apiextensions.k8s.io"):
        yield Operation("discovery.group", "GET", f"/apis/{group}")
        yield Operation("discovery.groups", "GET", "/apis", pick=named("groups", group))
    yield Operation("openapi.v2", "GET", "/openapi/v2", pick=lambda body: {
        name: body["definitions"].get(name) for name in ("org.example.diff.v1.Widget", "org.example.diff.v1.Gauge", "io.k8s.api.core.v1.ConfigMap")})


def documents(rng, scope):
    """Discovery and OpenAPI of the standing custom resources."""
    yield Operation("discovery.aggregated", "GET", "/apis", headers={"Accept": AGGREGATED}, pick=named("items", customs.GROUP))
    yield Operation("discovery.group", "GET", f"/apis/{customs.GROUP}")
    for name in ("v1", "v1beta1", "v1alpha1", "v9"):
        yield Operation("discovery.resources", "GET", f"/apis/{customs.GROUP}/{name}")
        yield Operation("openapi.v3", "GET", f"/openapi/v3/apis/{customs.GROUP}/{name}")
    for path in ("/apis/nowhere.example.org", "/apis/nowhere.example.org/v1", "/api/v1/nothings", "/nothing", "/api/v2", "/apis/apps/v9",
                 f"/apis/{customs.GROUP}/v1/nothings", f"/apis/{customs.GROUP}/v1/namespaces/{scope.namespace}/blobs"):
        yield Operation("discovery.missing", "GET", path)
    for each in customs.DEFINITIONS:
        yield Handle(kinds.CRD, each["metadata"]["name"]).get("get.definition")


def versions(rng, scope):
    """One object through several served versions."""
    kind = customs.MULTI
    served = ("v1", "v1beta1", "v1alpha1")
    for index in range(3):
        name = f"{scope.name}-{index}"
        handles = {each: Handle(kind, name, scope.namespace, each) for each in served}
        first = rng.choice(served)
        yield handles[first].create(kind.object(name, version=first, spec={"a": "x", "b": index, "c": "y", "old": "z"}))
        for _ in range(8):
            name_ = rng.choice(served)
            target = handles[name_]
            yield target.get()
            body = kind.object(name, version=name_, spec={rng.choice("abc"): rng.choice(("s", 4))})
            yield target.apply(body, rng.choice(("red", "green")), rng.choice((None, "true")), "patch.versions")
            yield target.patch("application/merge-patch+json", {"spec": {"b": rng.randrange(9)}}, "patch.versions")
        yield Operation("watch.versions multis", "GET", handles["v1beta1"].collection, {"watch": "true", "timeoutSeconds": "1"}, mode="watch")
