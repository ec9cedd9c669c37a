"""A genuine provider that runs from its package."""

import install
from running import NAMESPACE, expect, wait

NAME = "provider-kubernetes"
PROVIDER = f"/apis/pkg.crossplane.io/v1/providers/{NAME}"


def provider(cluster):
    program, source = install.provider(NAME)
    package = cluster.images.package(NAME, program, install.VERSIONS["providers"][NAME], source)
    # Without the annotation, the provider of this name that comes with the binary would run.
    cluster.apply({"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": NAME, "annotations": {"transom.io/runtime": "Package"}},
                   "spec": {"package": package}})
    wait("the provider is healthy", lambda: cluster.is_true(PROVIDER, "Healthy"))
    revision = cluster.get(PROVIDER)["status"]["currentRevision"]
    expect(cluster.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{revision}")["status"].get("availableReplicas") == 1, "its Deployment is available")
    # Its role has its own kinds; what it manages with them is for the user to allow.
    cluster.apply(
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": NAME, "namespace": "default"},
         "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": NAME, "namespace": "default"},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME},
         "subjects": [{"kind": "ServiceAccount", "name": revision, "namespace": NAMESPACE}]},
        {"apiVersion": "kubernetes.crossplane.io/v1alpha1", "kind": "ProviderConfig", "metadata": {"name": "default"},
         "spec": {"credentials": {"source": "InjectedIdentity"}}})
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "provided"}, "data": {"by": "a pod"}}
    cluster.apply({"apiVersion": "kubernetes.crossplane.io/v1alpha2", "kind": "Object", "metadata": {"name": "provided"},
                   "spec": {"forProvider": {"manifest": manifest}, "providerConfigRef": {"name": "default"}}})
    wait("the object is ready", lambda: cluster.is_true("/apis/kubernetes.crossplane.io/v1alpha2/objects/provided", "Ready"))
    made = "/api/v1/namespaces/default/configmaps/provided"
    expect(cluster.get(made)["data"] == {"by": "a pod"}, "the object is as it was wanted")
    cluster.kubectl("delete", "objects.kubernetes.crossplane.io/provided", "--timeout=60s")
    expect(cluster.get(made) is None, "it is deleted with its Object")
    for kind in ("role", "rolebinding"):
        cluster.kubectl("delete", kind, NAME)
