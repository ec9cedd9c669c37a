"""`provider-kubernetes`: the genuine one and ours on the same manifests, each against an API server of its own that begins empty.

Both get the same CRDs (those of the genuine package) and the same ProviderConfigs, which lead back to the server by a kubeconfig in a
Secret. What they made is compared: the objects with their managers and finalizers, the connection secrets, the members of collections,
and the conditions. Then ours takes over from the genuine one, and must not write any object that is as it should be.
"""

import json
import pathlib
import re
import socket
import subprocess

import api
import cargo
import install
import servers
import suite

NAME = "provider-kubernetes"
LEGACY, MODERN = "kubernetes.crossplane.io", "kubernetes.m.crossplane.io"
OBJECTS = f"/apis/{LEGACY}/v1alpha2/objects"
MODERN_OBJECTS = f"/apis/{MODERN}/v1alpha1/namespaces/default/objects"
COLLECTIONS = f"/apis/{LEGACY}/v1alpha1/observedobjectcollections"
MODERN_COLLECTIONS = f"/apis/{MODERN}/v1alpha1/namespaces/default/observedobjectcollections"
MAPS, SECRETS = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/secrets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLL = {"crossplane.io/poll-interval": "1s"}
# Where the genuine one listens, for metrics and as webhook.
PORTS = (8080, 9443)


def configmap(name, **data):
    """Never without data: the genuine one cannot observe an object of which it applied no field."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data or {"of": name}}


def managed(name, manifest, modern=False, **spec):
    metadata = {"name": name, "annotations": POLL, **({"namespace": "default"} if modern else {})}
    version = f"{MODERN}/v1alpha1" if modern else f"{LEGACY}/v1alpha2"
    return {"apiVersion": version, "kind": "Object", "metadata": metadata, "spec": {"forProvider": {"manifest": manifest}, **spec}}


def collection(name, modern=False):
    metadata = {"name": name, **({"namespace": "default"} if modern else {})}
    observe = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "selector": {"matchLabels": {"team": "a"}}}
    return {"apiVersion": f"{MODERN if modern else LEGACY}/v1alpha1", "kind": "ObservedObjectCollection", "metadata": metadata,
            "spec": {"observeObjects": observe, "objectTemplate": {"metadata": {"labels": {"of": name}}}}}


def reading(name, kind, path, **more):
    return {"apiVersion": "v1", "kind": kind, "namespace": "default", "name": name, "fieldPath": path, **more}


SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "word", "namespace": "default"}, "data": {"word": "c2VzYW1l"}}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
           "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}, {"name": "tls", "port": 443}]}}
CEL = {"policy": "DeriveFromCelQuery"}
# Each with the status of Ready and of Synced in the end.
OBJECTS_AND_CONDITIONS = [
    (managed("plain", configmap("plain", a="1")), "True", "True"),
    (managed("defaulted", SERVICE), "True", "True"),
    (managed("observed", configmap("existing", a="wanted"), managementPolicies=["Observe"]), "True", "True"),
    (managed("missing", configmap("missing"), managementPolicies=["Observe"]), None, "False"),
    (managed("adopted", configmap("adopted", a="2")), "True", "True"),
    (managed("copied", configmap("copied", b="1"), references=[{"patchesFrom": {k: v for k, v in reading("existing", "ConfigMap", "data.a").items()}}]), "True", "True"),
    (managed("depends", configmap("depends"), references=[{"dependsOn": {"name": "plain"}}]), "True", "True"),
    (managed("waits", configmap("waits"), references=[{"dependsOn": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "nowhere"}}]), None, "False"),
    (managed("all-true", configmap("all-true"), readiness={"policy": "AllTrue"}), "False", "True"),
    (managed("derived", configmap("derived"), readiness={"policy": "DeriveFromObject"}), "False", "True"),
    (managed("cel-true", configmap("cel-true", a="1"), readiness={**CEL, "celQuery": "object.data.a == '1'"}), "True", "True"),
    (managed("cel-wrong", configmap("cel-wrong"), readiness={**CEL, "celQuery": "object.data.absent == '1'"}), "False", "True"),
    (managed("details", SECRET, connectionDetails=[reading("word", "Secret", "data.word", toConnectionSecretKey="word"), reading("plain", "ConfigMap", "data.a", toConnectionSecretKey="a")],
             writeConnectionSecretToRef={"name": "details", "namespace": "default"}), "True", "True"),
    (managed("unknown", {"apiVersion": "example.org/v1", "kind": "Unknown", "metadata": {"name": "x"}}), None, "False"),
    (managed("modern", configmap("modern", a="1"), modern=True, writeConnectionSecretToRef={"name": "modern"}, connectionDetails=[reading("plain", "ConfigMap", "data.a", toConnectionSecretKey="a")]), "True", "True"),
    (managed("modern-observed", configmap("existing"), modern=True, managementPolicies=["Observe"]), "True", "True"),
    (managed("modern-config", configmap("modern-config"), modern=True, providerConfigRef={"kind": "ProviderConfig", "name": "mine"}), "True", "True"),
]


class Comparison:
    """An API server, on which one of the two works."""

    def __init__(self, folder, processes):
        folder.mkdir()
        self.folder, self.client = folder, api.Client(plane(folder, processes))
        self.kubeconfig = folder / "kubeconfig"
        self.process = None
        # The genuine one serves a webhook, whatever its CRDs say.
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=webhook", "-keyout", folder / "tls.key", "-out", folder / "tls.crt"],
                       check=True, capture_output=True)

    def apply(self, path, manifest):
        path = f"{path}/{manifest['metadata']['name']}"
        send = lambda: self.client.request("PATCH", path, {"fieldManager": "suite", "force": "true"}, json.dumps(manifest), {"Content-Type": api.APPLY})
        suite.until(lambda: f"{path} can be applied: {send().body}", lambda: not send().rejected)

    def get(self, path):
        answer = self.client.request("GET", path)
        return None if answer.code == 404 else answer.body

    def list(self, path):
        return self.client.request("GET", path).body.get("items", [])

    def path(self, manifest):
        modern = "namespace" in manifest["metadata"]
        if manifest["kind"] == "Object":
            return MODERN_OBJECTS if modern else OBJECTS
        return MODERN_COLLECTIONS if modern else COLLECTIONS

    def prepare(self, package):
        """Installs the CRDs of the genuine package; versions convert without the webhook, which would be at another address."""
        for file in sorted((package / "crds").glob("*.yaml")):
            for crd in suite.documents(file):
                crd["spec"]["conversion"] = {"strategy": "None"}
                self.apply(CRDS, crd)
        text = self.kubeconfig.read_text()
        self.apply(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cluster", "namespace": "default"}, "stringData": {"kubeconfig": text}})
        credentials = {"credentials": {"source": "Secret", "secretRef": {"namespace": "default", "name": "cluster", "key": "kubeconfig"}}}
        for path, version, kind, name, namespace in (
                (f"/apis/{LEGACY}/v1alpha1/providerconfigs", f"{LEGACY}/v1alpha1", "ProviderConfig", "default", None),
                (f"/apis/{MODERN}/v1alpha1/clusterproviderconfigs", f"{MODERN}/v1alpha1", "ClusterProviderConfig", "default", None),
                (f"/apis/{MODERN}/v1alpha1/namespaces/default/providerconfigs", f"{MODERN}/v1alpha1", "ProviderConfig", "mine", "default")):
            metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
            self.apply(path, {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": credentials})

    def start(self, who, command):
        self.log = self.folder / f"{who}.log"
        log = open(self.log, "ab")
        environment = {"KUBECONFIG": str(self.kubeconfig), "WEBHOOK_TLS_CERT_DIR": str(self.folder), "PATH": "/usr/bin:/bin", "HOME": str(self.folder)}
        self.process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)

    def until(self, what, ready):
        """Waits, for as long as the provider runs."""
        suite.until(what, lambda: self.runs() and ready())

    def runs(self):
        code = self.process.poll()
        assert code is None, f"{self.log.stem} ended with {code}: {self.log.read_text(errors='replace')[-3000:]}"
        return True

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.process = None

    def make(self):
        """Applies everything, and waits until it is settled."""
        self.apply(MAPS, {**configmap("existing", a="real"), "metadata": {"name": "existing", "namespace": "default", "labels": {"team": "a"}}})
        self.apply(MAPS, configmap("adopted", a="1", c="of others"))
        for manifest, *_ in OBJECTS_AND_CONDITIONS:
            self.apply(self.path(manifest), manifest)
        for modern in (False, True):
            self.apply(MODERN_COLLECTIONS if modern else COLLECTIONS, collection(f"all-{'modern' if modern else 'legacy'}", modern))
        for manifest, ready, synced in OBJECTS_AND_CONDITIONS:
            path = f"{self.path(manifest)}/{manifest['metadata']['name']}"
            found = lambda kind, field="status": suite.condition(self.get(path), kind).get(field)
            # What was just created is observed once more.
            is_observed = lambda: synced != "True" or found("Ready", "reason") != "Creating"
            self.until(lambda: f"{path}: {ready}, {synced}: {self.get(path)}", lambda: (found("Ready"), found("Synced")) == (ready, synced) and is_observed())
        for path in (COLLECTIONS, MODERN_COLLECTIONS):
            self.until(lambda: f"{self.list(path)}", lambda: all(suite.is_ready(found) for found in self.list(path)) and self.list(path))
        members = lambda path: [found for found in self.list(path) if "of" in found["metadata"].get("labels", {})]
        for path in (OBJECTS, MODERN_OBJECTS):
            self.until(lambda: f"the member is ready: {members(path)}", lambda: len(members(path)) == 1 and suite.is_ready(members(path)[0]))

    def uids(self):
        return {found["metadata"]["uid"]: found["metadata"]["name"] for path in (OBJECTS, MODERN_OBJECTS) for found in self.list(path)}

    def snapshot(self):
        """Everything that was made, without what differs between any two runs."""
        uids, made = self.uids(), {}
        finalizers = lambda found: sorted(re.sub("[0-9a-f-]{36}$", lambda uid: uids.get(uid[0], uid[0]), name) for name in found["metadata"].get("finalizers", []))
        for path in (MAPS, SECRETS, "/api/v1/namespaces/default/services"):
            for found in self.list(path):
                metadata = found["metadata"]
                if metadata["name"] in ("kube-root-ca.crt", "cluster", "kubernetes"):
                    continue
                managers = sorted(entry["manager"] for entry in metadata["managedFields"] if entry["operation"] == "Apply")
                spec = {key: value for key, value in found.get("spec", {}).items() if key not in ("clusterIP", "clusterIPs")}
                owners = [(owner["kind"], owner["name"], owner.get("controller")) for owner in metadata.get("ownerReferences", [])]
                made[f"{path}/{metadata['name']}"] = {"data": found.get("data"), "type": found.get("type"), "spec": spec, "managers": managers, "finalizers": finalizers(found), "owners": owners,
                                                      "labels": metadata.get("labels"), "annotations": metadata.get("annotations")}
        for path in (OBJECTS, MODERN_OBJECTS, COLLECTIONS, MODERN_COLLECTIONS):
            for found in self.list(path):
                metadata = found["metadata"]
                conditions = {kind: [suite.condition(found, kind).get(field) for field in ("status", "reason")] for kind in ("Ready", "Synced")}
                shown = found.get("status", {}).get("atProvider", {}).get("manifest", {})
                annotations = {key: value for key, value in metadata.get("annotations", {}).items() if "external-create" not in key}
                made[f"{path}/{metadata['name']}"] = {"conditions": conditions, "finalizers": finalizers(found), "labels": metadata.get("labels"), "annotations": annotations, "shown": shown.get("data"),
                                                      "membershipLabel": found.get("status", {}).get("membershipLabel"), "manifest": found["spec"].get("forProvider", {}).get("manifest")}
        return made

    def versions(self):
        return {f"{path}/{found['metadata']['name']}": found["metadata"]["resourceVersion"] for path in (MAPS, SECRETS, "/api/v1/namespaces/default/services") for found in self.list(path)}

    def delete(self):
        """Deletes everything that was made, and waits until it is gone."""
        for path in (COLLECTIONS, MODERN_COLLECTIONS, OBJECTS, MODERN_OBJECTS):
            for found in self.list(path):
                self.client.request("DELETE", f"{path}/{found['metadata']['name']}")
        for path in (COLLECTIONS, MODERN_COLLECTIONS, OBJECTS, MODERN_OBJECTS):
            self.until(lambda: f"everything of {path} is deleted: {self.list(path)}", lambda: not self.list(path))
        for name in ("plain", "copied", "modern"):
            assert self.get(f"{MAPS}/{name}") is None, f"{name} is deleted with its Object"
        existing = self.get(f"{MAPS}/existing")
        assert existing and not existing["metadata"].get("finalizers"), f"what was only observed stays: {existing}"
        self.client.request("DELETE", f"{MAPS}/existing")


def differences(genuine, ours):
    """All but the deliberate ones: ours never writes copied values into a manifest, and it tries again to protect what is referred to,
    which the genuine one does once, and not if another client changes the object in that moment."""
    for path in sorted(genuine.keys() | ours.keys()):
        a, b = genuine.get(path), ours.get(path)
        if a is None or b is None:
            yield f"{path} is made by {'the genuine one' if b is None else 'ours'} alone"
            continue
        for field in a:
            if (path, field) == (f"{OBJECTS}/copied", "manifest"):
                same = b[field]["data"] == {"b": "1"}
            elif field == "finalizers":
                same = set(a[field]) <= set(b[field]) and all("/referred-by-object-" in name for name in set(b[field]) - set(a[field]))
            else:
                same = a[field] == b[field]
            if not same:
                yield f"{path}: {field}: the genuine one {a[field]}, ours {b[field]}"


def check_ports():
    """Fails with the port that something else listens at: the genuine one would end."""
    for port in PORTS:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError as error:
                raise AssertionError(f"port {port}, where the genuine {NAME} listens, is not free: {error}") from error


def compare(folder):
    check_ports()
    program, package = install.provider(NAME, "compared-providers")
    poll = ["--poll", "1s"]
    commands = {
        "genuine": [program, *poll, "--poll-jitter-percentage", "0", "--health-probe-bind-addr", f"127.0.0.1:{servers.free_port()}"],
        "ours": [cargo.binary(), "provider", "serve", NAME, "--skip-crds", *poll],
    }
    with servers.workspace("kubernetes") as (_, processes):
        sides = {who: Comparison(folder / who, processes) for who in commands}
        try:
            for who, side in sides.items():
                side.prepare(pathlib.Path(package))
                side.start(who, commands[who])
                side.make()
            found = list(differences(*(side.snapshot() for side in sides.values())))
            assert not found, "\n".join(found)
            sides["genuine"].stop()
            taken_over(sides["genuine"], commands["ours"])
            for side in sides.values():
                side.delete()
        finally:
            for side in sides.values():
                side.stop()


def taken_over(comparison, command):
    """Ours continues the work of the genuine one without writing what that made."""
    before = comparison.versions()
    comparison.start("ours", command)
    comparison.client.request("PATCH", f"{MAPS}/depends", None, json.dumps({"data": {"of": "drift"}}), {"Content-Type": api.MERGE})
    comparison.until("drift is put right", lambda: comparison.get(f"{MAPS}/depends")["data"]["of"] == "depends")
    comparison.until("every Object was looked at", lambda: all(suite.condition(found, "UpToDate") for found in comparison.list(OBJECTS) if suite.condition(found, "Ready").get("status") == "True"))
    after = comparison.versions()
    changed = [name for name in before if before[name] != after.get(name) and name != f"{MAPS}/depends"]
    assert not changed, f"written by ours without need: {changed}"
    assert suite.is_ready(comparison.get(f"{OBJECTS}/depends"))


def plane(folder, processes):
    """An API server whose kubeconfig is in the folder."""
    port, kubeconfig = servers.free_port(), folder / "kubeconfig"
    processes.start(f"server-{folder.name}", cargo.binary(), "up", "--api-server-only", "--in-memory", "--listen", f"127.0.0.1:{port}", "--kubeconfig", kubeconfig)
    processes.await_ready("the kubeconfig", lambda: kubeconfig.exists() and b"server:" in kubeconfig.read_bytes())
    server = servers.Server("transom", kubeconfig)
    processes.await_ready("the server", lambda: api.Client(server).request("GET", "/readyz").code == 200)
    return server
