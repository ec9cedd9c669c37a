//! PUT.

use crate::client::{Client, config_map, widgets};
use futures_util::future::join_all;
use serde_json::json;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn an_update_replaces_the_object() {
    let client = Client::in_memory().await;
    let created = client.post(MAPS, &config_map("a")).await.expect(201).json();
    let path = format!("{MAPS}/a");
    let mut next = config_map("a");
    next["data"] = json!({"other": "x"});
    let updated = client.put(&path, &next).await.expect(200).json();
    assert_eq!(updated["data"], json!({"other": "x"}));
    assert_eq!(updated["metadata"]["uid"], created["metadata"]["uid"]);
    assert_eq!(updated["metadata"]["creationTimestamp"], created["metadata"]["creationTimestamp"]);
    assert_ne!(updated["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
    let same = client.put(&path, &updated).await.expect(200).json();
    assert_eq!(same, updated, "a write that changes nothing is not written");
    let dry_run = client.put(&format!("{path}?dryRun=All"), &config_map("a")).await.expect(200).json();
    assert_eq!(dry_run["data"], json!({"k": "v"}));
    assert_eq!(client.get(&path).await.expect(200).json(), updated);
}

#[tokio::test]
async fn a_stale_version_is_a_conflict() {
    let client = Client::in_memory().await;
    let stale = client.post(MAPS, &config_map("a")).await.expect(201).json();
    let path = format!("{MAPS}/a");
    client.merge(&path, &json!({"data": {"k": "w"}})).await.expect(200);
    let conflict = client.put(&path, &stale).await.expect(409).json();
    assert_eq!(conflict["reason"], "Conflict");
    assert_eq!(
        conflict["message"],
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
    let mut other = config_map("a");
    other["metadata"]["uid"] = "another".into();
    client.put(&path, &other).await.expect(409);
    client.put(&path, &config_map("b")).await.expect(400);
    client.put(&format!("{MAPS}/none"), &config_map("none")).await.expect(404);
}

#[tokio::test]
async fn of_writers_with_one_version_one_succeeds() {
    let client = Client::in_memory().await;
    let base = client.post(MAPS, &config_map("a")).await.expect(201).json();
    let path = format!("{MAPS}/a");
    let writes = (0..20).map(|i| {
        let (client, path, mut object) = (client.clone(), path.clone(), base.clone());
        object["data"]["k"] = i.to_string().into();
        async move { client.put(&path, &object).await.status }
    });
    let mut codes = join_all(writes).await;
    codes.sort_unstable();
    assert_eq!((codes[0], codes[1], codes[19]), (200, 409, 409));
    // Without a version the writers take turns.
    let writes = (0..20).map(|i| {
        let (client, path) = (client.clone(), path.clone());
        let patch = json!({"data": {format!("k{i}"): "v"}});
        async move { client.merge(&path, &patch).await.expect(200) }
    });
    join_all(writes).await;
    assert_eq!(client.get(&path).await.json()["data"].as_object().unwrap().len(), 21);
}

#[tokio::test]
async fn some_kinds_need_a_version_and_some_are_created() {
    let client = Client::in_memory().await;
    let (path, widget) = widgets(&client).await;
    client.post(&path, &widget).await.expect(201);
    let refused = client.put(&format!("{path}/w"), &widget).await.expect(422).json();
    assert!(refused["message"].as_str().unwrap().contains("must be specified for an update"), "{refused}");
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}});
    client.put("/apis/coordination.k8s.io/v1/namespaces/default/leases/l", &lease).await.expect(201);
}

#[tokio::test]
async fn an_object_goes_with_its_last_finalizer() {
    let client = Client::in_memory().await;
    let mut held = config_map("held");
    held["metadata"]["finalizers"] = json!(["example.org/hold"]);
    client.post(MAPS, &held).await.expect(201);
    let path = format!("{MAPS}/held");
    let mut deleting = client.delete(&path).await.expect(200).json();
    assert!(deleting["metadata"]["deletionTimestamp"].is_string());
    deleting["metadata"]["finalizers"] = json!([]);
    client.put(&path, &deleting).await.expect(200);
    client.get(&path).await.expect(404);
}
