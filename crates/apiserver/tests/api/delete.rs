//! DELETE of one object and of many.

use crate::client::{Client, config_map};
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;
use transom_store::Store;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn a_deleted_object_is_gone() {
    let client = Client::in_memory().await;
    let created = client.post(MAPS, &config_map("a")).await.expect(201).json();
    let path = format!("{MAPS}/a");
    client.delete(&format!("{path}?dryRun=All")).await.expect(200);
    let deleted = client.delete(&path).await.expect(200).json();
    assert_eq!((&deleted["kind"], &deleted["status"]), (&json!("Status"), &json!("Success")));
    assert_eq!(deleted["details"]["uid"], created["metadata"]["uid"]);
    let missing = client.delete(&path).await.expect(404).json();
    assert_eq!(missing["message"], "configmaps \"a\" not found");
}

async fn delete_with(client: &Client, path: &str, options: &Value) -> u16 {
    client.send(Method::DELETE, path, "application/json", options).await.status
}

#[tokio::test]
async fn preconditions_must_hold() {
    let client = Client::in_memory().await;
    let created = client.post(MAPS, &config_map("a")).await.expect(201).json();
    let path = format!("{MAPS}/a");
    assert_eq!(delete_with(&client, &path, &json!({"preconditions": {"uid": "another"}})).await, 409);
    assert_eq!(delete_with(&client, &path, &json!({"preconditions": {"resourceVersion": "1"}})).await, 409);
    let fits = json!({"preconditions": {
        "uid": created["metadata"]["uid"], "resourceVersion": created["metadata"]["resourceVersion"],
    }});
    assert_eq!(delete_with(&client, &path, &fits).await, 200);
    client.get(&path).await.expect(404);
}

/// An owner with a dependent that blocks it, and upkeep in virtual time.
async fn family() -> (Client, String, String) {
    let client = Client::over(&Store::in_step(transom_store::Options::default())).await;
    let server = client.server.clone();
    tokio::spawn(async move { server.run_upkeep().await });
    let owner = client.post(MAPS, &config_map("owner")).await.expect(201).json();
    let mut dependent = config_map("dependent");
    dependent["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": true,
    }]);
    client.post(MAPS, &dependent).await.expect(201);
    (client, format!("{MAPS}/owner"), format!("{MAPS}/dependent"))
}

async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

#[tokio::test(start_paused = true)]
async fn dependents_are_deleted_in_the_background() {
    let (client, owner, dependent) = family().await;
    client.delete(&owner).await.expect(200);
    client.get(&owner).await.expect(404);
    a_moment().await;
    client.get(&dependent).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_waits_for_dependents() {
    let (client, owner, dependent) = family().await;
    let hold = json!({"metadata": {"finalizers": ["example.org/hold"]}});
    client.merge(&dependent, &hold).await.expect(200);
    let deleting = client.delete(&format!("{owner}?propagationPolicy=Foreground")).await.expect(200).json();
    assert_eq!(deleting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    a_moment().await;
    client.get(&owner).await.expect(200);
    assert!(client.get(&dependent).await.expect(200).json()["metadata"]["deletionTimestamp"].is_string());
    client.merge(&dependent, &json!({"metadata": {"finalizers": null}})).await.expect(200);
    a_moment().await;
    client.get(&owner).await.expect(404);
    client.get(&dependent).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn an_orphaning_deletion_leaves_dependents() {
    let (client, owner, dependent) = family().await;
    client.delete(&format!("{owner}?propagationPolicy=Orphan")).await.expect(200);
    a_moment().await;
    client.get(&owner).await.expect(404);
    let left = client.get(&dependent).await.expect(200).json();
    assert!(left["metadata"].get("ownerReferences").is_none());
    client.delete(&format!("{dependent}?propagationPolicy=Sometimes")).await.expect(422);
}

#[tokio::test]
async fn a_collection_is_deleted_by_selectors() {
    let client = Client::in_memory().await;
    for (name, label) in [("a", "x"), ("b", "x"), ("c", "y")] {
        let mut object = config_map(name);
        object["metadata"]["labels"] = json!({"l": label});
        client.post(MAPS, &object).await.expect(201);
    }
    let deleted = client.delete(&format!("{MAPS}?labelSelector=l%3Dx")).await.expect(200).json();
    let names: Vec<&Value> =
        deleted["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, [&json!("a"), &json!("b")]);
    assert_eq!(client.get(MAPS).await.json()["items"].as_array().unwrap().len(), 1);
    client.delete(&format!("{MAPS}?fieldSelector=metadata.name%3Dc")).await.expect(200);
    assert!(client.get(MAPS).await.json()["items"].as_array().unwrap().is_empty());
    client.delete("/api/v1/namespaces").await.expect(405);
    let permanent = client.delete("/api/v1/namespaces/default").await.expect(403).json();
    assert!(permanent["message"].as_str().unwrap().contains("this namespace may not be deleted"));
}
