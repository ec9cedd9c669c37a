//! Required resources that are selected by labels: what finding them costs, and that they are never older than what
//! was written or read before.

use crate::life::basics::*;
use crate::life::fixture::*;
use crate::life::realtime::config;
use serde_json::json;
use std::sync::atomic::Ordering;
use transom_function::ResourceSelector;
use transom_object::meta;

/// A function that composes a ConfigMap with a label and selects everything that has it, in all namespaces.
async fn collector(plane: &Plane) {
    plane
        .function("collector", |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            let size = request.observed_composite().get_str("spec.size")?.to_owned();
            let mut own = config_map(&json!({"size": size}));
            meta::set_namespace(&mut own, "default");
            own["metadata"]["labels"] = json!({"app": "mine", "size": size});
            response.set_composed("own", ready(own));
            response.require(
                "all",
                ResourceSelector::labelled("v1", "ConfigMap", [("app", "mine"), ("size", &size)]),
            );
            let found = request.required("all").unwrap_or_default();
            response.composite().set("status.size", format!("{size}: {}", found.len()))?;
            Ok(response)
        })
        .await;
}

async fn plane() -> Plane {
    let plane = Plane::new().await;
    collector(&plane).await;
    plane.apply(&definition("Cluster", false)).await;
    plane.apply(&composition("things", &["collector"])).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    plane
}

#[tokio::test]
async fn a_selection_is_never_older_than_what_was_written() {
    let plane = plane().await;
    // Watches report late; objects that were just created, relabelled or released are still seen as they are.
    plane.wire.lag.store(150, Ordering::SeqCst);
    plane.apply(&xr("one", "a")).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "a: 1" && status_of(o, "Ready") == "True").await;
    plane.apply(&xr("two", "a")).await;
    for name in ["one", "two"] {
        plane.until(XR, name, |o| o["status"]["size"] == "a: 2").await;
    }
    plane.apply(&xr("two", "b")).await;
    plane.until(XR, "two", |o| o["status"]["size"] == "b: 1").await;
    plane.until(XR, "one", |o| o["status"]["size"] == "a: 1").await;
    plane.delete(XR, "one").await;
    plane.until_gone(XR, "one").await;
    plane.apply(&xr("two", "a")).await;
    plane.until(XR, "two", |o| o["status"]["size"] == "a: 1").await;
}

#[tokio::test]
async fn selecting_costs_nothing_for_what_is_not_selected() {
    let plane = plane().await;
    plane.apply(&xr("one", "a")).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "a: 1" && status_of(o, "Ready") == "True").await;
    plane.until_idle().await;
    let mut costs = Vec::new();
    for (round, others) in [(1, 0), (2, 600)] {
        for i in 0..others {
            plane.apply(&config(&format!("other-{i}"), "x").replace(&format!("other-{i}}}"), "mine}")).await;
        }
        plane.until_idle().await;
        plane.take_reads();
        plane.patch(XR, "one", json!({"metadata": {"annotations": {"round": round.to_string()}}})).await;
        plane.until_idle().await;
        let reads = plane.take_reads();
        let lists: Vec<&String> =
            reads.iter().filter(|r| !r.contains("watch=true") && r.contains("limit=")).collect();
        assert!(lists.is_empty(), "nothing is listed: {lists:#?}");
        costs.push(reads.iter().filter(|r| r.contains("/configmaps/")).count());
    }
    assert!(costs[0] > 0, "each that is selected is read");
    assert_eq!(costs[0], costs[1], "and no other");
}

#[tokio::test]
async fn a_watch_that_shows_nothing_is_not_waited_for() {
    let plane = plane().await;
    plane.hide("configmaps");
    plane.apply(&xr("one", "a")).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "a: 1" && status_of(o, "Ready") == "True").await;
    let reads = plane.take_reads();
    assert!(reads.iter().any(|r| r.contains("/configmaps?") && r.contains("labelSelector=")), "{reads:#?}");
}
