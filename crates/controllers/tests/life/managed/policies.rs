//! Policies that activate definitions.

use super::*;
use std::time::Duration;

fn state(definition: &Value) -> &str {
    definition["spec"]["state"].as_str().unwrap_or_default()
}

async fn until_activated(plane: &Plane, policy: &str, names: &[&str]) {
    plane.until(MRAP, policy, |p| activated(p) == names && status_of(p, "Healthy") == "True").await;
}

#[tokio::test]
async fn a_policy_activates_what_is_there_and_what_comes() {
    let plane = Plane::new().await;
    for kind in ["Bucket", "Disk"] {
        plane.apply(&definition(kind, "Inactive")).await;
    }
    plane.apply(&policy("cloud", &["buckets.*", "lakes.cloud.io"])).await;
    until_activated(&plane, "cloud", &[BUCKETS]).await;
    plane.until_true(MRD, BUCKETS, "Established").await;
    // The other order.
    plane.apply(&definition("Lake", "Inactive")).await;
    until_activated(&plane, "cloud", &[BUCKETS, "lakes.cloud.io"]).await;
    plane.until_true(MRD, "lakes.cloud.io", "Established").await;
    plane.until_idle().await;
    let disk = plane.get(MRD, "disks.cloud.io").await.unwrap();
    assert_eq!((state(&disk), reason_of(&disk, "Established")), ("Inactive", "InactiveManagedResource"));
    assert!(plane.get(CRD, "disks.cloud.io").await.is_none());
    let done = "Normal ActivateManagedResourceDefinition: Successfully activated ManagedResourceDefinition";
    assert_eq!(plane.events_of("cloud").await, [done]);
    let object = plane.get(MRAP, "cloud").await.unwrap();
    assert_eq!(reason_of(&object, "Healthy"), "Running");

    // More patterns, then fewer: what is active stays.
    plane.apply(&policy("cloud", &["*.cloud.io"])).await;
    until_activated(&plane, "cloud", &[BUCKETS, "disks.cloud.io", "lakes.cloud.io"]).await;
    plane.apply(&policy("cloud", &["disks.*"])).await;
    until_activated(&plane, "cloud", &["disks.cloud.io"]).await;
    plane.until_idle().await;
    assert_eq!(state(&plane.get(MRD, BUCKETS).await.unwrap()), "Active");
    // A definition that goes is no longer listed, and the policy goes alone.
    plane.delete(MRD, "disks.cloud.io").await;
    until_activated(&plane, "cloud", &[]).await;
    plane.delete(MRAP, "cloud").await;
    plane.until_gone(MRAP, "cloud").await;
    plane.until_idle().await;
    assert_eq!(state(&plane.get(MRD, BUCKETS).await.unwrap()), "Active");
}

#[tokio::test]
async fn several_policies_can_activate_a_definition() {
    let plane = Plane::new().await;
    plane.apply(&policy("all", &["*"])).await;
    plane.apply(&policy("one", &[BUCKETS])).await;
    plane.apply(&policy("malformed", &["["])).await;
    plane.apply(&definition("Bucket", "Inactive")).await;
    until_activated(&plane, "all", &[BUCKETS]).await;
    until_activated(&plane, "one", &[BUCKETS]).await;
    until_activated(&plane, "malformed", &[]).await;
    for name in ["all", "one", "malformed"] {
        assert_eq!(writes_after_touching(&plane, MRAP, name).await, [""; 0], "{name}");
    }
    assert_eq!(writes_after_touching(&plane, MRD, BUCKETS).await, [""; 0]);
}

#[tokio::test]
async fn a_restart_writes_nothing_and_notices_what_came() {
    let mut plane = Plane::new().await;
    plane.apply(&policy("all", &["*"])).await;
    plane.apply(&definition("Bucket", "Inactive")).await;
    until_activated(&plane, "all", &[BUCKETS]).await;
    plane.until_true(MRD, BUCKETS, "Established").await;
    plane.until_idle().await;
    plane.start().await;
    assert_eq!(plane.until_idle().await, 0, "{:#?}", plane.log());
    plane.stop();
    plane.apply(&definition("Disk", "Inactive")).await;
    plane.start().await;
    until_activated(&plane, "all", &[BUCKETS, "disks.cloud.io"]).await;
}

#[tokio::test]
async fn a_paused_policy_does_nothing() {
    let plane = Plane::new().await;
    let mut paused = documents(&policy("all", &["*"])).remove(0);
    paused["metadata"]["annotations"] = json!({"crossplane.io/paused": "true"});
    plane.apply(&paused.to_string()).await;
    plane.apply(&definition("Bucket", "Inactive")).await;
    plane.until(MRD, BUCKETS, |o| status_of(o, "Established") == "False").await;
    plane.until_idle().await;
    let event = "Normal ReconciliationPaused: Reconciliation is paused via the pause annotation";
    assert_eq!(plane.events_of("all").await, [event]);
    assert_eq!(state(&plane.get(MRD, BUCKETS).await.unwrap()), "Inactive");
    plane.patch(MRAP, "all", json!({"metadata": {"annotations": {"crossplane.io/paused": null}}})).await;
    until_activated(&plane, "all", &[BUCKETS]).await;
}

#[tokio::test]
async fn a_policy_that_is_being_deleted_says_so() {
    let plane = Plane::new().await;
    let mut held = documents(&policy("all", &["*"])).remove(0);
    held["metadata"]["finalizers"] = json!(["example.org/held"]);
    plane.apply(&held.to_string()).await;
    until_activated(&plane, "all", &[]).await;
    plane.delete(MRAP, "all").await;
    let terminating = |o: &Value| reason_of(o, "Established") == "TerminatingManagedResourceActivationPolicy";
    plane.until(MRAP, "all", terminating).await;
    plane.apply(&definition("Bucket", "Inactive")).await;
    plane.until(MRD, BUCKETS, |o| status_of(o, "Established") == "False").await;
    plane.until_idle().await;
    assert_eq!(state(&plane.get(MRD, BUCKETS).await.unwrap()), "Inactive");
}

#[tokio::test]
async fn what_cannot_be_activated_is_counted_and_tried_again() {
    let plane = Plane::new().await;
    plane.apply(&definition("Bucket", "Inactive")).await;
    plane.apply(&definition("Disk", "Active")).await;
    plane.refuse("PATCH /apis/apiextensions.crossplane.io/v1alpha1/managedresourcedefinitions/buckets");
    plane.apply(&policy("all", &["*"])).await;
    let message = "failed to activate 1 of 1 ManagedResourceDefinitions";
    let object = plane.until(MRAP, "all", |p| message_of(p, "Healthy") == message).await;
    assert_eq!(
        (status_of(&object, "Healthy"), reason_of(&object, "Healthy")),
        ("Unknown", "EncounteredErrors")
    );
    assert_eq!(activated(&object), ["disks.cloud.io"]);
    plane.until_idle().await;
    let events = plane.events_of("all").await;
    let start = "Warning ActivateManagedResourceDefinition: cannot activate ManagedResourceDefinition \"buckets.cloud.io\"";
    assert!(events.iter().any(|event| event.starts_with(start)), "{events:?}");
    plane.refuse("");
    plane.after(Duration::from_secs(61)).await;
    until_activated(&plane, "all", &[BUCKETS, "disks.cloud.io"]).await;
}

#[tokio::test]
async fn the_default_policy_is_made_once_for_each_start() {
    let mut plane = Plane::quiet().await;
    plane.options.activations = vec!["*.cloud.io".to_owned(), "x".to_owned()];
    plane.start().await;
    let object = plane.until(MRAP, "default", |p| status_of(p, "Healthy") == "True").await;
    assert_eq!(object["spec"]["activate"], json!(["*.cloud.io", "x"]));
    plane.until_idle().await;
    plane.start().await;
    assert_eq!(plane.until_idle().await, 0, "{:#?}", plane.log());
    // One that is changed is left as it is, and one that was deleted is made again.
    plane.apply(&policy("default", &["mine"])).await;
    plane.until_idle().await;
    plane.start().await;
    plane.until_idle().await;
    assert_eq!(plane.get(MRAP, "default").await.unwrap()["spec"]["activate"], json!(["mine"]));
    plane.delete(MRAP, "default").await;
    plane.until_idle().await;
    assert!(plane.get(MRAP, "default").await.is_none());
    plane.start().await;
    assert_eq!(plane.get(MRAP, "default").await.unwrap()["spec"]["activate"], json!(["*.cloud.io", "x"]));
    // Without patterns there is none.
    plane.delete(MRAP, "default").await;
    plane.options.activations = Vec::new();
    plane.start().await;
    plane.until_idle().await;
    assert!(plane.get(MRAP, "default").await.is_none());
}
