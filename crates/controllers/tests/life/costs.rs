//! What a composite resource costs, counted: requests, writes and events.

use crate::life::basics::{XR, things, xr};
use crate::life::fixture::*;
use serde_json::json;
use transom_function::{Ready, Resource};

/// A function that composes so many ConfigMaps. They are ready as soon as they are observed.
async fn pages(plane: &Plane, count: usize) {
    plane
        .function("pages", move |mut request| {
            let mut response = request.start_response();
            let size = request.observed_composite().get_str("spec.size").unwrap_or("none").to_owned();
            for page in 0..count {
                let name = format!("page-{page:04}");
                let mut object = config_map(&json!({"size": size}));
                object["metadata"] = json!({"namespace": "default"});
                let mut wanted = Resource::new(object)?;
                let exists = request.observed_composed(&name).is_some();
                wanted.set_ready(if exists { Ready::True } else { Ready::False });
                response.set_composed(name, wanted);
            }
            response.meta.get_or_insert_default().ttl = None;
            Ok(response)
        })
        .await;
}

async fn with_pages(count: usize) -> Plane {
    let plane = Plane::new().await;
    pages(&plane, count).await;
    things(&plane, &["pages"]).await;
    plane.until_idle().await;
    plane
}

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
    assert!(events.len() <= 3, "{events:#?}");

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
