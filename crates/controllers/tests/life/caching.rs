//! Answers of functions that are given again, in a control plane.

use crate::life::basics::*;
use crate::life::fixture::*;
use crate::life::realtime::{config, runs_of};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use transom_function::ResourceSelector;
use transom_runner::{CacheOptions, Cached};

/// A function that requires what its composite resource names, once it was called for the first time, and whose
/// answers hold for an hour, the first one included.
async fn patient(plane: &Plane) -> crate::life::realtime::Runs {
    let runs = Arc::new(Mutex::new(BTreeMap::new()));
    let counted = runs.clone();
    plane
        .function("patient", move |mut request| {
            let mut response = request.start_response();
            response.set_ttl(Duration::from_secs(3600));
            let xr = request.observed_composite();
            let name = xr.get_str("metadata.name")?.to_owned();
            let wanted = xr.get_str("spec.size")?.to_owned();
            *counted.lock().unwrap().entry(name).or_default() += 1;
            let mut selector = ResourceSelector::named("v1", "ConfigMap", wanted.as_str());
            selector.namespace = Some("default".to_owned());
            response.require("it", selector);
            let found = request.required("it").unwrap_or_default();
            let says = found.iter().find_map(|r| r.object()["data"]["says"].as_str().map(str::to_owned));
            response.composite().set("status.size", says.unwrap_or_else(|| "nothing".to_owned()))?;
            Ok(response)
        })
        .await;
    runs
}

#[tokio::test]
async fn cached_answers_are_those_to_the_same_question() {
    let mut plane = Plane::quiet().await;
    plane.runner = Some(Arc::new(Cached::new(plane.functions.router.clone(), CacheOptions::default())));
    plane.start().await;
    let runs = patient(&plane).await;
    plane.apply(&definition("Cluster", false)).await;
    plane.apply(&composition("things", &["patient"])).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    plane.apply(&config("a", "hello")).await;
    plane.apply(&xr("one", "a")).await;
    // Its first answer holds for an hour, and yet its second is asked for: it requires something.
    plane.until(XR, "one", |o| o["status"]["size"] == "hello" && status_of(o, "Ready") == "True").await;
    plane.until_idle().await;
    // A change to what it requires is another question, whatever holds.
    plane.apply(&config("a", "world")).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "world").await;
    plane.until_idle().await;

    // New controllers do not know what was required: their first request is not in the cache.
    plane.start().await;
    plane.until(XR, "one", |o| o["status"]["size"] == "world").await;
    plane.until_idle().await;
    let before = runs_of(&runs, "one");
    // But the next ask the same, in both iterations.
    plane.start().await;
    plane.until_idle().await;
    assert_eq!(runs_of(&runs, "one"), before, "every question was answered before");
    assert_eq!(plane.log(), Vec::<String>::new(), "and the answers are the same");
    // Nor is the first iteration's answer from before mistaken for that to what is there now.
    plane.apply(&config("a", "again")).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "again").await;
}
