//! What clients are warned of.

use crate::client::{Client, config_map};
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

fn without_effect() -> [(String, Value); 6] {
    let rbac = |kind: &str, more: Value| {
        let mut object = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "x"},
        });
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object
    };
    let rules = || json!({"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]});
    let binding = |kind: &str| {
        json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "x"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
        })
    };
    let hooks = |kind: &str| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "x"},
            "webhooks": [{
                "name": "x.example.org", "clientConfig": {"url": "https://x.example.org"}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }],
        })
    };
    let in_default = format!("{RBAC}/namespaces/default");
    [
        (format!("{in_default}/roles"), rbac("Role", rules())),
        (format!("{in_default}/rolebindings"), rbac("RoleBinding", binding("Role"))),
        (format!("{RBAC}/clusterroles"), rbac("ClusterRole", rules())),
        (format!("{RBAC}/clusterrolebindings"), rbac("ClusterRoleBinding", binding("ClusterRole"))),
        (format!("{ADMISSION}/validatingwebhookconfigurations"), hooks("ValidatingWebhookConfiguration")),
        (format!("{ADMISSION}/mutatingwebhookconfigurations"), hooks("MutatingWebhookConfiguration")),
    ]
}

#[tokio::test]
async fn objects_that_have_no_effect_are_stored_with_a_warning() {
    let client = Client::in_memory().await;
    for (path, object) in without_effect() {
        let kind = object["kind"].as_str().unwrap();
        let expected = format!("this {kind} is stored but has no effect: ");
        let created = client.post(&path, &object).await.expect(201);
        let changed = client.merge(&format!("{path}/x"), &json!({"metadata": {"labels": {"a": "b"}}})).await;
        let replaced = client.put(&format!("{path}/x"), &changed.json()).await;
        for reply in [created, changed.expect(200), replaced.expect(200)] {
            let warnings = reply.warnings();
            assert!(matches!(warnings[..], [one] if one.contains(&expected)), "{kind}: {warnings:?}");
        }
        for reply in [client.get(&format!("{path}/x")).await, client.delete(&format!("{path}/x")).await] {
            assert!(reply.expect(200).warnings().is_empty(), "{kind}");
        }
    }
}

#[tokio::test]
async fn other_objects_are_stored_without_a_warning() {
    let client = Client::in_memory().await;
    let created = client.post("/api/v1/namespaces/default/configmaps", &config_map("a")).await.expect(201);
    assert!(created.warnings().is_empty());
}
