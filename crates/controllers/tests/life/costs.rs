//! What a composite resource costs, counted: requests, writes and events.

use crate::life::basics::{XR, things, xr};
use crate::life::fixture::*;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use transom_function::{Ready, Resource};

/// A function that composes so many ConfigMaps. They are ready as soon as they are observed, unless they are held up.
async fn pages(plane: &Plane, count: usize, held_up: Arc<AtomicBool>) {
    plane
        .function("pages", move |mut request| {
            let mut response = request.start_response();
            let size = request.observed_composite().get_str("spec.size").unwrap_or("none").to_owned();
            for page in 0..count {
                let name = format!("page-{page:04}");
                let mut object = config_map(&json!({"size": size}));
                object["metadata"] = json!({"namespace": "default"});
                let mut wanted = Resource::new(object)?;
                let is_ready = request.observed_composed(&name).is_some() && !held_up.load(Ordering::SeqCst);
                wanted.set_ready(if is_ready { Ready::True } else { Ready::False });
                response.set_composed(name, wanted);
            }
            response.meta.get_or_insert_default().ttl = None;
            Ok(response)
        })
        .await;
}

async fn with_pages(count: usize) -> Plane {
    with_pages_held_up(count, Arc::default()).await
}

async fn with_pages_held_up(count: usize, held_up: Arc<AtomicBool>) -> Plane {
    let plane = Plane::new().await;
    pages(&plane, count, held_up).await;
    things(&plane, &["pages"]).await;
    plane.until_idle().await;
    plane
}

/// The most events about a new composite resource.
const EVENTS_MAX: usize = 3;
/// How an event names the revision of the function.
const REVISION_OF_PAGES: &str = "by FunctionRevisions pages-";

/// The writes of the controllers since so many, without names and queries.
fn writes_since(plane: &Plane, before: u64) -> Vec<String> {
    let before = usize::try_from(before).unwrap();
    let short = |line: &String| {
        let line = line.split('?').next().unwrap_or_default();
        let (method, path) = line.split_once(' ').unwrap_or_default();
        let is_part = path.contains("/configmaps/");
        format!("{method} {}", if is_part { "part" } else { path.rsplit("/xthings/").next().unwrap_or(path) })
    };
    plane.log()[before..].iter().map(short).collect()
}

#[tokio::test]
async fn a_new_composite_resource_is_written_twice() {
    let plane = with_pages(4).await;
    let before = plane.writes();
    plane.apply(&xr("one", "small")).await;
    plane.until_true(XR, "one", "Ready").await;
    plane.until_idle().await;
    let parts = ["PATCH part"; 4];
    let expected = [&["PUT one"], &parts[..], &["PATCH one/status"]].concat();
    assert_eq!(writes_since(&plane, before), expected, "references, what they refer to, and the status");
    let events = plane.events_of("one").await;
    assert!(events.len() <= EVENTS_MAX, "{events:#?}");
    assert!(events.iter().any(|event| event.contains(REVISION_OF_PAGES)), "{events:#?}");

    // The second time only what changed is written.
    let before = plane.writes();
    plane.patch(XR, "one", json!({"spec": {"size": "large"}})).await;
    let all_large = async || {
        let parts = plane.list("v1/ConfigMap").await;
        parts.iter().filter(|part| part["data"]["size"] == "large").count() == 4
    };
    while !all_large().await {
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    plane.until_idle().await;
    let mut written = writes_since(&plane, before);
    let status = written.pop();
    assert_eq!(written, parts);
    assert_eq!(status.as_deref(), Some("PATCH one/status"), "the generation that conditions are of");

    // So it is with what another client changed or deleted, of which the status says nothing. Times are in seconds: one
    // that changed would show after a second.
    plane.after(std::time::Duration::from_millis(1_100)).await;
    let name = plane
        .list("v1/ConfigMap")
        .await
        .iter()
        .find(|p| p["data"]["size"] == "large")
        .map(|part| format!("default/{}", part["metadata"]["name"].as_str().unwrap_or_default()));
    let name = name.expect("there are parts");
    let before = plane.writes();
    plane.patch("v1/ConfigMap", &name, json!({"data": {"size": "drifted"}})).await;
    plane.until("v1/ConfigMap", &name, |part| part["data"]["size"] == "large").await;
    plane.delete("v1/ConfigMap", &name).await;
    plane.until("v1/ConfigMap", &name, |part| part["data"]["size"] == "large").await;
    plane.until_idle().await;
    assert_eq!(writes_since(&plane, before), ["PATCH part"; 2]);
}

#[tokio::test]
async fn a_new_composite_resource_that_is_not_ready_at_first_has_no_more_events() {
    let held_up = Arc::new(AtomicBool::new(true));
    let plane = with_pages_held_up(4, held_up.clone()).await;
    plane.apply(&xr("one", "small")).await;
    plane.until(XR, "one", |o| message_of(o, "Ready").starts_with("Unready resources: page-0000")).await;
    plane.until_idle().await;
    let events = plane.events_of("one").await;
    assert!(events.len() <= EVENTS_MAX, "{events:#?}");
    let unready = events.iter().find(|event| event.contains("are not yet ready")).expect("an event says so");
    assert!(unready.contains(REVISION_OF_PAGES), "{unready}");
    held_up.store(false, Ordering::SeqCst);
    plane.patch(XR, "one", json!({"spec": {"size": "large"}})).await;
    plane.until_true(XR, "one", "Ready").await;
    plane.until_idle().await;
    assert_eq!(plane.events_of("one").await, events);
}

/// Everything that the controllers ask for one new composite resource of so many parts, events included.
async fn requests(count: usize) -> usize {
    let plane = with_pages(count).await;
    plane.take_reads();
    let (before, events) = (plane.writes(), plane.list("v1/Event").await.len());
    plane.apply(&xr("one", "small")).await;
    plane.until_true(XR, "one", "Ready").await;
    plane.until_idle().await;
    let reads = plane.take_reads().iter().filter(|read| !read.contains("watch=true")).count();
    let written = usize::try_from(plane.writes() - before).unwrap();
    reads + written + plane.list("v1/Event").await.len() - events
}

#[tokio::test]
async fn the_number_of_requests_grows_with_that_of_composed_resources() {
    for count in [50, 200] {
        let sent = requests(count).await;
        // An apply for each and at most a look at each, and a few that do not depend on how many there are.
        assert!((count..=2 * count + 20).contains(&sent), "{sent} requests for {count} resources");
    }
}

#[tokio::test]
async fn few_large_composite_resources_are_written_at_a_time() {
    const PARTS: usize = 260;
    let names: Vec<String> = (0..8).map(|number| format!("large-{number}")).collect();
    let plane = with_pages(PARTS).await;
    let before = usize::try_from(plane.writes()).unwrap();
    for name in &names {
        plane.apply(&xr(name, "small")).await;
    }
    for name in &names {
        plane.until_true(XR, name, "Ready").await;
    }
    let log = plane.log();
    let writes_of = |name: &str| {
        let part = format!("/configmaps/{name}-");
        let of: Vec<usize> = (before..log.len()).filter(|line| log[*line].contains(&part)).collect();
        assert!(of.len() >= PARTS, "{name}: {}", of.len());
        of[0]..of[of.len() - 1]
    };
    let written: Vec<_> = names.iter().map(|name| writes_of(name)).collect();
    let at_once = written.iter().map(|one| written.iter().filter(|other| other.contains(&one.start)).count());
    let most = at_once.max().unwrap_or_default();
    assert!((2..=4).contains(&most), "{most} at a time");
}
