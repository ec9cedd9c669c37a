//! What requests cost, and what they do not: objects of other kinds and namespaces add nothing to a request, and a write that
//! changes nothing costs no write.

use crate::client::{Client, config_map, widgets};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::time::Duration;
use transom_object::Header;
use transom_store::{Durability, Expect, Key, Put, Store, Write, WriteOp};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Objects of other kinds and namespaces, each.
const OTHERS: usize = 10_000;
/// Requests of each kind.
const ATTEMPTS: usize = 40;
/// How much more a request may cost among all these objects than without them: the maps of the store are deeper. One that
/// looked at each of them would cost tens of times more.
const FACTOR_MAX: u32 = 4;

/// The processor time of this thread, on which the requests of a test are computed. It advances by nanoseconds, and not while other
/// threads and processes run.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("a time since the thread began")
}

/// The processor time of some requests together; each is made by its number. Part of what a request starts, such as a watch, is
/// computed while the next one is made.
async fn cost(request: impl AsyncFn(usize)) -> Duration {
    let before = processor_time();
    for attempt in 0..ATTEMPTS {
        request(attempt).await;
    }
    processor_time() - before
}

/// What each kind of request in the default namespace costs.
async fn costs(client: &Client, run: &str) -> [(&'static str, Duration); 6] {
    let get = async |_| drop(client.get(&format!("{MAPS}/own")).await.expect(200));
    let list = async |_| drop(client.get(MAPS).await.expect(200));
    let update = async |attempt: usize| {
        let mut object = config_map("own");
        object["data"]["k"] = format!("{run} {attempt}").into();
        client.put(&format!("{MAPS}/own"), &object).await.expect(200);
    };
    let create = async |attempt: usize| {
        client.post(MAPS, &config_map(&format!("{run}-{attempt}"))).await.expect(201);
    };
    let delete = async |attempt: usize| {
        client.delete(&format!("{MAPS}/{run}-{attempt}")).await.expect(200);
    };
    let watch = async |_| {
        let path = format!("{MAPS}?watch=true&fieldSelector=metadata.name%3Down");
        let request = Request::get(path).body(Full::<Bytes>::default());
        let mut body = client.open(request.expect("a request")).await.into_body();
        body.frame().await.expect("the object").expect("a frame");
    };
    [
        ("get", cost(get).await),
        ("list", cost(list).await),
        ("update", cost(update).await),
        ("create", cost(create).await),
        ("delete", cost(delete).await),
        ("watch", cost(watch).await),
    ]
}

/// Stores an object without a request: nothing here reads it.
async fn store_object(store: &Store, resource: &str, namespace: &str, name: &str) {
    let head = format!(r#"{{"metadata":{{"name":"{name}","namespace":"{namespace}","resourceVersion":""#);
    let revision_at = u32::try_from(head.len()).expect("a short text");
    let body = format!(r#"{head}"}}}}"#).into_bytes();
    let put = WriteOp::Put(Put { body, revision_at, header: Header::default() });
    let (key, expect, durability) =
        (Key::new(resource, namespace, name), Expect::Absent, Durability::Relaxed);
    store.commit(Write { key, expect, op: put, durability }).await.expect("it is stored");
}

#[tokio::test]
async fn objects_of_other_kinds_and_namespaces_cost_a_request_nothing() {
    // Writes are computed on this thread, too.
    let store = Store::in_step(transom_store::Options::default());
    let client = Client::over(&store).await;
    client.post(MAPS, &config_map("own")).await.expect(201);
    let alone = costs(&client, "alone").await;
    for i in 0..OTHERS {
        store_object(&store, "configmaps", &format!("other-{}", i % 10), &format!("map-{i}")).await;
        store_object(&store, "secrets", "default", &format!("secret-{i}")).await;
    }
    let other = client.get("/api/v1/configmaps?limit=1").await.expect(200).json();
    let others = other["metadata"]["remainingItemCount"].as_u64().expect("there are more");
    assert!(others >= OTHERS as u64, "they are where the server looks: {others}");
    for ((request, before), (_, among)) in alone.into_iter().zip(costs(&client, "among").await) {
        assert!(!before.is_zero(), "{request}: it was not measured");
        assert!(among <= before * FACTOR_MAX, "{request}: {before:?} without others, {among:?} among them");
    }
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_not_written() {
    let store = Store::in_memory(transom_store::Options::default());
    let client = Client::over(&store).await;
    let (path, widget) = widgets(&client).await;
    client.post(&path, &widget).await.expect(201);
    let (one, status) = (format!("{path}/w"), format!("{path}/w/status"));
    let apply = format!("{one}?fieldManager=m&force=true");
    client.send(Method::PATCH, &apply, "application/apply-patch+yaml", &widget).await.expect(200);
    let spec = json!({"spec": {"replicas": 2}});
    let replace = json!([{"op": "replace", "path": "/spec/replicas", "value": 2}]);
    let stored = client.get(&one).await.expect(200).json();
    let (revision, put, patch) = (store.revision(), Method::PUT, Method::PATCH);
    for (method, path, media, body) in [
        (&put, &one, "application/json", &stored),
        (&put, &status, "application/json", &stored),
        (&patch, &one, "application/merge-patch+json", &spec),
        (&patch, &one, "application/json-patch+json", &replace),
        (&patch, &apply, "application/apply-patch+yaml", &widget),
    ] {
        let answer = client.send(method.clone(), path, media, body).await.expect(200).json();
        assert_eq!(answer["metadata"]["resourceVersion"], stored["metadata"]["resourceVersion"], "{media}");
        assert_eq!(store.revision(), revision, "{method} {path} {media}: there is no event");
    }
    let change = json!({"spec": {"replicas": 3}});
    client.send(patch, &one, "application/merge-patch+json", &change).await.expect(200);
    assert!(store.revision() > revision, "a change is written");
}

#[tokio::test]
async fn responses_are_the_bytes_that_are_stored() {
    let store = Store::in_memory(transom_store::Options::default());
    let client = Client::over(&store).await;
    client.post(MAPS, &config_map("own")).await.expect(201);
    let entry = store.get(&Key::new("configmaps", "default", "own")).expect("it is stored");
    let stored = std::str::from_utf8(&entry.body).expect("JSON is text");
    for path in [MAPS.to_owned(), format!("{MAPS}/own")] {
        let response = client.get(&path).await.expect(200).text();
        assert!(response.contains(stored), "{path}: {response} is not made of {stored}");
    }
}
