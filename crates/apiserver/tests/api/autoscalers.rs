//! HorizontalPodAutoscalers in `autoscaling/v1` and `autoscaling/v2`: one set of objects, each client sees its version.

use crate::client::Client;
use http::Method;
use serde_json::{Value, json};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

fn at(version: &str) -> String {
    format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers")
}

fn scaler(version: &str, name: &str, more: &Value) -> Value {
    let mut spec = json!({"scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}, "maxReplicas": 5});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler", "metadata": {"name": name}, "spec": spec})
}

fn memory() -> Value {
    json!({"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}})
}

#[tokio::test]
async fn both_versions_are_discovered_and_described() {
    let client = Client::in_memory().await;
    let group = client.get("/apis/autoscaling").await.expect(200).json();
    assert_eq!(group["preferredVersion"]["version"], "v2");
    let versions: Vec<&Value> = group["versions"].as_array().unwrap().iter().map(|v| &v["version"]).collect();
    assert_eq!(versions, ["v2", "v1"]);
    let hash = |resources: &Value| resources["resources"][0]["storageVersionHash"].clone();
    let (old, new) =
        (client.get("/apis/autoscaling/v1").await.json(), client.get("/apis/autoscaling/v2").await.json());
    assert_eq!(old["resources"][0]["name"], "horizontalpodautoscalers");
    assert_eq!(old["resources"][1]["name"], "horizontalpodautoscalers/status");
    assert_eq!(hash(&old), hash(&new), "one stored kind");
    let document = client.get("/openapi/v3/apis/autoscaling/v1").await.expect(200).json();
    assert!(document["paths"][at("v1").replace("default", "{namespace}")]["post"].is_object());
    assert!(
        document["components"]["schemas"]["io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler"].is_object()
    );
}

#[tokio::test]
async fn each_client_sees_its_version() {
    let client = Client::in_memory().await;
    let made = client
        .post(&at("v1"), &scaler("v1", "a", &json!({"targetCPUUtilizationPercentage": 50})))
        .await
        .expect(201)
        .json();
    assert_eq!((&made["apiVersion"], &made["spec"]["minReplicas"]), (&json!("autoscaling/v1"), &json!(1)));
    let new = client.get(&format!("{}/a", at("v2"))).await.expect(200).json();
    assert_eq!(new["apiVersion"], "autoscaling/v2");
    assert_eq!(
        new["spec"]["metrics"][0]["resource"]["target"],
        json!({"type": "Utilization", "averageUtilization": 50})
    );
    assert_eq!(new["metadata"]["uid"], made["metadata"]["uid"]);
    // What v1 has no field for is in annotations, and survives a client of v1 that writes the object back.
    client.merge(&format!("{}/a", at("v2")), &json!({"spec": {"metrics": [memory()]}})).await.expect(200);
    let mut old = client.get(&format!("{}/a", at("v1"))).await.expect(200).json();
    assert_eq!(old["spec"].get("targetCPUUtilizationPercentage"), None);
    assert_eq!(
        old["metadata"]["annotations"][METRICS],
        r#"[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}]"#
    );
    old["spec"]["maxReplicas"] = json!(9);
    client.put(&format!("{}/a", at("v1")), &old).await.expect(200);
    let new = client.get(&format!("{}/a", at("v2"))).await.expect(200).json();
    assert_eq!((&new["spec"]["maxReplicas"], &new["spec"]["metrics"]), (&json!(9), &json!([memory()])));
    assert_eq!(new["metadata"].get("annotations"), None);
    let unchanged = client
        .put(&format!("{}/a", at("v1")), &client.get(&format!("{}/a", at("v1"))).await.json())
        .await
        .expect(200)
        .json();
    assert_eq!(
        unchanged["metadata"]["resourceVersion"], new["metadata"]["resourceVersion"],
        "nothing changed"
    );
    let list = client.get(&at("v1")).await.expect(200).json();
    assert_eq!(
        (&list["apiVersion"], &list["items"][0]["spec"]["maxReplicas"]),
        (&json!("autoscaling/v1"), &json!(9))
    );
    client.delete(&format!("{}/a", at("v1"))).await.expect(200);
    client.get(&format!("{}/a", at("v2"))).await.expect(404);
}

#[tokio::test]
async fn without_a_metric_the_default_is_shown() {
    let client = Client::in_memory().await;
    client.post(&at("v1"), &scaler("v1", "a", &json!({}))).await.expect(201);
    let old = client.get(&format!("{}/a", at("v1"))).await.json();
    assert_eq!(old["spec"]["targetCPUUtilizationPercentage"], 80);
}

#[tokio::test]
async fn the_status_is_changed_through_its_subresource_alone() {
    let client = Client::in_memory().await;
    let mut forged = scaler("v1", "a", &json!({}));
    forged["metadata"]["annotations"][CONDITIONS] = r#"[{"type":"AbleToScale","status":"True"}]"#.into();
    forged["status"] = json!({"currentReplicas": 7, "desiredReplicas": 7});
    let made = client.post(&at("v1"), &forged).await.expect(201).json();
    assert_eq!(made["status"], json!({"currentReplicas": 0, "desiredReplicas": 0}));
    assert_eq!(made["metadata"].get("annotations"), None);
    let condition = json!([{"type": "AbleToScale", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": "2024-01-01T00:00:00Z"}]);
    let status =
        json!({"status": {"currentReplicas": 2, "conditions": condition}, "spec": {"maxReplicas": 1}});
    client.merge(&format!("{}/a/status", at("v2")), &status).await.expect(200);
    // A client of v1 that knows nothing of the annotation does not remove the condition.
    client.put(&format!("{}/a", at("v1")), &scaler("v1", "a", &json!({"maxReplicas": 6}))).await.expect(200);
    let new = client.get(&format!("{}/a", at("v2"))).await.json();
    assert_eq!((&new["spec"]["maxReplicas"], &new["status"]["conditions"]), (&json!(6), &condition));
    assert_eq!(new["status"]["currentReplicas"], 2);
    let status = json!({"status": {"currentReplicas": 3}, "spec": {"maxReplicas": 1}});
    let old = client.merge(&format!("{}/a/status", at("v1")), &status).await.expect(200).json();
    assert_eq!((&old["spec"]["maxReplicas"], &old["status"]["currentReplicas"]), (&json!(6), &json!(3)));
    let new = client.get(&format!("{}/a", at("v2"))).await.json();
    assert_eq!(new["status"]["conditions"], condition);
}

#[tokio::test]
async fn objects_are_validated_and_shown_as_in_v2() {
    let client = Client::in_memory().await;
    let refused =
        client.post(&at("v1"), &scaler("v1", "a", &json!({"maxReplicas": 0}))).await.expect(422).json();
    assert!(refused["message"].as_str().unwrap().contains("spec.maxReplicas: Required value"), "{refused}");
    client
        .post(&at("v1"), &scaler("v1", "a", &json!({"targetCPUUtilizationPercentage": 50})))
        .await
        .expect(201);
    let tables = ["v1", "v2"].map(|version| format!("{}/a", at(version)));
    let mut cells = Vec::new();
    for path in &tables {
        let accept = [("accept", "application/json;as=Table;g=meta.k8s.io;v=v1".to_owned())];
        let table = client.send_with(Method::GET, path, &accept, &Value::Null).await.expect(200).json();
        cells.push(table["rows"][0]["cells"].clone());
    }
    assert_eq!(cells[0], cells[1]);
    assert!(cells[0].to_string().contains("50%"), "{}", cells[0]);
}

#[tokio::test]
async fn owners_of_fields_are_found_through_both_versions() {
    let client = Client::in_memory().await;
    let apply = |manager: &str, version: &str, body: &Value| {
        let path = format!("{}/a?fieldManager={manager}", at(version));
        let body = body.clone();
        let client = &client;
        async move { client.send(Method::PATCH, &path, "application/apply-patch+yaml", &body).await }
    };
    apply("one", "v2", &scaler("v2", "a", &json!({}))).await.expect(201);
    let other = scaler("v1", "a", &json!({"maxReplicas": 8}));
    let conflict = apply("two", "v1", &other).await.expect(409).json();
    assert!(conflict["message"].as_str().unwrap().contains(".spec.maxReplicas"), "{conflict}");
    let mine = apply("one", "v1", &scaler("v1", "a", &json!({"maxReplicas": 8}))).await.expect(200).json();
    assert_eq!(mine["spec"]["maxReplicas"], 8);
}
