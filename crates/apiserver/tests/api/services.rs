//! Addresses and node ports of Services that are created at the same time.

use crate::client::{Client, Reply};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use transom_store::{HistoryLimits, Store};

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str, ty: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": ty, "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]},
    })
}

fn node_ports(service: &Value) -> Vec<i64> {
    service["spec"]["ports"].as_array().unwrap().iter().filter_map(|port| port["nodePort"].as_i64()).collect()
}

async fn create_together(client: &Client, names: impl Iterator<Item = String>, ty: &str) {
    let creates = names.map(|name| {
        let body = service(&name, ty);
        async move { client.post(SERVICES, &body).await }
    });
    for reply in join_all(creates).await {
        reply.expect(201);
    }
}

/// Every Service has what it needs, and none has what another has.
async fn assert_distinct(client: &Client, ports: usize) {
    let list = client.get(SERVICES).await.expect(200).json();
    let items = list["items"].as_array().unwrap();
    let addresses: BTreeSet<&str> =
        items.iter().map(|item| item["spec"]["clusterIP"].as_str().unwrap()).collect();
    assert_eq!(addresses.len(), items.len());
    let all: Vec<i64> = items.iter().flat_map(node_ports).collect();
    let distinct: BTreeSet<i64> = all.iter().copied().collect();
    assert_eq!((all.len(), distinct.len()), (ports, ports));
}

#[tokio::test]
async fn services_created_together_get_ports_and_addresses_of_their_own() {
    let store = Store::in_memory(transom_store::Options::default());
    let client = Client::over(&store).await;
    create_together(&client, (0..120).map(|i| format!("n{i}")), "NodePort").await;
    assert_distinct(&client, 240).await;
    // Changed at the same time, too.
    create_together(&client, (0..40).map(|i| format!("c{i}")), "ClusterIP").await;
    let client = &client;
    let changes = (0..40).map(|i| async move {
        client.merge(&format!("{SERVICES}/c{i}"), &json!({"spec": {"type": "NodePort"}})).await
    });
    join_all(changes).await.into_iter().for_each(|reply| drop(reply.expect(200)));
    assert_distinct(client, 320).await;
    // Another server over the same store knows what is taken.
    let again = Client::over(&store).await;
    create_together(&again, (0..10).map(|i| format!("l{i}")), "LoadBalancer").await;
    assert_distinct(&again, 340).await;
}

#[tokio::test]
async fn changes_that_the_history_no_longer_holds_are_not_missed() {
    let history =
        HistoryLimits { min_age: Duration::ZERO, min_events: 1, max_events: 2, ..HistoryLimits::default() };
    for history in [HistoryLimits::default(), history] {
        let store = Store::in_memory(transom_store::Options { history, ..transom_store::Options::default() });
        // What one of them has seen the other changes behind its back.
        let (one, two) = (Client::over(&store).await, Client::over(&store).await);
        create_together(&one, ["a".to_owned()].into_iter(), "NodePort").await;
        create_together(&two, (0..10).map(|i| format!("t{i}")), "NodePort").await;
        create_together(&one, (0..10).map(|i| format!("o{i}")), "NodePort").await;
        assert_distinct(&one, 42).await;
        two.delete(&format!("{SERVICES}/a")).await.expect(200);
        create_together(&two, (0..3).map(|i| format!("u{i}")), "NodePort").await;
        create_together(&one, ["b".to_owned()].into_iter(), "NodePort").await;
        assert_distinct(&one, 48).await;
    }
}

#[tokio::test]
async fn a_port_that_a_client_asks_for_is_not_given_to_another_meanwhile() {
    let client = Client::in_memory().await;
    let mut asked = service("asked", "NodePort");
    asked["spec"]["ports"][0]["nodePort"] = 30_001.into();
    let other = service("other", "NodePort");
    let (one, two) = tokio::join!(client.post(SERVICES, &asked), client.post(SERVICES, &other));
    assert_eq!(node_ports(&one.expect(201).json()), [30_001, 30_000]);
    assert_eq!(node_ports(&two.expect(201).json()), [30_002, 30_003]);
}

#[tokio::test]
async fn what_a_service_no_longer_needs_is_free_again() {
    let client = Client::in_memory().await;
    let ports = |reply: Reply| node_ports(&reply.expect(201).json());
    // Neither a dry run nor a refused request keeps anything.
    let dry_run = format!("{SERVICES}?dryRun=All");
    assert_eq!(ports(client.post(&dry_run, &service("a", "NodePort")).await), [30_000, 30_001]);
    client.post(SERVICES, &service("Not A Name", "NodePort")).await.expect(422);
    assert_eq!(ports(client.post(SERVICES, &service("a", "NodePort")).await), [30_000, 30_001]);
    client.post(SERVICES, &service("a", "NodePort")).await.expect(409);
    assert_eq!(ports(client.post(SERVICES, &service("b", "NodePort")).await), [30_002, 30_003]);
    client.delete(&format!("{SERVICES}/a")).await.expect(200);
    assert_eq!(ports(client.post(SERVICES, &service("c", "NodePort")).await), [30_000, 30_001]);
    let merged = client.merge(&format!("{SERVICES}/c"), &json!({"spec": {"type": "ClusterIP"}})).await;
    assert!(node_ports(&merged.expect(200).json()).is_empty());
    assert_eq!(ports(client.post(SERVICES, &service("d", "NodePort")).await), [30_000, 30_001]);
    // A Service keeps what it has.
    let kept = client.merge(&format!("{SERVICES}/d"), &json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(node_ports(&kept.expect(200).json()), [30_000, 30_001]);
}
