//! What wakes a composite resource, and what does not.

use crate::life::basics::*;
use crate::life::fixture::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use transom_function::ResourceSelector;

/// How often each composite resource was composed.
pub(super) type Runs = Arc<Mutex<BTreeMap<String, usize>>>;

pub(super) fn runs_of(runs: &Runs, name: &str) -> usize {
    runs.lock().unwrap().get(name).copied().unwrap_or_default()
}

/// A function that requires the ConfigMap that the composite resource names with its size, and reports what is in it.
pub(super) async fn reader(plane: &Plane) -> Runs {
    let runs = Runs::default();
    let counted = runs.clone();
    plane
        .function("reader", move |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            let xr = request.observed_composite();
            let name = xr.get_str("metadata.name")?.to_owned();
            let wanted = xr.get_str("spec.size")?.to_owned();
            *counted.lock().unwrap().entry(name).or_default() += 1;
            let mut selector = match wanted.strip_prefix("label-") {
                Some(value) => ResourceSelector::labelled("v1", "ConfigMap", [("app", value)]),
                None => ResourceSelector::named("v1", "ConfigMap", wanted.as_str()),
            };
            selector.namespace = Some("default".to_owned());
            response.require("it", selector);
            let found = request.required("it").unwrap_or_default();
            let says: Vec<String> =
                found.iter().filter_map(|r| r.object()["data"]["says"].as_str().map(str::to_owned)).collect();
            response.composite().set("status.size", says.join("+"))?;
            Ok(response)
        })
        .await;
    runs
}

pub(super) fn config(name: &str, says: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default, labels: {{app: {name}}}}}\ndata: {{says: {says}}}\n"
    )
}

async fn plane() -> (Plane, Runs) {
    let plane = Plane::new().await;
    let runs = reader(&plane).await;
    plane.apply(&definition("Cluster", false)).await;
    plane.apply(&composition("things", &["reader"])).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    (plane, runs)
}

#[tokio::test]
async fn required_resources() {
    let (plane, runs) = plane().await;
    plane.apply(&config("a", "hello")).await;
    plane.apply(&xr("reads-a", "a")).await;
    plane.apply(&xr("reads-b", "b")).await;
    plane.apply(&xr("selects-a", "label-a")).await;
    let first = plane.until(XR, "reads-a", |o| o["status"]["size"] == "hello").await;
    assert_eq!(
        first["status"]["watchedResourceRefs"],
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "default"}])
    );
    plane.until(XR, "selects-a", |o| o["status"]["size"] == "hello").await;
    plane.until_true(XR, "reads-b", "Ready").await;
    plane.until_idle().await;
    let before = runs_of(&runs, "reads-b");
    plane.apply(&config("a", "world")).await;
    plane.until(XR, "reads-a", |o| o["status"]["size"] == "world").await;
    plane.until(XR, "selects-a", |o| o["status"]["size"] == "world").await;
    plane.until_idle().await;
    assert_eq!(runs_of(&runs, "reads-b"), before, "it does not read a");
    plane.apply(&config("b", "at last")).await;
    plane.until(XR, "reads-b", |o| o["status"]["size"] == "at last").await;
    plane.delete("v1/ConfigMap", "default/a").await;
    plane.until(XR, "selects-a", |o| o["status"]["size"] == "").await;
}

#[tokio::test]
async fn extra_resources_can_be_turned_off() {
    let mut plane = Plane::quiet().await;
    plane.options.extra_resources = false;
    plane.start().await;
    reader(&plane).await;
    plane.apply(&definition("Cluster", false)).await;
    plane.apply(&composition("things", &["reader"])).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    plane.apply(&config("a", "hello")).await;
    plane.apply(&xr("reads-a", "a")).await;
    let refused = plane.until(XR, "reads-a", |o| status_of(o, "Synced") == "False").await;
    let why = message_of(
        &plane.until(XR, "reads-a", |o| message_of(o, "Synced").contains("turned off")).await,
        "Synced",
    )
    .to_owned();
    assert!(why.contains("step \"reader\""), "{why} {refused}");
}

#[tokio::test]
async fn nothing_happens_without_a_reason() {
    let (plane, runs) = plane().await;
    plane.apply(&config("a", "hello")).await;
    plane.apply(&xr("reads-a", "a")).await;
    plane.until(XR, "reads-a", |o| o["status"]["size"] == "hello" && status_of(o, "Ready") == "True").await;
    plane.until_idle().await;
    let before = runs_of(&runs, "reads-a");
    assert!(before <= 4, "composed {before} times to become ready");
    plane.apply(&config("unrelated", "x")).await;
    plane.until_idle().await;
    assert_eq!(runs_of(&runs, "reads-a"), before);
    assert!(plane.watched_kinds().iter().any(|gvk| gvk.kind == "ConfigMap"));
}

#[tokio::test]
async fn a_request_to_reconcile_is_handled_once() {
    let (plane, runs) = plane().await;
    plane.apply(&config("a", "hello")).await;
    plane.apply(&xr("reads-a", "a")).await;
    plane.until_true(XR, "reads-a", "Ready").await;
    plane.until_idle().await;
    let before = runs_of(&runs, "reads-a");
    let token = json!({"metadata": {"annotations": {"crossplane.io/reconcile-requested-at": "now"}}});
    plane.patch(XR, "reads-a", token).await;
    plane.until(XR, "reads-a", |o| o["status"]["lastHandledReconcileAt"] == "now").await;
    plane.until_idle().await;
    assert!(runs_of(&runs, "reads-a") > before);
    let events = plane.events_of("reads-a").await;
    assert_eq!(events.iter().filter(|e| e.contains("ReconcileRequestHandled")).count(), 1, "{events:#?}");
}

#[tokio::test]
async fn polling_only_if_asked_for() {
    let (plane, runs) = plane().await;
    plane.apply(&config("a", "hello")).await;
    let polled = xr("polls", "a")
        .replace("{name: polls}", "{name: polls, annotations: {crossplane.io/poll-interval: 1ms}}");
    plane.apply(&polled).await;
    plane.apply(&xr("waits", "a")).await;
    plane.until_true(XR, "polls", "Ready").await;
    plane.until_true(XR, "waits", "Ready").await;
    plane.until_idle().await;
    let (polls, waits) = (runs_of(&runs, "polls"), runs_of(&runs, "waits"));
    let seconds = plane.after_steps(Duration::from_millis(500), 5).await;
    let polled = runs_of(&runs, "polls") - polls;
    assert!((1..=1 + seconds).contains(&polled), "once a second, not {polled} times in {seconds}");
    assert_eq!(runs_of(&runs, "waits"), waits);
}

#[tokio::test]
async fn a_paused_composite_resource_does_nothing_until_it_is_not() {
    let plane = with_things("Cluster", false).await;
    let paused = xr("one", "small")
        .replace("{name: one}", "{name: one, annotations: {crossplane.io/paused: \"true\"}}");
    plane.apply(&paused).await;
    let waiting = plane.until(XR, "one", |o| reason_of(o, "Synced") == "ReconcilePaused").await;
    assert_eq!(
        message_of(&waiting, "Synced"),
        "Reconciliation (including deletion) is paused via the pause annotation"
    );
    assert!(waiting["metadata"].get("finalizers").is_none());
    plane.patch(XR, "one", json!({"metadata": {"annotations": {"crossplane.io/paused": "no"}}})).await;
    plane.until_true(XR, "one", "Ready").await;
}

#[tokio::test]
async fn a_circuit_closes_once_the_changes_have_stopped() {
    let plane = with_things("Cluster", false).await;
    plane.apply(&xr("one", "small")).await;
    let ready = plane.until_true(XR, "one", "Ready").await;
    let (name, mut changes) = (composed_name(&ready), 0);
    let is_open = async || {
        let xr = plane.get(XR, "one").await.unwrap();
        reason_of(&xr, "Responsive") == "WatchCircuitOpen" && plane.metrics.queues().slowed > 0
    };
    while !is_open().await {
        assert!(changes < 1000, "{changes} changes open no circuit");
        plane.patch("v1/ConfigMap", &name, json!({"data": {"size": changes.to_string()}})).await;
        changes += 1;
    }
    plane.until("v1/ConfigMap", &name, |o| o["data"]["size"] == "small").await;
    // One wake-up becomes available in a second; the reconcile that finds the circuit closed takes one itself.
    plane.after(Duration::from_millis(2500)).await;
    plane.patch(XR, "one", json!({"metadata": {"annotations": {"look": "again"}}})).await;
    let closed = plane.until(XR, "one", |o| status_of(o, "Responsive") == "True").await;
    assert_eq!(reason_of(&closed, "Responsive"), "WatchCircuitClosed");
    assert_eq!(message_of(&closed, "Responsive"), "");
    assert!(plane.metrics.queues().recovered > 0);
}

#[tokio::test]
async fn a_storm_is_survived_and_its_last_event_counts() {
    let plane = with_things("Cluster", false).await;
    plane.apply(&xr("one", "small")).await;
    plane.apply(&xr("calm", "small")).await;
    let ready = plane.until_true(XR, "one", "Ready").await;
    plane.until_true(XR, "calm", "Ready").await;
    let name = composed_name(&ready);
    for i in 0..150 {
        plane.patch("v1/ConfigMap", &name, json!({"data": {"size": format!("storm-{i}")}})).await;
        if i % 3 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    plane.until("v1/ConfigMap", &name, |o| o["data"]["size"] == "small").await;
    plane.apply(&xr("calm", "large")).await;
    plane.until(XR, "calm", |o| o["status"]["size"] == "large").await;
}
