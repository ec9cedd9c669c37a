//! Which Composition and which revision a composite resource uses.

use crate::life::basics::*;
use crate::life::fixture::*;
use serde_json::{Value, json};

/// A function that reports which Composition revision's step it is called for, by its input.
async fn teller(plane: &Plane) {
    plane
        .function("teller", |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            let input = request.input.as_ref().map(|i| i.as_value()["says"].clone()).unwrap_or_default();
            response.composite().set("status.size", input.as_str().unwrap_or_default())?;
            Ok(response)
        })
        .await;
}

fn telling(name: &str, says: &str, labels: &str) -> String {
    format!(
        "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {{name: {name}, labels: {labels}}}\n\
         spec:\n  compositeTypeRef: {{apiVersion: example.org/v1, kind: XThing}}\n  mode: Pipeline\n  pipeline:\n  \
         - step: tell\n    functionRef: {{name: teller}}\n    input: {{apiVersion: x/v1, kind: Input, says: {says}}}\n"
    )
}

async fn plane(more: &str) -> Plane {
    let plane = Plane::new().await;
    teller(&plane).await;
    plane
        .apply(&definition("Cluster", false).replace("  versions:", &format!("  {more}\n  versions:")))
        .await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    plane
}

fn machinery(xr: &Value) -> &Value {
    &xr["spec"]["crossplane"]
}

fn selecting(name: &str, more: &str) -> String {
    format!(
        "apiVersion: example.org/v1\nkind: XThing\nmetadata: {{name: {name}}}\nspec: {{crossplane: {{{more}}}}}\n"
    )
}

#[tokio::test]
async fn composition_selection() {
    let plane = plane("").await;
    plane.apply(&telling("a", "from-a", "{tier: gold}")).await;
    plane.apply(&telling("b", "from-b", "{tier: tin}")).await;
    plane.apply(&selecting("one", "compositionSelector: {matchLabels: {tier: gold}}")).await;
    let xr = plane.until(XR, "one", |o| o["status"]["size"] == "from-a").await;
    assert_eq!(machinery(&xr)["compositionRef"]["name"], "a");
    plane
        .patch(
            XR,
            "one",
            json!({"spec": {"crossplane": {"compositionSelector": {"matchLabels": {"tier": "tin"}}}}}),
        )
        .await;
    plane.until_idle().await;
    let xr = plane.get(XR, "one").await.unwrap();
    assert_eq!(machinery(&xr)["compositionRef"]["name"], "a", "a choice is never questioned");
    let events = plane.events_of("one").await;
    assert!(
        events.contains(&"Normal SelectComposition: Successfully selected composition: a".to_owned()),
        "{events:#?}"
    );
}

#[tokio::test]
async fn composition_revision_selection() {
    let plane = plane("").await;
    plane.apply(&telling("a", "first", "{}")).await;
    plane.apply(&selecting("auto", "")).await;
    plane.apply(&selecting("manual", "compositionUpdatePolicy: Manual")).await;
    plane.until(XR, "auto", |o| o["status"]["size"] == "first").await;
    let pinned = plane.until(XR, "manual", |o| o["status"]["size"] == "first").await;
    let first = machinery(&pinned)["compositionRevisionRef"]["name"].clone();
    plane.apply(&telling("a", "second", "{}")).await;
    plane.until(XR, "auto", |o| o["status"]["size"] == "second").await;
    plane.until_idle().await;
    let pinned = plane.get(XR, "manual").await.unwrap();
    assert_eq!(
        (&pinned["status"]["size"], &machinery(&pinned)["compositionRevisionRef"]["name"]),
        (&json!("first"), &first)
    );
    let revisions = plane.list(REVISION).await;
    assert_eq!(revisions.len(), 2);
    // Back again: the first revision returns with a higher number.
    plane.apply(&telling("a", "first", "{}")).await;
    plane.until(XR, "auto", |o| o["status"]["size"] == "first").await;
    let revisions = plane.list(REVISION).await;
    let mut numbers: Vec<i64> = revisions.iter().filter_map(|r| r["spec"]["revision"].as_i64()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3]);
    let again = revisions.iter().find(|r| r["metadata"]["name"] == first).unwrap();
    assert_eq!(again["spec"]["revision"], 3);
    plane.delete(COMPOSITION, "a").await;
    for revision in &revisions {
        plane.until_gone(REVISION, revision["metadata"]["name"].as_str().unwrap()).await;
    }
}

#[tokio::test]
async fn labels_alone_make_a_revision_and_select_it() {
    let plane = plane("").await;
    plane.apply(&telling("a", "first", "{channel: stable}")).await;
    plane.apply(&selecting("stable", "compositionRevisionSelector: {matchLabels: {channel: stable}}, compositionUpdatePolicy: Automatic")).await;
    plane.until(XR, "stable", |o| o["status"]["size"] == "first").await;
    plane.apply(&telling("a", "second", "{channel: edge}")).await;
    plane
        .apply(&selecting(
            "edge",
            "compositionRevisionSelector: {matchLabels: {channel: edge}}, compositionUpdatePolicy: Automatic",
        ))
        .await;
    plane.until(XR, "edge", |o| o["status"]["size"] == "second").await;
    plane.until_idle().await;
    assert_eq!(plane.get(XR, "stable").await.unwrap()["status"]["size"], "first");
}

#[tokio::test]
async fn default_and_enforced_compositions() {
    let plane = plane("defaultCompositionRef: {name: b}").await;
    plane.apply(&telling("a", "from-a", "{}")).await;
    plane.apply(&telling("b", "from-b", "{}")).await;
    plane.apply(&selecting("one", "")).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "from-b").await;
    let events = plane.events_of("one").await;
    assert!(
        events.contains(&"Normal CompositionSelection: Default composition has been selected".to_owned()),
        "{events:#?}"
    );
    plane.patch(XRD, "xthings.example.org", json!({"spec": {"enforcedCompositionRef": {"name": "a"}}})).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "from-a").await;
}

#[tokio::test]
async fn a_composition_that_comes_later_is_found() {
    let plane = plane("").await;
    plane.apply(&selecting("one", "")).await;
    let waiting = plane.until(XR, "one", |o| status_of(o, "Synced") == "False").await;
    assert_eq!(message_of(&waiting, "Synced"), "cannot select Composition: no compatible Compositions found");
    // After these failures the next retry is a minute away, much longer than the test waits: the Composition wakes it.
    for seconds in [1, 2, 4, 8, 16, 32] {
        plane.after(std::time::Duration::from_secs(seconds)).await;
    }
    plane.apply(&telling("a", "from-a", "{}")).await;
    plane.until_true(XR, "one", "Ready").await;
}

#[tokio::test]
async fn composition_validation() {
    let plane = plane("").await;
    for (why, wrong) in [
        ("no pipeline", composition("bad", &[]).replace("  pipeline:\n", "")),
        ("an empty pipeline", composition("bad", &[]).replace("pipeline:\n", "pipeline: []\n")),
        ("duplicate steps", composition("bad", &["teller", "teller"])),
        (
            "a credential without its secret",
            composition("bad", &[])
                + "  - {step: a, functionRef: {name: teller}, credentials: [{name: x, source: Secret}]}\n",
        ),
    ] {
        let refused = plane.user.create(&documents(&wrong)[0], "kubectl").await;
        assert!(refused.as_ref().is_err_and(transom_engine::Error::is_invalid), "{why}: {refused:?}");
    }
    assert!(plane.try_apply(&composition("good", &["teller"])).await.is_ok());
}
