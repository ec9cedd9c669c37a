//! Composite resources while their Composition appears or changes: nothing that solves itself is reported as a failure.

use crate::life::basics::*;
use crate::life::fixture::*;
use serde_json::Value;
use std::sync::{Arc, Mutex};

const REVISIONS: &str = "/apis/apiextensions.crossplane.io/v1/compositionrevisions";

fn failures(seen: &Arc<Mutex<Vec<Value>>>) -> Vec<String> {
    let seen = seen.lock().unwrap();
    let failed = seen.iter().filter(|o| status_of(o, "Synced") == "False");
    failed.map(|o| format!("{}: {}", o["metadata"]["name"], message_of(o, "Synced"))).collect()
}

async fn warnings(plane: &Plane) -> Vec<String> {
    let events = plane.list("v1/Event").await;
    let about = events.iter().filter(|e| e["involvedObject"]["kind"] == "XThing" && e["type"] == "Warning");
    about.map(|e| e["message"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The Composition of all things, in another state for each number.
fn composing(state: usize) -> String {
    let labelled = format!("metadata: {{name: things, labels: {{state: 's{state}'}}}}");
    composition("things", &["sizer"]).replace("metadata: {name: things}", &labelled)
}

#[tokio::test]
async fn a_changed_composition_raises_no_alarm() {
    let plane = Plane::new().await;
    sizer(&plane).await;
    plane.apply(&definition("Cluster", false)).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    // Right after it is created, too: it does not wait for the revision.
    plane.apply(&composing(0)).await;
    let seen = plane.record(XR, "xthings").await;
    let names: Vec<String> = (0..300).map(|i| format!("thing-{i}")).collect();
    for name in &names {
        plane.apply(&xr(name, "small")).await;
    }
    for name in &names {
        plane.until_true(XR, name, "Ready").await;
    }
    for state in 1..=2 {
        plane.apply(&composing(state)).await;
        let revisions = plane.list(REVISION).await;
        assert!(revisions.len() <= state + 1);
        let label = format!("s{state}");
        let revision = loop {
            let revisions = plane.list(REVISION).await;
            if let Some(r) = revisions.iter().find(|r| r["metadata"]["labels"]["state"] == label.as_str()) {
                break r["metadata"]["name"].clone();
            }
        };
        for name in &names {
            plane
                .until(XR, name, |o| o["spec"]["crossplane"]["compositionRevisionRef"]["name"] == revision)
                .await;
        }
    }
    plane.until_idle().await;
    assert!(seen.lock().unwrap().len() > 900, "the watch saw the changes");
    assert_eq!(failures(&seen), Vec::<String>::new());
    assert_eq!(warnings(&plane).await, Vec::<String>::new());
    let errors = plane.metrics.render();
    let failed = errors.lines().filter(|l| {
        l.starts_with("controller_runtime_reconcile_errors_total")
            && l.contains("composite/")
            && !l.ends_with(" 0")
    });
    assert_eq!(failed.collect::<Vec<_>>(), Vec::<&str>::new());
}

#[tokio::test]
async fn a_revision_is_used_before_its_status_is_written() {
    let plane = with_things("Cluster", false).await;
    let seen = plane.record(XR, "xthings").await;
    plane.apply(&xr("one", "small")).await;
    plane.until_true(XR, "one", "Ready").await;
    let first = plane.get(XR, "one").await.unwrap()["spec"]["crossplane"]["compositionRevisionRef"].clone();
    // The verdict on revisions cannot be written any more.
    plane.refuse(&format!("PUT {REVISIONS}"));
    plane.apply(&composing(7)).await;
    let moved = plane.until(XR, "one", |o| o["spec"]["crossplane"]["compositionRevisionRef"] != first).await;
    let name = moved["spec"]["crossplane"]["compositionRevisionRef"]["name"].as_str().unwrap();
    assert_eq!(status_of(&plane.get(REVISION, name).await.unwrap(), "ValidPipeline"), "");
    plane.apply(&xr("one", "large")).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "large").await;
    plane.refuse("");
    plane.until_true(REVISION, name, "ValidPipeline").await;
    plane.until_idle().await;
    assert_eq!((failures(&seen), warnings(&plane).await), (vec![], vec![]));
}

#[tokio::test]
async fn a_composition_without_its_revision_is_waited_for() {
    let plane = Plane::new().await;
    sizer(&plane).await;
    plane.apply(&definition("Cluster", false)).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    plane.refuse(&format!("POST {REVISIONS}"));
    plane.apply(&composing(0)).await;
    let seen = plane.record(XR, "xthings").await;
    plane.apply(&xr("one", "small")).await;
    plane.until(XR, "one", |o| o["spec"]["crossplane"]["compositionRef"]["name"] == "things").await;
    plane.until_idle().await;
    assert_eq!(plane.list(REVISION).await, Vec::<Value>::new());
    plane.refuse("");
    plane.until_true(XR, "one", "Ready").await;
    plane.until_idle().await;
    assert_eq!((failures(&seen), warnings(&plane).await), (vec![], vec![]));
}
