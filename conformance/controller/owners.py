"""Change of owner: what the real Crossplane made is taken over by Transom without a write, and given back.

Crossplane runs as in `planes.py`. What it writes when it comes back cannot be counted by requests, because it applies
everything again in every reconcile; there, versions of objects are compared.
"""

import json
import time
import urllib.request

import install
import planes
import servers
from platforms import settled
from running import changes, expect, wait

GROUP = "example.org"
INPUT = {"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources"}


def definition(plural, kind, scope, claim=None):
    spec = {"group": GROUP, "names": {"plural": plural, "kind": kind}, "versions": [{
        "name": "v1", "served": True, "referenceable": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"text": {"type": "string", "default": "-"}, "count": {"type": "integer"}}},
            "status": {"type": "object", "properties": {"text": {"type": "string"}}}}}}}]}
    if scope:
        spec["scope"] = scope
    if claim:
        spec["claimNames"] = {"plural": claim[0], "kind": claim[1]}
        spec["connectionSecretKeys"] = ["url"]
    version = "v2" if scope and scope != "LegacyCluster" else "v1"
    return {"apiVersion": f"apiextensions.crossplane.io/{version}", "kind": "CompositeResourceDefinition",
            "metadata": {"name": f"{plural}.{GROUP}"}, "spec": spec}


def resource(name, base, *patches, **more):
    from_text = {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.text", "toFieldPath": "data.text"}
    return {"name": name, "base": base, "patches": list(patches) or [from_text], "readinessChecks": [{"type": "None"}], **more}


def config_map(namespaced=False):
    return {"apiVersion": "v1", "kind": "ConfigMap", **({} if namespaced else {"metadata": {"namespace": "default"}}), "data": {"fixed": "1"}}


def composition(name, kind, resources, environment=False):
    return {"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": name, "labels": {"of": kind.lower()}},
            "spec": {"compositeTypeRef": {"apiVersion": f"{GROUP}/v1", "kind": kind}, "mode": "Pipeline",
                     "pipeline": [{"step": "compose", "functionRef": {"name": planes.FUNCTION}, "input": {**INPUT, "resources": resources}}]}}


TO_STATUS = {"type": "ToCompositeFieldPath", "fromFieldPath": "data.text", "toFieldPath": "status.text"}
FROM_TEXT = {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.text", "toFieldPath": "data.text"}
NESTED_TEXT = {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.text", "toFieldPath": "spec.text"}
PLATFORM = [
    definition("apps", "App", "Namespaced"),
    definition("sites", "Site", "Cluster"),
    definition("xbuckets", "XBucket", None, ("buckets", "Bucket")),
    definition("xteams", "XTeam", None, ("teams", "Team")),
]
COMPOSITIONS = [
    composition("apps", "App", [resource("one", config_map(True), FROM_TEXT, TO_STATUS), resource("two", config_map(True))]),
    composition("sites", "Site", [resource(f"map-{n}", config_map()) for n in range(3)]),
    composition("xbuckets", "XBucket", [resource("map", config_map(), connectionDetails=[{"name": "url", "type": "FromValue", "value": "x"}])]),
    composition("xteams", "XTeam", [
        resource("bucket", {"apiVersion": f"{GROUP}/v1", "kind": "XBucket"}, NESTED_TEXT),
        resource("map", config_map(), FROM_TEXT, TO_STATUS)]),
]


def shape(n):
    """Composite resources and claims of all shapes, in turn."""
    name, text = f"x{n}", f"t{n}"
    base = {"apiVersion": f"{GROUP}/v1", "metadata": {"name": name, "labels": {"n": str(n % 7)}}, "spec": {"text": text}}
    kinds = [
        ("apps", {**base, "kind": "App"}, True),
        ("sites", {**base, "kind": "Site", "spec": {"text": text, "crossplane": {"compositionUpdatePolicy": "Manual"}}}, False),
        ("buckets", {**base, "kind": "Bucket", "spec": {"text": text, "writeConnectionSecretToRef": {"name": f"secret-{n}"}}}, True),
        ("teams", {**base, "kind": "Team", "spec": {"text": text, "compositionSelector": {"matchLabels": {"of": "xteam"}}}}, True),
        ("xbuckets", {**base, "kind": "XBucket", "metadata": {"name": f"direct-{n}", "annotations": {"team": "x"}}}, False),
        ("apps", {**base, "kind": "App", "metadata": {"name": f"other-{n}", "annotations": {"crossplane.io/composition-resource-name": "odd"}},
                  "spec": {"text": text, "crossplane": {"compositionRef": {"name": "apps"}}}}, True),
    ]
    plural, found, namespaced = kinds[n % len(kinds)]
    if namespaced:
        found["metadata"]["namespace"] = "default"
    return plural, found


def versions(cluster):
    """The resourceVersion of everything that counts."""
    found = {}
    for path in (*(f"/apis/{GROUP}/v1/{plural}" for plural in ("apps", "sites", "xbuckets", "buckets", "xteams", "teams")),
                 "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/secrets",
                 "/apis/apiextensions.crossplane.io/v1/compositionrevisions", "/apis/apiextensions.crossplane.io/v1/compositions",
                 "/apis/apiextensions.crossplane.io/v1/compositeresourcedefinitions", "/apis/pkg.crossplane.io/v1/functionrevisions",
                 "/apis/pkg.crossplane.io/v1/functions"):
        for item in cluster.get(path)["items"]:
            meta = item["metadata"]
            found[f"{path.rsplit('/', 1)[1]}/{meta.get('namespace', '')}/{meta['name']}"] = (meta["uid"], meta["resourceVersion"], item)
    return found


def changed(before, after):
    """What was created, deleted, replaced or changed, with the fields."""
    shown = []
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old is None or new is None or old[0] != new[0]:
            shown.append(f"{key}: {'created' if old is None else 'deleted' if new is None else 'replaced'}")
        elif old[1] != new[1]:
            shown.append(f"{key}: {differing(old[2], new[2])}")
    return shown


def differing(old, new, path=""):
    if isinstance(old, dict) and isinstance(new, dict):
        parts = (differing(old.get(k), new.get(k), f"{path}.{k}") for k in sorted(old.keys() | new.keys()) if k != "resourceVersion")
        return "; ".join(part for part in parts if part)
    return "" if old == new else f"{path}: {json.dumps(old)[:300]} -> {json.dumps(new)[:300]}"


def start_crossplane(cluster, user, folder, certificates):
    installed, probes = install.crossplane(), servers.free_port()
    child = cluster.processes.start(
        f"crossplane-{user}", installed / "crossplane", "core", "start", "--namespace", planes.NAMESPACE, "--enable-webhooks=false",
        "--package-runtime=External", "--xpkg-cache-dir", folder, "--xfn-cache-dir", folder, "--tls-client-certs-dir", certificates,
        "--metrics-port", servers.free_port(), "--health-probe-port", probes, KUBECONFIG=str(cluster.kubeconfig(user)))

    def ready():
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{probes}/readyz").status == 200
        except OSError:
            return False
    wait("crossplane is ready", ready)
    return child


def end(cluster, child):
    child.terminate()
    child.wait(30)
    cluster.processes.children = [(n, c, log) for n, c, log in cluster.processes.children if c is not child]


def all_ready(cluster, objects):
    listed = {}
    for plural in {plural for plural, _ in objects}:
        for item in cluster.get(f"/apis/{GROUP}/v1/{plural}")["items"]:
            conditions = {c["type"]: c["status"] for c in item.get("status", {}).get("conditions", [])}
            listed[(plural, item["metadata"]["name"])] = conditions.get("Ready") == "True" and conditions.get("Synced") == "True"
    return all(listed.get((plural, o["metadata"]["name"])) for plural, o in objects)


def owners(cluster, options):
    folder = cluster.processes.folder / "crossplane"
    folder.mkdir()
    certificates = planes.make_certificates(folder)
    address = f"127.0.0.1:{servers.free_port()}"
    cluster.processes.start("function", install.function(f"function-{planes.FUNCTION}"), "--address", address, "--tls-certs-dir", certificates)
    installed = install.crossplane()
    cluster.kubectl("delete", "namespace", planes.NAMESPACE, "--timeout=60s")
    planes.initialise(installed, cluster.server, folder)
    planes.install_function(cluster.client, address)
    crossplane = start_crossplane(cluster, "b", folder, certificates)
    cluster.apply(*PLATFORM)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=120s", "xrd", "--all")
    cluster.apply(*COMPOSITIONS)
    objects = [shape(n) for n in range(options.count)]
    for at in range(0, len(objects), 50):
        cluster.apply(*(o for _, o in objects[at:at + 50]))
    wait("Crossplane made all of them", lambda: all_ready(cluster, objects), within=600, every=1)
    time.sleep(5)
    end(cluster, crossplane)
    made = versions(cluster)
    # What would change, beforehand.
    checked = cluster.transom("adopt", "--check", "--container-runtime", "none", fails=None)
    # The CRDs of definitions get the fields that Transom adds to a status; see docs/migrating.md.
    touched = [line for line in checked.splitlines() if line.split(" ")[0] in ("POST", "PUT", "PATCH", "DELETE") and "/customresourcedefinitions/" not in line]
    expect(not touched and " 0 objects that are not supported." in checked, f"adopt --check:\n{checked}")
    expect(not changed(made, versions(cluster)), "adopt --check wrote")
    # To Transom.
    mark = cluster.audited()
    transom = cluster.start("a")
    settled(cluster, "a", quiet=5)
    of_definitions = ("customresourcedefinitions", "managedresourceactivationpolicies")
    # What its own webhooks are served with is not an object of the platform.
    own = "secrets crossplane-system/transom-webhook-certificates"
    written = [line for line in changes(cluster.requests("a", write=True, since=mark)) if line.split()[1].split("/")[0] not in of_definitions and own not in line]
    moved = changed(made, versions(cluster))
    expect(not written and not moved, "Transom wrote:\n" + "\n".join([f"{len(written)} requests", *written[:20], *moved[:40]]))
    # A change under Transom, and back to Crossplane.
    for at, (plural, o) in enumerate(objects[:12]):
        o["spec"]["text"] = f"changed-{at}"
    cluster.apply(*(o for _, o in objects[:12]))
    text = lambda o: cluster.kubectl("get", "configmaps", "-n", "default", "-o", "json").count(o["spec"]["text"])  # noqa: E731
    wait("Transom composed the changes", lambda: all(text(o) for _, o in objects[:12]) and all_ready(cluster, objects))
    settled(cluster, "a", quiet=3)
    expect(transom.stop() == 0, "a stop by SIGTERM ends with 0")
    by_transom = versions(cluster)
    planes_init = cluster.audited()
    planes.initialise_again(installed, cluster.server, folder)
    crossplane = start_crossplane(cluster, "c", folder, certificates)
    time.sleep(20)
    moved = [line for line in changed(by_transom, versions(cluster)) if not line.startswith("compositeresourcedefinitions")]
    expect(not moved, "Crossplane changed what Transom left:\n" + "\n".join(moved[:40]))
    end(cluster, crossplane)
    requests = len(cluster.requests("a", since=mark))
    return f"{len(made)} objects of {options.count} composite resources and claims; {requests} requests by Transom; {planes_init - mark} bytes of audit log"
