"""Streams through webhooks: admission that denies, changes, warns or breaks, and conversion between versions."""

import kinds
from customs import definition, record, version
from defining import established
from operations import Handle, Operation
from writing import PATCHES

MANNERS = ("allow", "deny", "warn", "label", "broken", "fail")


def hook(scope, manner, rng, **more):
    return {"name": f"{manner}.hooks.example.org", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 10,
            "clientConfig": {"url": "${self.webhooks}/${self.side}/" + manner, "caBundle": "${self.bundle}"},
            "failurePolicy": rng.choice(("Fail", "Ignore")), "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scope.namespace}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}], **more}


def admission(rng, scope):
    """One configuration after the other, each with a round of writes."""
    marker = Handle(kinds.CONFIGMAP, "marker", scope.namespace)
    for index in range(6):
        kind = rng.choice((kinds.VALIDATING, kinds.MUTATING))
        manner = rng.choice(MANNERS) if kind is kinds.MUTATING else rng.choice([each for each in MANNERS if each != "label"])
        more = rng.choice(({}, {}, {"objectSelector": {"matchLabels": {"watched": "yes"}}}, {"matchConditions": [
            {"name": "named", "expression": "request.operation == 'DELETE' || object.metadata.name != 'spared'"}]}, {"sideEffects": "NoneOnDryRun"}))
        configuration = Handle(kind, f"{scope.name}-{index}")
        # A second webhook, on names only, shows when the configuration is in force.
        witness = {**hook(scope, "deny", rng), "name": "witness.hooks.example.org",
                   "matchConditions": [{"name": "marker", "expression": "request.name == 'marker'"}]}
        yield configuration.create(kind.object(configuration.name, webhooks=[hook(scope, manner, rng, **more), witness]), compare=False)
        yield marker.create(kinds.CONFIGMAP.object("marker"), "await.hook", query={"dryRun": "All"}, mode="await",
                            until=lambda answer: "witness" in answer.body.get("message", ""), compare=False)
        yield asked(scope, compare=False)
        for name in ("one", "spared"):
            target = Handle(kinds.CONFIGMAP, name, scope.namespace)
            labels = {"watched": "yes"} if rng.random() < 0.5 else None
            yield target.create(kinds.CONFIGMAP.make(rng, name, labels), f"create.{manner}", query=rng.choice(({}, {}, {"dryRun": "All"})))
            yield target.patch(PATCHES["merge"], {"data": {"touched": str(index)}}, f"patch.{manner}")
            yield target.apply(kinds.CONFIGMAP.object(name, data={"applied": str(index)}), "red", "true", f"patch.{manner}")
            yield target.get()
            yield target.delete(what=f"delete.{manner}")
        yield asked(scope)
        yield configuration.delete(compare=False)
        yield marker.create(kinds.CONFIGMAP.object("marker"), "await.unhook", query={"dryRun": "All"}, mode="await",
                            until=lambda answer: answer.code == 201, compare=False)


VALIDATIONS = (
    {"expression": "!has(object.data) || size(object.data) < 3", "message": "too large"},
    {"expression": "object.metadata.name != 'spared'", "messageExpression": "'not ' + object.metadata.name", "reason": "Forbidden"},
    {"expression": "object.data.k0 == 'alpha'"},
    {"expression": "variables.keys.exists(k, k == 'k1')", "message": "needs k1", "reason": "RequestEntityTooLarge"},
    {"expression": "request.operation == 'CREATE' || oldObject.metadata.name == object.metadata.name"},
)


def policies(rng, scope):
    """One policy with its binding after the other, each with a round of writes."""
    marker = Handle(kinds.CONFIGMAP, "marker", scope.namespace)
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scope.namespace}}}
    for index in range(4):
        name = f"{scope.name}-{index}"
        # The last validation shows when the policy is in force.
        spec = {"matchConstraints": {"resourceRules": rules}, "failurePolicy": rng.choice(("Fail", "Ignore")),
                "variables": [{"name": "keys", "expression": "has(object.data) ? object.data.map(k, k) : []"}],
                "validations": [*rng.sample(VALIDATIONS, 2), {"expression": "object.metadata.name != 'marker'", "message": "witness"}]}
        policy, binding = Handle(kinds.POLICY, name), Handle(kinds.POLICY_BINDING, name)
        yield policy.create(kinds.POLICY.object(name, spec=spec), "create.policy", compare=False)
        actions = rng.choice((["Deny"], ["Deny"], ["Deny", "Audit"]))
        yield binding.create(kinds.POLICY_BINDING.object(name, spec={"policyName": name, "validationActions": actions, "matchResources": here}), compare=False)
        yield marker.create(kinds.CONFIGMAP.object("marker"), "await.policy", query={"dryRun": "All"}, mode="await",
                            until=lambda answer: answer.code >= 400, compare=False)
        for each in ("one", "spared"):
            target = Handle(kinds.CONFIGMAP, each, scope.namespace)
            yield target.create(kinds.CONFIGMAP.make(rng, each), "create.policed", query=rng.choice(({}, {}, {"dryRun": "All"})))
            yield target.patch(PATCHES["merge"], {"data": {"k1": "x"}}, "patch.policed")
            yield target.apply(kinds.CONFIGMAP.object(each, data={"k0": "alpha", "k1": str(index)}), "red", "true", "patch.policed")
            yield target.get()
            yield target.delete()
        yield binding.delete(compare=False)
        yield policy.delete(compare=False)
        yield marker.create(kinds.CONFIGMAP.object("marker"), "await.unpoliced", query={"dryRun": "All"}, mode="await",
                            until=lambda answer: answer.code == 201, compare=False)


def asked(scope, **more):
    """What the webhooks were asked since the last time."""
    return Operation("webhook.asked", "TAKE", scope.namespace, mode="asked", **more)


def conversion(rng, scope):
    """A kind whose versions are converted by a webhook."""
    group = f"{scope.name}.example.org"
    schemas = {name: record({"spec": record({field: {"type": "integer"}, "note": {"type": "string"}}), "status": record({"ok": {"type": "boolean"}})})
               for name, field in (("v1", "size"), ("v2", "width"))}
    body = definition("shapes", "Shape", [version("v1", schemas["v1"], subresources={"status": {}}),
                                          version("v2", schemas["v2"], storage=False, subresources={"status": {}})], group=group)
    body["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {
        "url": "${self.webhooks}/${self.side}/convert", "caBundle": "${self.bundle}"}}}
    crd = Handle(kinds.CRD, f"shapes.{group}")
    shape = kinds.Kind(group, "v1", "shapes", "Shape")
    yield crd.create(body, compare=False)
    yield crd.get("get.established", mode="await", until=established, compare=False)
    names = {"v1": "size", "v2": "width"}
    for each in names:
        yield Operation("await.served", "GET", shape.collection(scope.namespace, each), mode="await", until=lambda answer: answer.code == 200, compare=False)
    for index in range(3):
        name = f"shape-{index}"
        at = {each: Handle(shape, name, scope.namespace, each) for each in names}
        first = rng.choice(("v1", "v2"))
        yield at[first].create(shape.object(name, version=first, spec={names[first]: index}), "create.converted")
        for _ in range(5):
            each = rng.choice(("v1", "v2"))
            yield at[each].get("get.converted")
            yield at[each].patch(PATCHES["merge"], {"spec": {names[each]: rng.randrange(9)}}, "patch.converted")
            yield at[each].apply(shape.object(name, version=each, spec={"note": rng.choice(("n", "m"))}), rng.choice(("red", "blue")), "true", "patch.converted")
            yield at[each].patch(PATCHES["merge"], {"status": {"ok": True}}, "patch.converted", "/status")
        yield Operation("list.converted shapes", "GET", at["v2"].collection)
        yield Operation("watch.converted shapes", "GET", at["v2"].collection, {"watch": "true", "timeoutSeconds": "1"}, mode="watch")
    yield at["v1"].patch(PATCHES["merge"], {"spec": {"note": "unconvertible"}}, "patch.unconvertible")
    yield at["v2"].get("get.unconvertible")
    yield Operation("list.unconvertible shapes", "GET", at["v2"].collection)
    yield crd.delete(compare=False)
