"""One process: the scenarios that `transom up` passes as well."""

import json
import time

from running import ROOT, changes, expect, wait

EXAMPLE = ROOT / "examples/platform"
CLAIMS = "/apis/platform.example.org/v1/namespaces/default"


def install(cluster):
    """The README's platform."""
    cluster.kubectl("apply", "-f", EXAMPLE / "functions.yaml", "-f", EXAMPLE / "definitions.yaml")
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=120s", "xrd", "--all")
    cluster.kubectl("apply", "-f", EXAMPLE / "compositions.yaml")


def use(cluster):
    cluster.kubectl("apply", "-f", EXAMPLE / "use.yaml")
    cluster.kubectl("wait", "--for=condition=Ready", "--timeout=120s", "platform/team-a", "app/shop")


def platform(cluster, _):
    controller = cluster.start("a")
    status, body = controller.probe("/livez")
    expect((status, body) == (200, "ok"), f"/livez: {status} {body}")
    expect("workqueue_depth" in controller.probe("/metrics")[1], "no metrics of queues")
    install(cluster)
    use(cluster)
    composed = cluster.kubectl("get", "xplatforms,xnetworks,nopresources", "-o", "name").split()
    expect(len(composed) >= 3, f"composed: {composed}")
    # Again, changed, and deleted.
    use(cluster)
    cluster.kubectl("patch", "app", "shop", "--type=merge", "-p", '{"spec": {"image": "shop:2.0"}}')
    wait("the change arrived", lambda: "shop:2.0" in cluster.kubectl("get", "configmaps,nopresources,apps", "-A", "-o", "json"))
    cluster.kubectl("delete", "platform/team-a", "app/shop", "--timeout=120s")
    wait("all composed resources are gone", lambda: "nopresource" not in cluster.kubectl("get", "xplatforms,xnetworks,nopresources", "-o", "name"))
    expect(controller.stop() == 0, "a stop by SIGTERM ends with 0")
    return None


def rest(cluster, _):
    controller = cluster.start("a")
    install(cluster)
    use(cluster)
    settled(cluster, "a")
    mark = cluster.audited()
    time.sleep(5)
    quiet = [e for e in cluster.requests("a", since=mark) if e.get("objectRef", {}).get("resource") != "leases" and e["verb"] != "watch"]
    expect(not quiet, f"requests at rest: {[(e['verb'], e['requestURI']) for e in quiet]}")
    expect(controller.stop() == 0, "a stop by SIGTERM ends with 0")
    mark = cluster.audited()
    cluster.start("b")
    settled(cluster, "b")
    written = changes(cluster.requests("b", write=True, since=mark))
    expect(not written, f"another process writes what is there already: {written}")
    return None


def settled(cluster, user, quiet=2.0):
    """Waits until a user has written nothing but Leases for a while."""
    last, since = None, time.monotonic()
    while time.monotonic() - since < quiet:
        now = len(changes(cluster.requests(user, write=True)))
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.2)


def usages(cluster, _):
    cluster.start("a")
    cluster.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "used", "namespace": "default"}},
        {"apiVersion": "protection.crossplane.io/v1beta1", "kind": "Usage", "metadata": {"name": "keep", "namespace": "default"},
         "spec": {"of": {"apiVersion": "v1", "kind": "ConfigMap", "resourceRef": {"name": "used"}}, "reason": "for the test"}})
    path = "/apis/protection.crossplane.io/v1beta1/namespaces/default/usages/keep"
    wait("the usage is ready", lambda: cluster.is_true(path, "Ready"))
    used = cluster.get("/api/v1/namespaces/default/configmaps/used")
    expect(used["metadata"]["labels"].get("crossplane.io/in-use") == "true", f"labels: {used['metadata']}")
    refused = cluster.kubectl("delete", "configmap", "used", fails=True)
    expect("admission webhook \"nousages.protection.crossplane.io\" denied the request" in refused and "in-use by 1 usage" in refused, refused)
    cluster.kubectl("delete", "usages.protection.crossplane.io/keep", "--timeout=60s")
    wait("the label is gone", lambda: "crossplane.io/in-use" not in (cluster.get("/api/v1/namespaces/default/configmaps/used")["metadata"].get("labels") or {}))
    cluster.kubectl("delete", "configmap", "used")
    # Mistakes are refused before they are stored.
    for broken, why in (
            ({"apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "metadata": {"name": "f"}, "spec": {"package": "xpkg.crossplane.io/a/b"}}, "spec.package"),
            ({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "c"}, "spec": {
                "compositeTypeRef": {"apiVersion": "v1", "kind": "Thing"}, "mode": "Pipeline",
                "pipeline": [{"step": "a", "functionRef": {"name": "f"}}]}}, "validation.transom.io")):
        refused = cluster.kubectl("apply", "-f", "-", stdin=json.dumps(broken), fails=True)
        expect(why in refused, refused)
    return None


def certificates(cluster, _):
    """Certificates of a few seconds, while deletions go on."""
    cluster.start("a", "--webhook-certificate-lifetime", "12s")
    path = "/api/v1/namespaces/crossplane-system/secrets/transom-webhook-certificates"
    seen, refusals = set(), 0
    cluster.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "used", "namespace": "default"}},
        {"apiVersion": "protection.crossplane.io/v1beta1", "kind": "Usage", "metadata": {"name": "keep", "namespace": "default"},
         "spec": {"of": {"apiVersion": "v1", "kind": "ConfigMap", "resourceRef": {"name": "used"}}, "reason": "for the test"}})
    wait("the usage is ready", lambda: cluster.is_true("/apis/protection.crossplane.io/v1beta1/namespaces/default/usages/keep", "Ready"))
    deadline = time.monotonic() + 60
    while len(seen) < 6 and time.monotonic() < deadline:
        data = cluster.get(path)["data"]
        seen.add((data["ca.crt"], data["tls.crt"]))
        answer = cluster.client.request("DELETE", "/api/v1/namespaces/default/configmaps/used", body="{}")
        expect(answer.code == 409, f"after {len(seen)} certificates: {answer.code} {answer.body}")
        refusals += 1
        time.sleep(0.2)
    authorities = len({authority for authority, _ in seen})
    expect(len(seen) >= 6 and authorities >= 2, f"{len(seen)} certificates of {authorities} authorities")
    return f"{len(seen)} certificates of {authorities} authorities, {refusals} deletions refused"
