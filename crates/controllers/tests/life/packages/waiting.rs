//! Composite resources that wait for a function, and revisions that wait for the next one.

use super::functions::{Says, at};
use super::*;
use crate::life::basics::{XR, XRD, composition, definition, things, xr};
use serde_json::json;
use transom_function::testing::serve;

#[tokio::test]
async fn those_that_wait_for_a_function_do_not_wait_for_their_next_retry() {
    let plane = Plane::new().await;
    things(&plane, &["remote"]).await;
    plane.apply(&xr("one", "small")).await;
    plane.until(XR, "one", |o| message_of(o, "Synced").contains("no such Function is installed")).await;
    plane.until_idle().await;
    let address = serve(Says("one")).await.to_string();
    plane.apply(&at(&address)).await;
    plane.until_without_time(XR, "one", |o| o["status"]["size"] == "one").await;
}

/// The step selects by labels, and the Function has a revision without them. Neither the labels of a revision nor a new one wake
/// by a retry here: the clock stands still.
#[tokio::test]
async fn those_that_wait_for_a_revision_with_labels_do_not_wait_for_their_next_retry() {
    let plane = Plane::new().await;
    let selecting = composition("things", &["remote"]).replace(
        "functionRef: {name: remote}",
        "functionRef: {name: remote}, functionRevisionSelector: {matchLabels: {channel: alpha}}",
    );
    plane.apply(&definition("Cluster", false)).await;
    plane.apply(&selecting).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    let address = serve(Says("one")).await.to_string();
    plane.apply(&at(&address)).await;
    plane.until(FUNCTION, "remote", is_healthy).await;
    plane.apply(&xr("one", "small")).await;
    let words = "no active revision with the labels channel=alpha";
    plane.until(XR, "one", |o| message_of(o, "Synced").contains(words)).await;
    plane.until_idle().await;
    plane.patch(FUNCTION, "remote", json!({"metadata": {"labels": {"channel": "alpha"}}})).await;
    plane.until_without_time(XR, "one", |o| o["status"]["size"] == "one").await;

    // A revision whose labels are gone, and the next one, which is new.
    plane.patch(FUNCTION, "remote", json!({"metadata": {"labels": {"channel": null}}})).await;
    plane.patch(XR, "one", json!({"metadata": {"annotations": {"poke": "again"}}})).await;
    plane.until(XR, "one", |o| message_of(o, "Synced").contains(words)).await;
    plane.until_idle().await;
    let second = serve(Says("two")).await.to_string();
    plane.apply(&at(&second).replace("annotations:", "labels: {channel: alpha}, annotations:")).await;
    plane.until_without_time(XR, "one", |o| o["status"]["size"] == "two").await;
}

#[tokio::test]
async fn a_revision_that_has_not_reported_since_it_changed_stays_active_until_the_next_one_works() {
    let plane = Plane::new().await;
    let first = serve(Says("one")).await.to_string();
    plane.apply(&at(&first)).await;
    let function = plane.until(FUNCTION, "remote", is_healthy).await;
    let old = function["status"]["currentRevision"].as_str().unwrap().to_owned();
    // A revision that is paused reports no more: its spec is soon of a later generation than its conditions.
    let paused = json!({"metadata": {"annotations": {"crossplane.io/paused": "true"}}});
    plane.patch(FUNCTION_REVISION, &old, paused).await;
    plane.until(FUNCTION_REVISION, &old, |r| reason_of(r, "Synced") == "ReconcilePaused").await;
    plane.patch(FUNCTION, "remote", json!({"spec": {"skipDependencyResolution": true}})).await;
    let spec = plane.until(FUNCTION_REVISION, &old, |r| r["spec"]["skipDependencyResolution"] == true).await;
    assert_eq!(spec["spec"]["desiredState"], "Active");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let missing = listener.local_addr().unwrap().to_string();
    drop(listener);
    plane.apply(&at(&missing)).await;
    let is_next = |f: &Value| f["status"]["currentRevision"] != *old && status_of(f, "Healthy") == "False";
    plane.until(FUNCTION, "remote", is_next).await;
    plane.until_queues_are_idle().await;
    let state = async || plane.get(FUNCTION_REVISION, &old).await.unwrap()["spec"]["desiredState"].clone();
    assert_eq!(state().await, "Active");

    let second = serve(Says("two")).await.to_string();
    plane.apply(&at(&second)).await;
    plane.until(FUNCTION_REVISION, &old, |r| r["spec"]["desiredState"] == "Inactive").await;
    plane.until(FUNCTION, "remote", is_healthy).await;
}
