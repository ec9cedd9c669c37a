//! PATCH in its four forms.

use crate::client::{Client, Reply, config_map, widgets};
use http::Method;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

async fn patch(client: &Client, path: &str, media: &str, body: &Value) -> Reply {
    client.send(Method::PATCH, path, media, body).await
}

async fn apply(client: &Client, path: &str, manager: &str, body: &Value) -> Reply {
    let path = format!("{path}?fieldManager={manager}");
    patch(client, &path, "application/apply-patch+yaml", body).await
}

fn map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

#[tokio::test]
async fn json_patches() {
    let client = Client::in_memory().await;
    client.post(MAPS, &config_map("a")).await.expect(201);
    let path = format!("{MAPS}/a");
    let body = json!([
        {"op": "test", "path": "/data/k", "value": "v"},
        {"op": "add", "path": "/data/new", "value": "x"},
        {"op": "remove", "path": "/data/k"},
    ]);
    let patched = patch(&client, &path, JSON, &body).await.expect(200).json();
    assert_eq!(patched["data"], json!({"new": "x"}));
    patch(&client, &path, JSON, &body).await.expect(422);
    patch(&client, &path, JSON, &json!({})).await.expect(400);
    let ill_typed = json!([{"op": "add", "path": "/data", "value": 3}]);
    let refused = patch(&client, &path, JSON, &ill_typed).await.expect(422).json();
    assert!(refused["message"].as_str().unwrap().contains("patch: Invalid value"), "{refused}");
    assert_eq!(client.get(&path).await.json()["data"], json!({"new": "x"}));
}

#[tokio::test]
async fn merge_patches() {
    let client = Client::in_memory().await;
    client.post(MAPS, &config_map("a")).await.expect(201);
    let path = format!("{MAPS}/a");
    let patched = client.merge(&path, &json!({"data": {"k": null, "l": "w"}})).await.expect(200).json();
    assert_eq!(patched["data"], json!({"l": "w"}));
    let pinned = json!({"metadata": {"resourceVersion": "1"}, "data": {"l": "x"}});
    client.merge(&path, &pinned).await.expect(409);
    client.merge(&path, &json!([])).await.expect(400);
    client.merge(&format!("{MAPS}/none"), &json!([])).await.expect(404);
    let dry_run = client.merge(&format!("{path}?dryRun=All"), &json!({"data": {"l": "x"}})).await.expect(200);
    assert_eq!(dry_run.json()["data"], json!({"l": "x"}));
    assert_eq!(client.get(&path).await.json()["data"], json!({"l": "w"}));
    client.merge(&path, &json!({"metadata": {"name": "b"}})).await.expect(400);
}

#[tokio::test]
async fn strategic_merge_patches() {
    let client = Client::in_memory().await;
    let path = "/api/v1/namespaces/default/services";
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]},
    });
    client.post(path, &service).await.expect(201);
    // Ports are merged by their number.
    let body = json!({"spec": {"ports": [{"port": 81, "name": "c"}, {"$patch": "delete", "port": 80}]}});
    let patched = patch(&client, &format!("{path}/s"), STRATEGIC, &body).await.expect(200).json();
    let ports: Vec<(&Value, &Value)> =
        patched["spec"]["ports"].as_array().unwrap().iter().map(|p| (&p["port"], &p["name"])).collect();
    assert_eq!(ports, [(&json!(81), &json!("c"))]);
    let (widgets, widget) = widgets(&client).await;
    client.post(&widgets, &widget).await.expect(201);
    patch(&client, &format!("{widgets}/w"), STRATEGIC, &json!({})).await.expect(415);
}

#[tokio::test]
async fn an_apply_creates_changes_and_removes() {
    let client = Client::in_memory().await;
    let path = format!("{MAPS}/a");
    apply(&client, &path, "one", &map(&json!({"a": "1", "b": "1"}))).await.expect(201);
    let changed = apply(&client, &path, "one", &map(&json!({"a": "2"}))).await.expect(200).json();
    assert_eq!(changed["data"], json!({"a": "2"}), "what is no longer applied is removed");
    let same = apply(&client, &path, "one", &map(&json!({"a": "2"}))).await.expect(200).json();
    assert_eq!(same["metadata"]["resourceVersion"], changed["metadata"]["resourceVersion"]);
    patch(&client, &path, "application/apply-patch+yaml", &map(&json!({}))).await.expect(422);
    let mut other_kind = map(&json!({}));
    other_kind["kind"] = "Secret".into();
    apply(&client, &path, "one", &other_kind).await.expect(400);
}

#[tokio::test]
async fn an_apply_conflicts_unless_it_is_forced() {
    let client = Client::in_memory().await;
    let path = format!("{MAPS}/a");
    apply(&client, &path, "one", &map(&json!({"a": "1"}))).await.expect(201);
    let conflict = apply(&client, &path, "two", &map(&json!({"a": "2", "b": "2"}))).await.expect(409).json();
    assert_eq!(conflict["reason"], "Conflict");
    assert_eq!(
        conflict["details"]["causes"],
        json!([{"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": ".data.a"}])
    );
    assert_eq!(client.get(&path).await.json()["data"], json!({"a": "1"}));
    apply(&client, &path, "two", &map(&json!({"a": "1", "b": "2"}))).await.expect(200);
    let forced = apply(&client, &path, "three&force=true", &map(&json!({"a": "3"}))).await.expect(200).json();
    assert_eq!(forced["data"], json!({"a": "3", "b": "2"}));
    let owners: Vec<&str> = forced["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|m| m["fieldsV1"]["f:data"].get("f:a").is_some())
        .map(|m| m["manager"].as_str().unwrap())
        .collect();
    assert_eq!(owners, ["three"]);
}
