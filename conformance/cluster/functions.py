"""A genuine function that runs from its package, and composite resources that change all the while."""

import json
import re
import socket
import ssl
import threading
import urllib.request

import api
import install
from running import NAMESPACE, expect, wait

NAME = "function-auto-ready"
FUNCTION = f"/apis/pkg.crossplane.io/v1/functions/{NAME}"
REVISIONS = "/apis/pkg.crossplane.io/v1/functionrevisions"
KIND = "/apis/example.org/v1/widgets"
WIDGETS = [f"widget-{n}" for n in range(8)]
TRANSOM = "app.kubernetes.io/name=transom"
PORT = 9443

METADATA = {"apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Function", "metadata": {"name": NAME}, "spec": {"capabilities": ["composition"]}}
GO_TEMPLATING = {"apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "metadata": {"name": "function-go-templating"},
                 "spec": {"package": f"xpkg.crossplane.io/crossplane-contrib/function-go-templating:{install.VERSIONS['functions']['function-go-templating']}"}}
DEFINITION = {
    "apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition", "metadata": {"name": "widgets.example.org"},
    "spec": {"scope": "Cluster", "group": "example.org", "names": {"kind": "Widget", "plural": "widgets"}, "versions": [{
        "name": "v1", "served": True, "referenceable": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}]}}
TEMPLATE = """apiVersion: v1
kind: ConfigMap
metadata:
  namespace: default
  annotations:
    gotemplating.fn.crossplane.io/composition-resource-name: map
data:
  size: '{{ .observed.composite.resource.spec.size }}'
"""
# Nothing but the function from the package says that the ConfigMap is ready.
COMPOSITION = {
    "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "widgets"},
    "spec": {"compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "Widget"}, "mode": "Pipeline", "pipeline": [
        {"step": "make", "functionRef": {"name": "function-go-templating"}, "input": {
            "apiVersion": "gotemplating.fn.crossplane.io/v1beta1", "kind": "GoTemplate", "source": "Inline", "inline": {"template": TEMPLATE}}},
        {"step": "ready", "functionRef": {"name": NAME}}]}}


def versions():
    """The older one and the newer one."""
    return install.VERSIONS["older-functions"][NAME], install.VERSIONS["functions"][NAME]


def install_version(cluster, version):
    """Installs a version of the function from a package, and waits until it is healthy. Returns its revision."""
    package = cluster.images.package(NAME, install.function(NAME, version), version, METADATA)
    # Without the annotation, the built-in of this name would be used.
    cluster.apply({"apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "metadata": {"name": NAME, "annotations": {"transom.io/runtime": "Package"}},
                   "spec": {"package": package}})
    wait(f"{package} is healthy", lambda: (cluster.get(FUNCTION) or {}).get("status", {}).get("resolvedPackage", package) == package
         and (cluster.get(FUNCTION) or {}).get("status", {}).get("currentIdentifier") == package and cluster.is_true(FUNCTION, "Healthy"))
    revision = cluster.get(FUNCTION)["status"]["currentRevision"]
    wait(f"{revision} can be called", lambda: cluster.is_true(f"{REVISIONS}/{revision}", "RuntimeHealthy"))
    return revision


def set_up(cluster):
    """The function, the definition, the Composition, and composite resources; what is there already is kept. Returns the current revision."""
    found = cluster.get(FUNCTION)
    if found:
        return found["status"]["currentRevision"]
    revision = install_version(cluster, versions()[0])
    cluster.apply(GO_TEMPLATING, DEFINITION)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=120s", "xrd/widgets.example.org")
    cluster.apply(COMPOSITION)
    cluster.apply(*(widget(name, 0) for name in WIDGETS))
    wait("they are composed", lambda: all(size(cluster, name) == 0 for name in WIDGETS))
    return revision


def widget(name, number):
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": number}}


def conditions(found):
    return {c["type"]: c for c in found.get("status", {}).get("conditions", [])}


def maps(cluster, name):
    """The sizes in what a Widget is composed of."""
    listed = cluster.get(f"/api/v1/namespaces/default/configmaps?labelSelector=crossplane.io/composite={name}")["items"]
    return [int(item["data"]["size"]) for item in listed]


def size(cluster, name):
    """The size that a Widget is composed with, if it is ready and composed of one ConfigMap."""
    found = conditions(cluster.get(f"{KIND}/{name}") or {})
    sizes = maps(cluster, name)
    return sizes[0] if len(sizes) == 1 and all(found.get(kind, {}).get("status") == "True" for kind in ("Ready", "Synced")) else None


class Changes:
    """Changes Widgets all the while, and records conditions that say that one was not composed."""

    def __init__(self, cluster):
        self.cluster, self.number, self.problems, self.is_over = cluster, 0, [], threading.Event()
        self.thread = threading.Thread(target=self.change, daemon=True)

    def __enter__(self):
        self.number = max(max(maps(self.cluster, name), default=0) for name in WIDGETS)
        self.thread.start()
        return self

    def change(self):
        while not self.is_over.is_set():
            self.number += 1
            for name in WIDGETS:
                answer = self.cluster.client.request("PATCH", f"{KIND}/{name}", body=json.dumps({"spec": {"size": self.number}}), headers={"Content-Type": api.MERGE})
                if answer.rejected:
                    self.problems.append(f"{name}: {answer.code} {answer.body}")
                    continue
                self.problems += [f"{name}: {c['type']} is {c['status']}, {c.get('reason')}: {c.get('message')}" for c in conditions(answer.body).values() if c["status"] != "True"]
                self.is_over.wait(0.02)

    def arrive(self, what):
        """Waits until all changes that were made up to now, or later ones, are composed."""
        number = self.number
        wait(what, lambda: all((size(self.cluster, name) or 0) >= number for name in WIDGETS))

    def __exit__(self, kind, *_):
        self.is_over.set()
        self.thread.join()
        if kind is None:
            wait("the last change is composed", lambda: all(size(self.cluster, name) == self.number for name in WIDGETS))


def pods(cluster, selector):
    listed = cluster.get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={selector}")["items"]
    return [pod for pod in listed if not pod["metadata"].get("deletionTimestamp")]


def is_ready(pod):
    return conditions(pod).get("Ready", {}).get("status") == "True"


def calls(cluster):
    """How often the function answered, by where it was called and by gRPC's code, as Transom's metrics say."""
    address = next(pod for pod in pods(cluster, TRANSOM) if is_ready(pod))["status"]["podIP"]
    with urllib.request.urlopen(f"http://{address}:8080/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = {}
    for labels, value in re.findall(r"^function_run_function_response_total\{(.*)\} (\d+)", text, re.M):
        label = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if label["function_name"] == NAME:
            key = (label["grpc_target"], label["grpc_code"])
            found[key] = found.get(key, 0) + int(value)
    return found


def objects_of(cluster, revision):
    """What of a revision's objects is there."""
    paths = {"Deployment": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{revision}", "Service": f"/api/v1/namespaces/{NAMESPACE}/services/{revision}",
             "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{revision}", "Secret": f"/api/v1/namespaces/{NAMESPACE}/secrets/{revision}-tls-server"}
    return {kind for kind, path in paths.items() if cluster.get(path)}


def refuses_strangers(cluster, revision):
    """The function refuses clients without a certificate of the control plane's authority."""
    pod = next(pod for pod in pods(cluster, f"pkg.crossplane.io/revision={revision}") if is_ready(pod))
    anyone = ssl.create_default_context()
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    anyone.set_alpn_protocols(["h2"])
    with socket.create_connection((pod["status"]["podIP"], PORT), timeout=10) as plain:
        try:
            with anyone.wrap_socket(plain) as encrypted:
                encrypted.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
                answer = encrypted.recv(1)
        except ssl.SSLError as refused:
            expect("certificate" in str(refused).lower(), f"refused for another reason: {refused}")
            return
    expect(not answer, "the function answers without a certificate")


def function(cluster):
    revision = set_up(cluster)
    expect(objects_of(cluster, revision) == {"Deployment", "Service", "ServiceAccount", "Secret"}, f"{objects_of(cluster, revision)} of {revision}")
    expect(list(calls(cluster)) == [(f"dns:///{revision}.{NAMESPACE}:{PORT}", "OK")], f"calls: {calls(cluster)}")
    refuses_strangers(cluster, revision)
    with Changes(cluster) as changes:
        changes.arrive("changes are composed by the old version")
        newer = install_version(cluster, versions()[1])
        expect(newer != revision, "a new revision")
        changes.arrive("changes are composed during the upgrade")
        wait(f"what ran {revision} is gone", lambda: not objects_of(cluster, revision) & {"Deployment", "Service", "Secret"})
        wait("its pods are gone", lambda: not cluster.get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=pkg.crossplane.io/revision={revision}")["items"])
        changes.arrive("changes are composed by the new version")
    found = calls(cluster)
    expect(not changes.problems, f"conditions during the upgrade: {changes.problems[:5]}")
    expect({code for _, code in found} == {"OK"}, f"calls that failed: {found}")
    by = [sum(count for (target, _), count in found.items() if f"/{name}." in target) for name in (revision, newer)]
    expect(all(by), f"both versions were called: {found}")
    return f"{changes.number} changes of {len(WIDGETS)} composite resources, {by[0]} calls of {versions()[0]}, {by[1]} of {versions()[1]}, none failed"
