//! GET of one object and of many.

use crate::client::{Client, config_map, widgets};
use http::Method;
use serde_json::{Value, json};
use transom_store::Store;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

/// Six ConfigMaps, every other one labelled.
async fn six() -> Client {
    let client = Client::in_memory().await;
    for (i, name) in ["a", "b", "c", "d", "e", "f"].into_iter().enumerate() {
        let mut object = config_map(name);
        object["metadata"]["labels"] = json!({"parity": if i % 2 == 0 { "even" } else { "odd" }});
        client.post(MAPS, &object).await.expect(201);
    }
    client
}

#[tokio::test]
async fn pages_are_of_one_version() {
    let client = six().await;
    let first = client.get(&format!("{MAPS}?limit=4")).await.expect(200).json();
    assert_eq!(names(&first), ["a", "b", "c", "d"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 2);
    client.post(MAPS, &config_map("between")).await.expect(201);
    client.delete(&format!("{MAPS}/e")).await.expect(200);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = client.get(&format!("{MAPS}?limit=4&continue={token}")).await.expect(200).json();
    assert_eq!(names(&second), ["e", "f"], "as it was when the first page was read");
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    assert!(second["metadata"].get("continue").is_none());
    client.get(&format!("{MAPS}?continue=nonsense")).await.expect(400);
    client.get(&format!("{MAPS}?limit=x")).await.expect(400);
}

#[tokio::test]
async fn selectors_choose() {
    let client = six().await;
    for (query, expected) in [
        ("labelSelector=parity%3Deven", &["a", "c", "e"][..]),
        ("labelSelector=parity+notin+(even)", &["b", "d", "f"][..]),
        ("labelSelector=absent", &[][..]),
        ("fieldSelector=metadata.name%3Db", &["b"][..]),
        ("fieldSelector=metadata.name!%3Db&labelSelector=parity%3Dodd", &["d", "f"][..]),
    ] {
        let list = client.get(&format!("{MAPS}?{query}")).await.expect(200).json();
        assert_eq!(names(&list), expected, "{query}");
    }
    client.get(&format!("{MAPS}?fieldSelector=data.k%3Dv")).await.expect(400);
    client.get(&format!("{MAPS}?labelSelector=%21%21")).await.expect(400);
    let (path, mut widget) = widgets(&client).await;
    client.post(&path, &widget).await.expect(201);
    widget["metadata"]["name"] = "green".into();
    widget["spec"]["color"] = "green".into();
    client.post(&path, &widget).await.expect(201);
    let green = client.get(&format!("{path}?fieldSelector=spec.color%3Dgreen")).await.expect(200).json();
    assert_eq!(names(&green), ["green"]);
}

#[tokio::test]
async fn versions_can_be_asked_for() {
    let client = six().await;
    let now = client.get(MAPS).await.json()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    client.delete(&format!("{MAPS}/a")).await.expect(200);
    let exact = format!("{MAPS}?resourceVersion={now}&resourceVersionMatch=Exact");
    assert_eq!(names(&client.get(&exact).await.expect(200).json()).len(), 6);
    let newer = format!("{MAPS}?resourceVersion={now}&resourceVersionMatch=NotOlderThan");
    assert_eq!(names(&client.get(&newer).await.expect(200).json()).len(), 5);
    client.get(&format!("{MAPS}?resourceVersion=x")).await.expect(400);
}

#[tokio::test(start_paused = true)]
async fn a_version_from_the_future_is_too_large() {
    let client = Client::over(&Store::in_step(transom_store::Options::default())).await;
    let future = client.get(&format!("{MAPS}?resourceVersion=1000000")).await.expect(504).json();
    assert_eq!(future["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}

#[tokio::test]
async fn objects_are_sent_as_tables_and_as_metadata() {
    let client = six().await;
    let accept = |form: &str| [("accept", format!("application/json;as={form};v=v1;g=meta.k8s.io"))];
    let get = |path: String, form: &str| {
        let (client, headers) = (client.clone(), accept(form));
        async move { client.send_with(Method::GET, &path, &headers, &Value::Null).await.expect(200).json() }
    };
    let table = get(MAPS.into(), "Table").await;
    assert_eq!((&table["kind"], table["rows"].as_array().unwrap().len()), (&json!("Table"), 6));
    assert_eq!(table["rows"][0]["cells"][0], "a");
    let metadata = get(format!("{MAPS}/a"), "PartialObjectMetadata").await;
    assert_eq!((&metadata["kind"], metadata.get("data")), (&json!("PartialObjectMetadata"), None));
}

#[tokio::test]
async fn what_is_not_served_is_not_found() {
    let client = Client::in_memory().await;
    for path in
        ["/api/v1/namespaces/default/nonsense", "/apis/example.org/v1/widgets", "/api/v1/configmaps/a"]
    {
        client.get(path).await.expect(404);
    }
    let missing = client.get(&format!("{MAPS}/none")).await.expect(404).json();
    assert_eq!((&missing["reason"], &missing["details"]["name"]), (&json!("NotFound"), &json!("none")));
    client.post(&format!("{MAPS}/none"), &config_map("none")).await.expect(405);
}
