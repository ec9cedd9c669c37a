"""What a control plane holds of packages, in a form that two planes can be compared in.

Left out is what only a server knows (uids, versions, times, generations), who wrote a field, and the wording of messages. Each
object becomes a map from paths to values; events become the reasons that were reported for an object.
"""

import json

PKG, EXT, CRD = "/apis/pkg.crossplane.io", "/apis/apiextensions.crossplane.io", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS = {
    "Configuration": f"{PKG}/v1/configurations", "ConfigurationRevision": f"{PKG}/v1/configurationrevisions", "Lock": f"{PKG}/v1beta1/locks",
    "CompositeResourceDefinition": f"{EXT}/v2/compositeresourcedefinitions", "Composition": f"{EXT}/v1/compositions", "CustomResourceDefinition": CRD,
}
OF_SERVER = {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "lastTransitionTime", "observedGeneration",
             "message", "lastUpdateTime", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"}


def take(client, group):
    """Everything about packages, and the definitions and Compositions of one API group: object → path → value."""
    objects = {}
    for kind, path in KINDS.items():
        answer = client.request("GET", path)
        for item in answer.body.get("items", []) if answer.code == 200 else []:
            name = item["metadata"]["name"]
            if kind in ("CompositeResourceDefinition", "Composition", "CustomResourceDefinition") and not name.endswith(group):
                continue
            if kind == "CustomResourceDefinition":
                # Its schema is the business of other suites.
                item = {"metadata": item["metadata"]}
            objects[f"{kind}/{name}"] = flat(item)
    for told in events(client):
        objects.setdefault("events", {})[told] = "told"
    return objects


def events(client):
    for item in client.request("GET", "/api/v1/events").body.get("items", []):
        about = item["involvedObject"]
        if about.get("apiVersion", "").startswith("pkg.crossplane.io"):
            yield f"{about['kind']}/{about['name']} {item['type']} {item['reason']}"


def flat(value, path=""):
    """Paths to leaves. Conditions are named by their type, references and owners by what they name."""
    if isinstance(value, dict) and value:
        found = {}
        for key, inner in value.items():
            if key not in OF_SERVER:
                found.update(flat(inner, f"{path}.{key}" if path else key))
        return found
    if isinstance(value, list) and value:
        found = {}
        for number, inner in enumerate(value):
            found.update(flat(inner, f"{path}[{named(inner, number)}]"))
        return found
    return {path: value}


def named(item, number):
    if isinstance(item, dict):
        for key in ("type", "kind"):
            if key in item and "status" in item:
                return item[key]
        if "kind" in item and "name" in item:
            return f"{item['kind']}/{item['name']}"
    return str(number)


def differences(real, transom):
    """Lines `object path: real -> transom`."""
    for name in sorted({*real, *transom}):
        if name not in real or name not in transom:
            yield f"{name}: {'present' if name in real else 'absent'} -> {'present' if name in transom else 'absent'}"
            continue
        for path in sorted({*real[name], *transom[name]}):
            one, two = real[name].get(path, "absent"), transom[name].get(path, "absent")
            if one != two:
                yield f"{name} {path}: {json.dumps(one)} -> {json.dumps(two)}"
