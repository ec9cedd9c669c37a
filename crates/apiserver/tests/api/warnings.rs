//! What clients are warned of.

use crate::client::{Client, Reply, config_map};
use http::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn other_objects_are_stored_without_a_warning() {
    let client = Client::in_memory().await;
    let created = client.post("/api/v1/namespaces/default/configmaps", &config_map("a")).await.expect(201);
    assert!(created.warnings().is_empty());
}

const NO_EFFECT: &str = "this Ingress is stored but has no effect: ";

fn service_named(name: &str) -> Value {
    json!({"spec": {"defaultBackend": {"service": {"name": name, "port": {"number": 80}}}}})
}

fn assert_warned(what: &str, reply: &Reply) {
    let warnings = reply.warnings();
    assert!(matches!(warnings[..], [one] if one.contains(NO_EFFECT)), "{what}: {warnings:?}");
}

#[tokio::test]
async fn writing_an_object_of_a_kind_that_nothing_acts_on_causes_a_warning() {
    let client = Client::in_memory().await;
    let mut ingress = service_named("x");
    ingress["apiVersion"] = "networking.k8s.io/v1".into();
    ingress["kind"] = "Ingress".into();
    ingress["metadata"] = json!({"name": "x"});
    let all = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
    let path = format!("{all}/x");
    assert_warned("create", &client.post(all, &ingress).await.expect(201));

    ingress["spec"] = service_named("put")["spec"].take();
    assert_warned("update", &client.put(&path, &ingress).await.expect(200));
    assert_warned("patch", &client.merge(&path, &service_named("patched")).await.expect(200));
    let mut applied = ingress.clone();
    applied["spec"] = service_named("applied")["spec"].take();
    let forced = format!("{path}?fieldManager=a&force=true");
    let reply = client.send(Method::PATCH, &forced, "application/apply-patch+yaml", &applied).await;
    assert_warned("apply", &reply.expect(200));

    for (what, change) in [
        ("the same spec", service_named("applied")),
        ("a label", json!({"metadata": {"labels": {"a": "b"}}})),
    ] {
        let reply = client.merge(&path, &change).await.expect(200);
        assert!(reply.warnings().is_empty(), "{what}: {:?}", reply.warnings());
    }
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
    let written = client.merge(&format!("{path}/status"), &status).await.expect(200);
    assert!(written.warnings().is_empty(), "the status is not what would have an effect");
}
