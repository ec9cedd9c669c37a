"""The resources that streams are about: how to address them, make them and change them."""

import base64
import random


class Kind:
    """A served resource."""

    def __init__(self, group, version, plural, kind, namespaced=True, make=None, change=None, status=False, scale=False):
        self.group, self.version, self.plural, self.kind, self.namespaced = group, version, plural, kind, namespaced
        self.make_spec, self.change, self.status, self.scale = make, change, status, scale

    @property
    def api_version(self):
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def custom(self):
        return self.group.endswith("example.org")

    def root(self, version=None):
        return f"/apis/{self.group}/{version or self.version}" if self.group else f"/api/{self.version}"

    def collection(self, namespace=None, version=None):
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{self.root(version)}{scope}/{self.plural}"

    def object(self, name, labels=None, version=None, **fields):
        meta = {"name": name, **({"labels": labels} if labels else {})}
        api = f"{self.group}/{version}" if version else self.api_version
        return {"apiVersion": api, "kind": self.kind, "metadata": meta, **fields}

    def make(self, rng: random.Random, name, labels=None):
        return self.object(name, labels, **self.make_spec(rng))


def word(rng):
    return rng.choice(("alpha", "beta", "gamma", "delta", "omega", "x", "", "42", "true", "null", "ünï", "a b", "line\nbreak"))


def simple(rng):
    return rng.choice(("alpha", "beta", "gamma", "delta", "omega"))


def _encoded(rng):
    return base64.b64encode(word(rng).encode()).decode()


def configmap(rng):
    fields = {"data": {f"k{index}": word(rng) for index in range(rng.randrange(4))}}
    if rng.random() < 0.2:
        fields["binaryData"] = {"b": _encoded(rng)}
    if rng.random() < 0.1:
        fields["immutable"] = rng.random() < 0.5
    return fields


def configmap_change(rng):
    return rng.choice([
        lambda: {"data": {f"k{rng.randrange(4)}": word(rng)}}, lambda: {"data": {f"k{rng.randrange(4)}": None}},
        lambda: {"data": None}, lambda: {"immutable": True}, lambda: {"binaryData": {"b": _encoded(rng)}},
        lambda: {"data": {"bad key!": "x"}}, lambda: {"data": {"k0": 7}}, lambda: {"data": ["x"]}, lambda: {"binaryData": {"b": "%%"}},
        lambda: {"binaryData": {"k1": "eA=="}}, lambda: {"unknown": 1},
    ])()


def secret(rng):
    kind = rng.choice(("Opaque", "Opaque", None, "example.org/custom", "kubernetes.io/basic-auth", "kubernetes.io/tls",
                       "kubernetes.io/dockerconfigjson", "kubernetes.io/ssh-auth"))
    fields = {"data": {f"k{index}": _encoded(rng) for index in range(rng.randrange(3))}}
    if rng.random() < 0.5:
        fields["stringData"] = {"s": word(rng), **({"username": "u"} if kind == "kubernetes.io/basic-auth" else {})}
    return fields | ({"type": kind} if kind else {})


def secret_change(rng):
    return rng.choice([
        lambda: {"data": {"k0": _encoded(rng)}}, lambda: {"stringData": {"k1": word(rng)}}, lambda: {"type": "example.org/other"},
        lambda: {"data": {"k0": "not base64!"}}, lambda: {"immutable": True}, lambda: {"data": None}, lambda: {"data": {"k0": None}},
    ])()


def service(rng):
    ports = [{"port": 80 + index, "name": f"p{index}"} for index in range(1 + rng.randrange(2))]
    if rng.random() < 0.5:
        ports[0]["targetPort"] = rng.choice((8080, "http"))
    spec = {"ports": ports, "selector": {"app": simple(rng)}}
    if rng.random() < 0.3:
        spec["clusterIP"] = "None"
    if rng.random() < 0.2:
        spec = {"type": "ExternalName", "externalName": "example.org"}
    return {"spec": spec}


def service_change(rng):
    return rng.choice([
        lambda: {"spec": {"selector": {"app": simple(rng)}}}, lambda: {"spec": {"ports": [{"port": 443}]}},
        lambda: {"spec": {"ports": [{"port": 0}]}}, lambda: {"spec": {"ports": []}}, lambda: {"spec": {"type": "Nonsense"}},
        lambda: {"spec": {"sessionAffinity": "ClientIP"}}, lambda: {"spec": {"ports": [{"port": 1}, {"port": 2}]}},
        lambda: {"spec": {"publishNotReadyAddresses": True}},
    ])()


def service_account(rng):
    fields = {}
    if rng.random() < 0.5:
        fields["imagePullSecrets"] = [{"name": simple(rng)}]
    if rng.random() < 0.5:
        fields["automountServiceAccountToken"] = rng.random() < 0.5
    return fields


def service_account_change(rng):
    return rng.choice([lambda: {"automountServiceAccountToken": rng.random() < 0.5}, lambda: {"secrets": [{"name": simple(rng)}]},
                       lambda: {"imagePullSecrets": [{"name": simple(rng)}]}, lambda: {"automountServiceAccountToken": "yes"}])()


def deployment(rng):
    app = simple(rng)
    container = {"name": "main", "image": f"registry.example.org/{app}:1"}
    if rng.random() < 0.5:
        container["ports"] = [{"containerPort": 8080, "name": "http"}]
        container["env"] = [{"name": "A", "value": word(rng)}, {"name": "B", "value": "2"}]
    if rng.random() < 0.3:
        container["resources"] = {"requests": {"cpu": "0.5", "memory": "1024Mi"}, "limits": {"cpu": "1000m"}}
    spec = {"selector": {"matchLabels": {"app": app}},
            "template": {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}}}
    if rng.random() < 0.5:
        spec["replicas"] = rng.randrange(4)
    if rng.random() < 0.3:
        spec["strategy"] = rng.choice(({"type": "Recreate"}, {"rollingUpdate": {"maxSurge": "30%"}}))
    return {"spec": spec}


def deployment_change(rng):
    return rng.choice([
        lambda: {"spec": {"replicas": rng.randrange(5)}}, lambda: {"spec": {"replicas": -1}}, lambda: {"spec": {"replicas": "three"}},
        lambda: {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "registry.example.org/new:2"}]}}}},
        lambda: {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "registry.example.org/side:1"}]}}}},
        lambda: {"spec": {"selector": {"matchLabels": {"app": "other"}}}}, lambda: {"spec": {"paused": True}},
        lambda: {"spec": {"template": {"spec": {"restartPolicy": "Never"}}}}, lambda: {"spec": {"minReadySeconds": 5}},
        lambda: {"spec": {"template": {"spec": {"containers": None}}}}, lambda: {"spec": {"revisionHistoryLimit": None}},
        lambda: {"spec": {"template": {"metadata": {"annotations": {"a": word(rng)}}}}}, lambda: {"status": {"replicas": 3}},
    ])()


def lease(rng):
    spec = {"holderIdentity": simple(rng), "leaseDurationSeconds": 15 + rng.randrange(30)}
    if rng.random() < 0.5:
        spec["renewTime"] = "2024-01-02T03:04:05.678901Z"
    return {"spec": spec}


def lease_change(rng):
    return rng.choice([lambda: {"spec": {"holderIdentity": simple(rng)}}, lambda: {"spec": {"leaseDurationSeconds": -5}},
                       lambda: {"spec": {"leaseTransitions": 3}}, lambda: {"spec": {"renewTime": "yesterday"}}, lambda: {"spec": None}])()


def _rule(rng):
    return rng.choice(({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
                       {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"], "resourceNames": ["d"]},
                       {"apiGroups": ["*"], "resources": ["*"], "verbs": ["watch"]}))


def role(rng):
    return {"rules": [_rule(rng) for _ in range(rng.randrange(3))]}


def role_change(rng):
    return rng.choice([lambda: {"rules": [_rule(rng)]}, lambda: {"rules": [{"verbs": []}]}, lambda: {"rules": None},
                       lambda: {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}, lambda: {"rules": "all"}])()


def _binding(kind):
    def make(rng):
        subject = rng.choice(({"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"},
                              {"kind": "ServiceAccount", "name": "default", "namespace": "default"}, {"kind": "Group", "name": "devs"}))
        return {"subjects": [subject], "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": simple(rng)}}
    return make


def binding_change(rng):
    return rng.choice([
        lambda: {"subjects": []}, lambda: {"subjects": [{"kind": "User", "name": simple(rng)}]}, lambda: {"roleRef": {"name": "another"}},
        lambda: {"subjects": [{"kind": "Robot", "name": "r"}]}, lambda: {"subjects": [{"kind": "ServiceAccount", "name": "s"}]}])()


def namespace_change(rng):
    return rng.choice([lambda: {"metadata": {"labels": {"team": simple(rng)}}}, lambda: {"spec": {"finalizers": []}},
                       lambda: {"metadata": {"labels": {"kubernetes.io/metadata.name": None}}}, lambda: {"status": {"phase": "Terminating"}}])()


def webhooks(rng):
    hook = {"name": "one.example.org", "sideEffects": "None", "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/x"},
            "rules": [{"apiGroups": ["none.example.org"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"]}]}
    if rng.random() < 0.3:
        hook["clientConfig"] = {"service": {"name": "s", "namespace": "n"}}
    if rng.random() < 0.3:
        hook["matchConditions"] = [{"name": "c", "expression": "object.metadata.name != 'x'"}]
    return {"webhooks": [hook]}


def webhooks_change(rng):
    hook = webhooks(rng)["webhooks"][0]
    return {"webhooks": [hook | rng.choice(({"timeoutSeconds": 3}, {"failurePolicy": "Ignore"}, {"failurePolicy": "Odd"}, {"sideEffects": "Some"},
                                            {"name": "nodots"}, {"timeoutSeconds": 99}, {"clientConfig": {}}, {"admissionReviewVersions": []},
                                            {"rules": [{}]}, {"matchPolicy": "Exact"}, {"namespaceSelector": {"matchLabels": {"a": "b"}}},
                                            {"clientConfig": {"url": "http://plain"}}, {"matchConditions": [{"name": "c", "expression": "1 +"}]}))]}


RBAC = "rbac.authorization.k8s.io"
CONFIGMAP = Kind("", "v1", "configmaps", "ConfigMap", make=configmap, change=configmap_change)
SECRET = Kind("", "v1", "secrets", "Secret", make=secret, change=secret_change)
SERVICE = Kind("", "v1", "services", "Service", make=service, change=service_change, status=True)
SERVICE_ACCOUNT = Kind("", "v1", "serviceaccounts", "ServiceAccount", make=service_account, change=service_account_change)
DEPLOYMENT = Kind("apps", "v1", "deployments", "Deployment", make=deployment, change=deployment_change, status=True, scale=True)
LEASE = Kind("coordination.k8s.io", "v1", "leases", "Lease", make=lease, change=lease_change)
ROLE = Kind(RBAC, "v1", "roles", "Role", make=role, change=role_change)
ROLE_BINDING = Kind(RBAC, "v1", "rolebindings", "RoleBinding", make=_binding("Role"), change=binding_change)
CLUSTER_ROLE = Kind(RBAC, "v1", "clusterroles", "ClusterRole", False, make=role, change=role_change)
CLUSTER_ROLE_BINDING = Kind(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False, make=_binding("ClusterRole"), change=binding_change)
NAMESPACE = Kind("", "v1", "namespaces", "Namespace", False, make=lambda rng: {}, change=namespace_change, status=True)
CRD = Kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
ADMISSION = "admissionregistration.k8s.io"
VALIDATING = Kind(ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False, make=webhooks, change=webhooks_change)
MUTATING = Kind(ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False, make=webhooks, change=webhooks_change)
POLICY = Kind(ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False)
POLICY_BINDING = Kind(ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False)

BUILT_IN = [VALIDATING, MUTATING, CONFIGMAP, SECRET, SERVICE, SERVICE_ACCOUNT, DEPLOYMENT, LEASE, ROLE, ROLE_BINDING, CLUSTER_ROLE, CLUSTER_ROLE_BINDING]
