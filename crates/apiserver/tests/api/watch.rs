//! Watches.

use crate::client::{Client, config_map};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::time::Duration;
use transom_apiserver::ApiBody;
use transom_store::{HistoryLimits, Store};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// An open watch: one JSON document for each event.
struct Events {
    body: ApiBody,
    read: Vec<u8>,
}

impl Events {
    async fn open(client: &Client, query: &str) -> Self {
        let request = Request::get(format!("{MAPS}?watch=1&{query}")).body(Full::<Bytes>::default()).unwrap();
        let response = client.open(request).await;
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), read: Vec::new() }
    }

    /// The next event; `None` when the server ended the watch.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.unwrap();
            self.read.extend(frame.into_data().unwrap());
        }
    }

    /// The next event as its type, the object's name and its value.
    async fn short(&mut self) -> String {
        let event = self.next().await.unwrap();
        let object = &event["object"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        [text(&event["type"]), text(&object["metadata"]["name"]), text(&object["data"]["k"])].join(" ")
    }
}

async fn version(client: &Client) -> String {
    client.get(MAPS).await.expect(200).json()["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

async fn relabel(client: &Client, name: &str, label: &str) {
    let patch = json!({"metadata": {"labels": {"l": label}}});
    client.merge(&format!("{MAPS}/{name}"), &patch).await.expect(200);
}

#[tokio::test]
async fn changes_arrive_in_order() {
    let client = Client::in_memory().await;
    client.post(MAPS, &config_map("before")).await.expect(201);
    let mut events = Events::open(&client, &format!("resourceVersion={}", version(&client).await)).await;
    client.post(MAPS, &config_map("a")).await.expect(201);
    client.merge(&format!("{MAPS}/a"), &json!({"data": {"k": "w"}})).await.expect(200);
    client.delete(&format!("{MAPS}/a")).await.expect(200);
    for expected in ["ADDED a v", "MODIFIED a w", "DELETED a w"] {
        assert_eq!(events.short().await, expected);
    }
    let mut from_now = Events::open(&client, "").await;
    assert_eq!(from_now.short().await, "ADDED before v", "without a version, what exists comes first");
}

#[tokio::test]
async fn a_selector_turns_changes_into_arrivals_and_departures() {
    let client = Client::in_memory().await;
    client.post(MAPS, &config_map("a")).await.expect(201);
    let version = version(&client).await;
    let mut events = Events::open(&client, &format!("resourceVersion={version}&labelSelector=l%3Dx")).await;
    for label in ["x", "y", "x"] {
        relabel(&client, "a", label).await;
    }
    for expected in ["ADDED a v", "DELETED a v", "ADDED a v"] {
        assert_eq!(events.short().await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn bookmarks_report_the_revision_to_idle_watches() {
    let client = Client::over(&Store::in_step(transom_store::Options::default())).await;
    let start = version(&client).await;
    let query = format!("resourceVersion={start}&allowWatchBookmarks=true&timeoutSeconds=90");
    let mut events = Events::open(&client, &query).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    client.post("/api/v1/namespaces", &namespace).await.expect(201);
    let bookmark = events.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    let reached: u64 = bookmark["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    assert!(reached > start.parse::<u64>().unwrap());
    client.server.stop();
    while events.next().await.is_some() {}
}

#[tokio::test]
async fn a_streaming_list_ends_its_beginning_with_a_bookmark() {
    let client = Client::in_memory().await;
    client.post(MAPS, &config_map("a")).await.expect(201);
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = Events::open(&client, query).await;
    assert_eq!(events.short().await, "ADDED a v");
    let bookmark = events.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    client.post(MAPS, &config_map("b")).await.expect(201);
    assert_eq!(events.short().await, "ADDED b v");
    client.get(&format!("{MAPS}?watch=1&sendInitialEvents=true")).await.expect(422);
}

#[tokio::test]
async fn a_version_that_is_no_longer_kept_is_gone() {
    let history =
        HistoryLimits { min_age: Duration::ZERO, min_events: 1, max_events: 2, ..HistoryLimits::default() };
    let store = Store::in_memory(transom_store::Options { history, ..transom_store::Options::default() });
    let client = Client::over(&store).await;
    let old = version(&client).await;
    for i in 0..10 {
        client.post(MAPS, &config_map(&format!("m{i}"))).await.expect(201);
    }
    let mut events = Events::open(&client, &format!("resourceVersion={old}")).await;
    let error = events.next().await.unwrap();
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(error["object"]["reason"], "Expired");
    assert_eq!(events.next().await, None);
    let list = format!("{MAPS}?resourceVersion={old}&resourceVersionMatch=Exact");
    assert_eq!(client.get(&list).await.expect(410).json()["reason"], "Expired");
}

#[tokio::test]
async fn a_server_that_stops_ends_its_watches() {
    let client = Client::in_memory().await;
    let mut events = Events::open(&client, &format!("resourceVersion={}", version(&client).await)).await;
    client.server.stop();
    assert_eq!(events.next().await, None);
}
