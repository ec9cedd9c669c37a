"""Installing Transom by one command, what works then, and removing it."""

import json

import sharing
from running import NAMESPACE, expect, wait

AUTHORITY = "registry-authority"  # a ConfigMap, with the key of the same name
CONFIG_MAPS = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]}
# What can be left of an installation, and whether it is namespaced.
KINDS = ("clusterroles,clusterrolebindings,validatingwebhookconfigurations,mutatingwebhookconfigurations,deployments,replicasets,pods,services,"
         "endpointslices,serviceaccounts,secrets,configmaps,roles,rolebindings,leases")
# What stays after `transom uninstall`, by how its name begins: the roles that people have by definitions, the authority of certificates and
# the certificate to call functions with, the Lease that Crossplane uses as well, and what Kubernetes puts into every namespace.
STAYS = {"Lease": ("crossplane-leader-election-core",), "ClusterRole": ("crossplane",), "ClusterRoleBinding": ("crossplane",), "Secret": ("crossplane-root-ca", "crossplane-tls-client"),
         "ServiceAccount": ("default",), "ConfigMap": ("kube-root-ca.crt",)}


def objects(cluster):
    """All objects of KINDS, as kind, namespace and name."""
    items = json.loads(cluster.kubectl("get", KINDS, "-A", "-o", "json"))["items"]
    return {(item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in items}


def installs(cluster):
    cluster.before = objects(cluster)
    cluster.images.push_pause()
    image = cluster.images.push_transom()
    values = {
        "metrics": {"enabled": True}, "composedResources": [CONFIG_MAPS], "registryCaBundleConfig": {"name": AUTHORITY, "key": AUTHORITY},
        "extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": AUTHORITY, "namespace": NAMESPACE},
                          "data": {AUTHORITY: cluster.images.authority.read_text()}}]}
    (cluster.folder / "values.json").write_text(json.dumps(values))
    manifests = cluster.transom("install", "--image", image, "-f", cluster.folder / "values.json")
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=manifests)
    cluster.kubectl("rollout", "status", "-n", NAMESPACE, "deployment/transom", "--timeout=180s")
    sharing.install(cluster)
    cluster.apply(sharing.thing("one", "1"))
    wait("it is composed", lambda: sharing.composed(cluster, "one", "1"))
    cluster.apply(sharing.thing("one", "2"))
    wait("a change is composed", lambda: sharing.composed(cluster, "one", "2"))
    protects(cluster)
    denied = {e["requestURI"].split("?")[0] for e in cluster.requests(f"system:serviceaccount:{NAMESPACE}:transom") if e.get("responseStatus", {}).get("code") == 403}
    expect(not denied, f"requests without a right: {denied}")


def protects(cluster):
    """The API server asks the webhook, through its Service, before it deletes what is used."""
    path = "/apis/protection.crossplane.io/v1beta1/namespaces/default/usages/keep"
    cluster.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "used", "namespace": "default"}},
        {"apiVersion": "protection.crossplane.io/v1beta1", "kind": "Usage", "metadata": {"name": "keep", "namespace": "default"},
         "spec": {"of": {"apiVersion": "v1", "kind": "ConfigMap", "resourceRef": {"name": "used"}}, "reason": "for the test"}})
    wait("the usage is ready", lambda: cluster.is_true(path, "Ready"))
    refused = cluster.kubectl("delete", "configmap", "used", fails=True)
    expect("denied the request" in refused and "in-use by 1 usage" in refused, refused)
    cluster.kubectl("delete", "usages.protection.crossplane.io/keep", "--timeout=60s")
    cluster.kubectl("delete", "configmap", "used")
    refused = cluster.kubectl("apply", "-f", "-", fails=True, stdin=json.dumps(
        {"apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "metadata": {"name": "f"}, "spec": {"package": "xpkg.crossplane.io/a/b"}}))
    expect("spec.package" in refused, refused)


def removal(cluster):
    kept = {name for kind, namespace, name in objects(cluster) if (kind, namespace) == ("ConfigMap", "default")} - {"kube-root-ca.crt"}
    expect(len(kept) >= 4, f"composed: {kept}")
    for kind in ("functions.pkg.crossplane.io", "providers.pkg.crossplane.io"):
        cluster.kubectl("delete", kind, "--all", "--timeout=120s")

    def runs():
        return {f"{kind} {name}" for kind, namespace, name in objects(cluster)
                if namespace == NAMESPACE and kind in ("Deployment", "Service", "ServiceAccount", "Pod") and name != "default" and not name.startswith("transom")}
    wait_empty("what ran packages goes with them", runs)
    removed = cluster.transom("uninstall")
    expect("removed   Deployment transom" in removed.splitlines(), removed)

    def left():
        new = objects(cluster) - cluster.before
        return {f"{kind} {namespace}/{name}" for kind, namespace, name in new
                if not name.startswith(STAYS.get(kind, ())) and (kind, namespace) != ("ConfigMap", "default") and not namespace.startswith("kube-")}
    wait_empty("nothing that was installed is left", left)
    now = {name for kind, namespace, name in objects(cluster) if (kind, namespace) == ("ConfigMap", "default")}
    expect(kept <= now, f"what was composed stays: {kept - now} is gone")
    expect("removed" not in cluster.transom("uninstall"), "nothing is left to remove")
    return f"{len(removed.splitlines())} objects removed, {len(kept)} composed ones stay"


def wait_empty(what, listed, within=60):
    try:
        wait(what, lambda: not listed(), within, every=0.5)
    except Exception as error:
        raise type(error)(f"{error}: {sorted(listed())}") from None
