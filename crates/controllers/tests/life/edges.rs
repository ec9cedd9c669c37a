//! The edge cases that Crossplane's own unit tests name and no other scenario here meets; `tests/scenarios.txt` says
//! which is which.

use crate::life::basics::*;
use crate::life::fixture::*;
use serde_json::json;
use std::time::Duration;
use transom_function::ResourceSelector;
use transom_object::meta;

const CLAIM: &str = "example.org/v1/Thing";
const SECRET: &str = "v1/Secret";

async fn until_synced(plane: &Plane, name: &str) {
    let well = plane.until(XR, name, |o| status_of(o, "Synced") == "True").await;
    assert_eq!(message_of(&well, "Synced"), "", "nothing is left of the error");
}

#[tokio::test]
async fn a_refused_write_is_reported_and_repeated() {
    let plane = Plane::new().await;
    counted(&plane, "counted", "map").await;
    things(&plane, &["counted"]).await;
    plane.refuse("PUT /apis/example.org/v1/xthings/one?");
    plane.apply(&xr("one", "'1'")).await;
    plane
        .until(XR, "one", |o| message_of(o, "Synced").starts_with("cannot update composite resource: "))
        .await;
    assert!(plane.list("v1/ConfigMap").await.iter().all(|m| !meta::name(m).starts_with("one-")));
    plane.refuse("");
    until_synced(&plane, "one").await;
    for (size, refused, words) in [
        ("2", "PATCH /apis/example.org/v1/xthings/one?", "cannot update composed resource references"),
        ("3", "PATCH /api/v1/namespaces/default/configmaps/", "cannot apply composed resource \"map-2\""),
        ("2", "DELETE /api/v1/namespaces/default/configmaps/", "cannot delete composed resource \"map-2\""),
        ("1", "PATCH /apis/example.org/v1/xthings/one/status", "cannot apply composite resource status"),
    ] {
        plane.refuse(refused);
        plane.apply(&xr("one", &format!("'{size}'"))).await;
        let failed = plane.until(XR, "one", |o| message_of(o, "Synced").contains(words)).await;
        assert_eq!(reason_of(&failed, "Synced"), "ReconcileError");
        plane.refuse("");
        plane.until(XR, "one", |o| o["status"]["size"] == format!("map-{size}")).await;
        until_synced(&plane, "one").await;
    }
    plane.refuse("PUT /apis/example.org/v1/xthings/one?");
    let attempts = plane.sent("PUT /apis/example.org/v1/xthings/one?");
    plane.delete(XR, "one").await;
    plane.until_sent("PUT /apis/example.org/v1/xthings/one?", attempts + 1).await;
    let held = plane.get(XR, "one").await.expect("its finalizer holds it");
    assert!(meta::is_deleting(&held));
    plane.refuse("");
    plane.until_gone(XR, "one").await;
}

#[tokio::test]
async fn a_generated_name_that_is_taken_is_not_used() {
    let claim = "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: one, namespace: default}\nspec: {size: s}\n";
    // Equal seeds draw equal names: the name that the first plane drew is the one that the second will draw.
    let drawn = |taken: Option<String>| async move {
        let plane = Plane::new().await;
        plane.apply(&definition("LegacyCluster", true)).await;
        plane.until_true(XRD, "xthings.example.org", "Offered").await;
        if let Some(name) = &taken {
            plane.apply(&xr(name, "theirs")).await;
        }
        plane.apply(claim).await;
        let claim = plane.until(CLAIM, "default/one", |o| o["spec"]["resourceRef"]["name"].is_string()).await;
        if let Some(name) = &taken {
            assert_eq!(plane.get(XR, name).await.unwrap()["spec"]["size"], "theirs");
        }
        claim["spec"]["resourceRef"]["name"].as_str().unwrap().to_owned()
    };
    let first = drawn(None).await;
    let second = drawn(Some(first.clone())).await;
    assert!(second.starts_with("one-") && second != first, "{second} after {first}");
}

#[tokio::test]
async fn a_secret_of_someone_else_is_not_published_to() {
    let plane = Plane::new().await;
    plane
        .function("connected", |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            response.set_connection_detail("password", "sesame");
            Ok(response)
        })
        .await;
    plane.apply(&definition("LegacyCluster", true)).await;
    plane.apply(&composition("things", &["connected"])).await;
    plane.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: theirs, namespace: default}\nstringData: {a: b}\n").await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    let mut xr = documents(&xr("one", "small")).remove(0);
    xr["spec"]["writeConnectionSecretToRef"] = json!({"name": "theirs", "namespace": "default"});
    plane.apply(&xr.to_string()).await;
    let words = "cannot publish connection details: ";
    plane.until(XR, "one", |o| message_of(o, "Synced").starts_with(words)).await;
    let theirs = plane.get(SECRET, "default/theirs").await.unwrap();
    assert_eq!(theirs["data"], json!({"a": "Yg=="}));
    plane.delete(SECRET, "default/theirs").await;
    plane.until(SECRET, "default/theirs", |s| s["data"]["password"] == "c2VzYW1l").await;
    until_synced(&plane, "one").await;
}

#[tokio::test]
async fn warnings_and_events_for_a_missing_claim_are_not_errors() {
    let plane = Plane::new().await;
    plane
        .function("worried", |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            response.warning("it may rain").and_claim();
            Ok(response)
        })
        .await;
    plane.apply(&definition("LegacyCluster", true)).await;
    plane.apply(&composition("things", &["worried"])).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    let mut xr = documents(&xr("one", "small")).remove(0);
    xr["spec"]["claimRef"] =
        json!({"apiVersion": "example.org/v1", "kind": "Thing", "namespace": "default", "name": "nobody"});
    plane.apply(&xr.to_string()).await;
    let ready = plane.until_true(XR, "one", "Ready").await;
    assert_eq!(status_of(&ready, "Synced"), "True");
    plane.until_idle().await;
    let events = plane.events_of("one").await;
    assert!(
        events.contains(&"Warning ComposeResources: Pipeline step \"worried\": it may rain".to_owned()),
        "{events:#?}"
    );
    let before = plane.until_idle().await;
    let after = plane.after(Duration::from_millis(1500)).await;
    assert_eq!(after, before, "a warning does not cause a retry");
}

#[tokio::test]
async fn a_revision_that_lost_its_owner_gets_it_back_and_a_foreign_one_is_left_alone() {
    let plane = with_things("Cluster", false).await;
    plane.until_idle().await;
    let revision = plane.list(REVISION).await.remove(0);
    let name = meta::name(&revision);
    plane.patch(REVISION, name, json!({"metadata": {"ownerReferences": null}})).await;
    plane.until(REVISION, name, |o| meta::controller_of(o).is_some()).await;
    // One that another Composition of that name left behind, with an owner that exists: it is not taken over.
    let other = plane.user.create(&documents(&composition("other", &["sizer"]))[0], "kubectl").await.unwrap();
    let foreign = json!([{
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "name": "other",
        "uid": meta::uid(&other), "controller": true,
    }]);
    plane.until_idle().await;
    plane.patch(REVISION, name, json!({"metadata": {"ownerReferences": foreign}})).await;
    plane.until_idle().await;
    let events = plane.events_of("things").await;
    assert!(
        events.iter().any(|e| e.starts_with("Warning UpdateRevision: cannot own CompositionRevision")),
        "{events:#?}"
    );
    assert_eq!(plane.get(REVISION, name).await.unwrap()["metadata"]["ownerReferences"], foreign);
}

#[tokio::test]
async fn a_function_that_cannot_compose_makes_its_pipeline_invalid() {
    use crate::life::packages::{FUNCTION, function_package};
    let plane = with_things("Cluster", false).await;
    let name = meta::name(&plane.list(REVISION).await[0]).to_owned();
    plane.until_true(FUNCTION, "sizer", "Healthy").await;
    plane.until_true(REVISION, &name, "ValidPipeline").await;
    for (version, capability) in [("v2", "operation"), ("v3", "Composi-tion")] {
        let spec = format!("  capabilities: [{capability}]\n");
        plane.registry.push(&format!("example.org/sizer:{version}"), &function_package("sizer", &spec));
    }
    plane.patch(FUNCTION, "sizer", json!({"spec": {"package": "example.org/sizer:v2"}})).await;
    let invalid = plane.until(REVISION, &name, |o| status_of(o, "ValidPipeline") == "False").await;
    assert_eq!(reason_of(&invalid, "ValidPipeline"), "MissingCapabilities");
    assert_eq!(status_of(&invalid, "Synced"), "True", "that is not an error of the revision's controller");
    plane.apply(&xr("one", "small")).await;
    plane.until(XR, "one", |o| message_of(o, "Synced").contains(&name)).await;
    plane.patch(FUNCTION, "sizer", json!({"spec": {"package": "example.org/sizer:v3"}})).await;
    plane.until_true(REVISION, &name, "ValidPipeline").await;
    plane.until_true(XR, "one", "Ready").await;
}

#[tokio::test]
async fn a_claim_whose_composite_resource_is_gone_already_can_go() {
    let plane = with_things("LegacyCluster", true).await;
    plane
        .apply("apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: one, namespace: default, finalizers: [example.org/mine]}\nspec: {size: s}\n")
        .await;
    let claim = plane.until_true(CLAIM, "default/one", "Ready").await;
    let xr = claim["spec"]["resourceRef"]["name"].as_str().unwrap().to_owned();
    plane.delete(CLAIM, "default/one").await;
    plane.until_gone(XR, &xr).await;
    let held = plane.until(CLAIM, "default/one", |o| meta::finalizers(o) == ["example.org/mine"]).await;
    assert!(meta::is_deleting(&held));
    plane.until_idle().await;
    assert!(plane.get(XR, &xr).await.is_none(), "a claim that is deleted makes no composite resource");
    plane.patch(CLAIM, "default/one", json!({"metadata": {"finalizers": null}})).await;
    plane.until_gone(CLAIM, "default/one").await;
}

/// Watches that no key needs are ended every minute.
const SWEPT_AFTER: Duration = Duration::from_secs(90);

#[tokio::test]
async fn a_kind_that_nothing_depends_on_any_longer_is_not_watched() {
    let plane = Plane::new().await;
    plane
        .function("reader", |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            if request.observed_composite().get_str("spec.size")? == "reads" {
                response.require(
                    "more",
                    ResourceSelector::named("coordination.k8s.io/v1", "Lease", "q").in_namespace("default"),
                );
            }
            Ok(response)
        })
        .await;
    things(&plane, &["reader"]).await;
    plane.apply(&xr("one", "reads")).await;
    plane.until_true(XR, "one", "Ready").await;
    let watched = |kind: &str| plane.watched_kinds().iter().any(|gvk| gvk.kind == kind);
    assert!(watched("Lease"));
    plane.until_idle().await;
    plane.after(SWEPT_AFTER).await;
    assert!(watched("Lease"), "it is depended on");
    plane.apply(&xr("one", "does not")).await;
    plane
        .until(XR, "one", |o| condition(o, "Synced")["observedGeneration"] == o["metadata"]["generation"])
        .await;
    plane.until_idle().await;
    // What it required before was looked up once more: it might have been required again.
    plane.patch(XR, "one", json!({"metadata": {"annotations": {"look": "again"}}})).await;
    plane.until_idle().await;
    plane.after(SWEPT_AFTER).await;
    assert!(!watched("Lease"));
    assert!(watched("XThing") && watched("CompositionRevision"), "other watches stay");
}
