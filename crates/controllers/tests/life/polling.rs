//! Without watches: composite resources are looked at again and again.

use crate::life::basics::*;
use crate::life::fixture::*;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use transom_function::{Ready, ResourceSelector};
use transom_object::meta;

const MS: Duration = Duration::from_millis(1);

async fn plane(poll_interval: Duration) -> Plane {
    let mut plane = Plane::quiet().await;
    plane.options.realtime = false;
    plane.options.poll_interval = poll_interval;
    plane.start().await;
    plane
}

#[tokio::test]
async fn without_realtime_nothing_is_watched_and_drift_is_found_by_looking() {
    let plane = plane(MS * 400).await;
    sizer(&plane).await;
    plane.apply(&definition("Cluster", false)).await;
    plane.apply(&composition("things", &["sizer"])).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    plane.apply(&xr("one", "small")).await;
    let name = composed_name(&plane.until_true(XR, "one", "Ready").await);
    assert!(plane.watched_kinds().iter().all(|gvk| gvk.kind != "ConfigMap"), "{:?}", plane.watched_kinds());
    plane.patch("v1/ConfigMap", &name, json!({"data": {"size": "huge"}})).await;
    plane.until("v1/ConfigMap", &name, |o| o["data"]["size"] == "small").await;
    // Itself it still follows.
    plane.apply(&xr("one", "large")).await;
    plane.until("v1/ConfigMap", &name, |o| o["data"]["size"] == "large").await;
}

#[tokio::test]
async fn without_realtime_what_is_unready_is_looked_at_soon_and_what_is_ready_is_not() {
    let plane = plane(Duration::from_secs(3600)).await;
    let (runs, is_ready) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (counted, says) = (runs.clone(), is_ready.clone());
    plane
        .function("slow", move |mut request| {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut response = request.start_response();
            // Does not count without watches.
            response.set_ttl(MS * 10);
            let mut map = config_map(&json!({"a": "b"}));
            meta::set_namespace(&mut map, "default");
            let mut resource = ready(map);
            if !says.load(Ordering::SeqCst) {
                resource.set_ready(Ready::False);
            }
            response.set_composed("config", resource);
            let mut selector = ResourceSelector::all("v1", "ConfigMap");
            selector.namespace = Some("default".to_owned());
            response.require("maps", selector);
            Ok(response)
        })
        .await;
    plane.apply(&definition("Cluster", false)).await;
    plane.apply(&composition("things", &["slow"])).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    plane.apply(&xr("one", "small")).await;
    plane.until(XR, "one", |o| reason_of(o, "Ready") == "Creating").await;
    plane.until_idle().await;
    let before = runs.load(Ordering::SeqCst);
    is_ready.store(true, Ordering::SeqCst);
    plane.until_true(XR, "one", "Ready").await;
    let after = runs.load(Ordering::SeqCst);
    assert!(after > before, "it is tried again, with backoff");
    plane.until_idle().await;
    let settled = runs.load(Ordering::SeqCst);
    // Neither its TTL nor what it requires nor what it composes wakes it any longer.
    plane.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new, namespace: default}\n").await;
    plane.after(MS * 1500).await;
    assert_eq!(runs.load(Ordering::SeqCst), settled);
}
