//! What clients are warned of.

use crate::client::{Client, config_map};
use serde_json::json;

#[tokio::test]
async fn other_objects_are_stored_without_a_warning() {
    let client = Client::in_memory().await;
    let created = client.post("/api/v1/namespaces/default/configmaps", &config_map("a")).await.expect(201);
    assert!(created.warnings().is_empty());
}

#[tokio::test]
async fn creating_an_object_of_a_kind_that_nothing_acts_on_causes_a_warning() {
    let client = Client::in_memory().await;
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "x"},
        "spec": {"defaultBackend": {"service": {"name": "x", "port": {"number": 80}}}},
    });
    let path = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
    let created = client.post(path, &ingress).await.expect(201);
    let warnings = created.warnings();
    assert!(
        matches!(warnings[..], [one] if one.contains("this Ingress is stored but has no effect: ")),
        "{warnings:?}"
    );
    let changed =
        client.merge(&format!("{path}/x"), &json!({"metadata": {"labels": {"a": "b"}}})).await.expect(200);
    assert!(changed.warnings().is_empty());
}
