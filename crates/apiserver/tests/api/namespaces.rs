//! How namespaces go.

use crate::client::{Client, config_map};
use serde_json::json;
use std::time::Duration;
use transom_store::Store;

const NAMESPACES: &str = "/api/v1/namespaces";

/// In virtual time: upkeep has done what it can do at once when a sleep ends.
async fn with_upkeep() -> Client {
    let client = Client::over(&Store::in_step(transom_store::Options::default())).await;
    let server = client.server.clone();
    tokio::spawn(async move { server.run_upkeep().await });
    client
}

async fn make(client: &Client, namespace: &str, config_maps: &[&str]) -> String {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    client.post(NAMESPACES, &object).await.expect(201);
    let path = format!("{NAMESPACES}/{namespace}/configmaps");
    for name in config_maps {
        client.post(&path, &config_map(name)).await.expect(201);
    }
    path
}

async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_can_be_deleted_together_with_its_content() {
    let client = with_upkeep().await;
    for round in 0..2 {
        let names = ["a", "b", "c"];
        let maps = make(&client, "shop", &names).await;
        a_moment().await;
        let deleted = client.delete(&format!("{NAMESPACES}/shop")).await.expect(200).json();
        assert_eq!(deleted["status"]["phase"], "Terminating", "round {round}");
        for name in names {
            // As `kubectl delete -k` does: one after the other, each of which must still be there.
            a_moment().await;
            client.delete(&format!("{maps}/{name}")).await.expect(200);
        }
        a_moment().await;
        assert_eq!(
            client.get(&format!("{NAMESPACES}/shop")).await.expect(200).json()["status"]["phase"],
            "Terminating"
        );
        client.post(&maps, &config_map("late")).await.expect(403);
        tokio::time::sleep(Duration::from_secs(3)).await;
        client.get(&format!("{NAMESPACES}/shop")).await.expect(404);
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_as_soon_as_its_last_object_does() {
    let client = with_upkeep().await;
    let maps = make(&client, "shop", &["free", "held"]).await;
    client
        .merge(&format!("{maps}/held"), &json!({"metadata": {"finalizers": ["example.org/hold"]}}))
        .await
        .expect(200);
    client.delete(&format!("{NAMESPACES}/shop")).await.expect(200);
    tokio::time::sleep(Duration::from_secs(3)).await;
    client.get(&format!("{maps}/free")).await.expect(404);
    let shop = client.get(&format!("{NAMESPACES}/shop")).await.expect(200).json();
    let conditions = shop["status"]["conditions"].as_array().unwrap();
    assert!(
        conditions.iter().any(|c| c["type"] == "NamespaceFinalizersRemaining" && c["status"] == "True"),
        "{shop}"
    );
    client.merge(&format!("{maps}/held"), &json!({"metadata": {"finalizers": null}})).await.expect(200);
    a_moment().await;
    client.get(&format!("{NAMESPACES}/shop")).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_was_being_deleted_goes_after_a_restart() {
    let store = Store::in_step(transom_store::Options::default());
    let client = Client::over(&store).await;
    make(&client, "shop", &["a"]).await;
    client.delete(&format!("{NAMESPACES}/shop")).await.expect(200);
    let again = Client::over(&store).await;
    let server = again.server.clone();
    tokio::spawn(async move { server.run_upkeep().await });
    tokio::time::sleep(Duration::from_secs(3)).await;
    again.get(&format!("{NAMESPACES}/shop")).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn kube_system_has_what_programs_look_for_there() {
    let client = with_upkeep().await;
    a_moment().await;
    let name = "kube-apiserver-legacy-service-account-token-tracking";
    let at = |namespace: &str| format!("{NAMESPACES}/{namespace}/configmaps/{name}");
    let made = client.get(&at("kube-system")).await.expect(200).json();
    let since = made["data"]["since"].as_str().unwrap();
    let created = made["metadata"]["creationTimestamp"].as_str().unwrap();
    assert_eq!(created.split('T').next(), Some(since));
    client.get(&at("default")).await.expect(404);
    client.delete(&at("kube-system")).await.expect(200);
    a_moment().await;
    client.get(&at("kube-system")).await.expect(200);
}
