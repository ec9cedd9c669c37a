//! Functions that take all they can get: time, or turns. Others get theirs.

use crate::life::basics::*;
use crate::life::fixture::*;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use transom_function::{Error, Function, RunFunctionRequest, RunFunctionResponse, async_trait};
use transom_object::meta;

/// More than run at the same time.
const MANY: usize = 150;

struct Hanging(Arc<AtomicUsize>);

#[async_trait]
impl Function for Hanging {
    async fn run(&self, _: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    }
}

fn composed_by(name: &str, composition: &str) -> String {
    format!(
        "apiVersion: example.org/v1\nkind: XThing\nmetadata: {{name: {name}}}\n\
         spec: {{size: small, crossplane: {{compositionRef: {{name: {composition}}}}}}}\n"
    )
}

#[tokio::test]
async fn those_whose_function_hangs_do_not_keep_others_waiting() {
    let plane = with_things("Cluster", false).await;
    let called = Arc::new(AtomicUsize::new(0));
    plane.functions.router.run_in_process("hanging", Arc::new(Hanging(called.clone())));
    plane.apply(&composition("hangs", &["hanging"])).await;
    for i in 0..MANY {
        plane.apply(&composed_by(&format!("hung-{i}"), "hangs")).await;
    }
    // They hang for two minutes; everyone else has much less patience.
    plane.apply(&composed_by("well", "things")).await;
    plane.until_true(XR, "well", "Ready").await;
    plane.apply(&composed_by("well", "things").replace("small", "large")).await;
    plane.until(XR, "well", |o| o["status"]["size"] == "large").await;
    let deadline = std::time::Instant::now() + PATIENCE;
    while called.load(Ordering::SeqCst) < MANY {
        assert!(std::time::Instant::now() < deadline, "each of them has its turn");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// How many wake-ups run at once before a composite resource is slowed down.
const BURST: usize = 100;

/// A function that wants something else whenever it is asked. Counts how often that is.
async fn flapping(plane: &Plane, name: &str, by_name: bool) -> Arc<AtomicUsize> {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    plane
        .function(name, move |mut request| {
            let n = counted.fetch_add(1, Ordering::SeqCst);
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            let mut map = config_map(&json!({"n": n.to_string()}));
            meta::set_namespace(&mut map, "default");
            let name = if by_name { format!("map-{}", n % 2) } else { "map".to_owned() };
            response.set_composed(name, ready(map));
            Ok(response)
        })
        .await;
    calls
}

async fn flaps(by_name: bool) {
    let plane = with_things("Cluster", false).await;
    let calls = flapping(&plane, "flapping", by_name).await;
    plane.apply(&composition("flaps", &["flapping"])).await;
    let began = tokio::time::Instant::now();
    plane.apply(&composed_by("restless", "flaps")).await;
    plane.until(XR, "restless", |o| reason_of(o, "Responsive") == "WatchCircuitOpen").await;
    plane.apply(&composed_by("calm", "things")).await;
    plane.until_true(XR, "calm", "Ready").await;
    plane.until_idle().await;
    let before = calls.load(Ordering::SeqCst);
    for _ in 0..4 {
        plane.after(Duration::from_millis(500)).await;
    }
    let turns = calls.load(Ordering::SeqCst);
    assert!(turns > before, "it still has its turns");
    // Runs that a busy machine did not make in time are made up for later. Counted from the beginning, there are never more of
    // them than the burst, one a second, and one for the wake-up that waited for that second. A run calls twice at most.
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap();
    let most = 2 * (BURST + 2 * (seconds + 1));
    assert!(turns <= most, "{turns} calls in {seconds} seconds");
    // A function that settles is believed at once, and nothing is left of what it wanted before.
    plane.function("flapping", |mut request| Ok(request.start_response())).await;
    plane
        .until(XR, "restless", |o| {
            o["spec"]["crossplane"]["resourceRefs"].as_array().is_some_and(Vec::is_empty)
        })
        .await;
    let deadline = std::time::Instant::now() + PATIENCE;
    while plane.list("v1/ConfigMap").await.iter().any(|m| meta::name(m).starts_with("restless-")) {
        assert!(std::time::Instant::now() < deadline, "what it wanted last stays");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_function_that_wants_something_else_every_time_is_slowed_down() {
    flaps(false).await;
}

#[tokio::test]
async fn a_function_that_wants_other_resources_every_time_is_slowed_down() {
    flaps(true).await;
}
