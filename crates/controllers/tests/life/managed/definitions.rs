//! Definitions of managed resources, and their CRDs.

use super::*;
use crate::life::basics::{XRD, definition as composite_definition};
use std::time::Duration;

#[tokio::test]
async fn an_active_definition_becomes_a_crd() {
    let plane = Plane::new().await;
    plane.apply(&definition("Bucket", "Inactive")).await;
    let inactive = |o: &Value| reason_of(o, "Established") == "InactiveManagedResource";
    let object = plane.until(MRD, BUCKETS, inactive).await;
    assert_eq!(status_of(&object, "Established"), "False");
    plane.until_idle().await;
    assert!(plane.get(CRD, BUCKETS).await.is_none());
    assert_eq!(meta::finalizers(&object), [""; 0]);

    plane.patch(MRD, BUCKETS, json!({"spec": {"state": "Active"}})).await;
    let object = plane.until_true(MRD, BUCKETS, "Established").await;
    assert_eq!(reason_of(&object, "Established"), "EstablishedManagedResource");
    let crd = plane.get(CRD, BUCKETS).await.unwrap();
    assert_eq!(owners(&crd), [("ManagedResourceDefinition".to_owned(), BUCKETS.to_owned(), None)]);
    assert_eq!(meta::owner_references(&crd)[0].uid, meta::uid(&object));
    assert!(managers(&crd).contains(&"apiextensions.crossplane.io/managed Apply".to_owned()), "{crd:#}");
    assert_eq!(crd["spec"]["names"]["plural"], "buckets");
    plane.apply(&bucket("one")).await;
    plane.until_idle().await;
    let applied = "Normal ApplyCustomResourceDefinition: Successfully applied CustomResourceDefinition";
    assert_eq!(plane.events_of(BUCKETS).await, [applied]);

    let back = plane.try_apply(&definition("Bucket", "Inactive")).await.unwrap_err().to_string();
    assert!(back.contains("state cannot be changed once it becomes Active"), "{back}");
}

#[tokio::test]
async fn nothing_is_written_at_rest_and_after_a_restart() {
    let mut plane = Plane::new().await;
    plane.apply(&definition("Bucket", "Active")).await;
    plane.apply(&definition("Disk", "Inactive")).await;
    plane.until_true(MRD, BUCKETS, "Established").await;
    plane.until(MRD, "disks.cloud.io", |o| status_of(o, "Established") == "False").await;
    for (kind, name) in [(MRD, BUCKETS), (MRD, "disks.cloud.io"), (CRD, BUCKETS)] {
        assert_eq!(writes_after_touching(&plane, kind, name).await, [""; 0], "{kind} {name}");
    }
    plane.start().await;
    assert_eq!(plane.until_idle().await, 0, "{:#?}", plane.log());
}

#[tokio::test]
async fn a_crd_follows_its_definition() {
    let plane = Plane::new().await;
    plane.apply(&definition("Bucket", "Active")).await;
    plane.until_true(MRD, BUCKETS, "Established").await;
    // A new field in the definition.
    let mut changed = documents(&definition("Bucket", "Active")).remove(0);
    changed["spec"]["versions"] = spec("Bucket", "colour")["versions"].clone();
    plane.apply(&changed.to_string()).await;
    let has_colour = |crd: &Value| {
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["colour"]
            .is_object()
    };
    plane.until(CRD, BUCKETS, has_colour).await;
    // A change by another client is undone.
    let mut foreign = plane.get(CRD, BUCKETS).await.unwrap();
    foreign["spec"]["versions"] = spec("Bucket", "other")["versions"].clone();
    plane.user.update(&foreign, "kubectl-edit").await.unwrap();
    plane.until(CRD, BUCKETS, has_colour).await;
    // A CRD that is deleted comes back.
    let uid = meta::uid(&plane.get(CRD, BUCKETS).await.unwrap()).to_owned();
    plane.delete(CRD, BUCKETS).await;
    plane.until(CRD, BUCKETS, |crd| meta::uid(crd) != uid && has_colour(crd)).await;
    // And goes with its definition.
    plane.delete(MRD, BUCKETS).await;
    plane.until_gone(CRD, BUCKETS).await;
    plane.until_idle().await;
    assert!(plane.get(MRD, BUCKETS).await.is_none());
}

#[tokio::test]
async fn a_definition_that_is_being_deleted_says_so() {
    let plane = Plane::new().await;
    let mut held = documents(&definition("Bucket", "Active")).remove(0);
    held["metadata"]["finalizers"] = json!(["example.org/held"]);
    plane.apply(&held.to_string()).await;
    plane.until_true(MRD, BUCKETS, "Established").await;
    plane.delete(MRD, BUCKETS).await;
    let terminating = |o: &Value| reason_of(o, "Established") == "TerminatingManagedResource";
    let object = plane.until(MRD, BUCKETS, terminating).await;
    assert_eq!(status_of(&object, "Established"), "False");
    plane.until_idle().await;
    assert!(plane.get(CRD, BUCKETS).await.is_some(), "it is deleted with the definition, not before");
    plane.patch(MRD, BUCKETS, json!({"metadata": {"finalizers": null}})).await;
    plane.until_gone(CRD, BUCKETS).await;
}

#[tokio::test]
async fn a_paused_definition_does_nothing() {
    let plane = Plane::new().await;
    let mut paused = documents(&definition("Bucket", "Active")).remove(0);
    paused["metadata"]["annotations"] = json!({"crossplane.io/paused": "true"});
    plane.apply(&paused.to_string()).await;
    plane.until_idle().await;
    let event = "Normal ReconciliationPaused: Reconciliation is paused via the pause annotation";
    assert_eq!(plane.events_of(BUCKETS).await, [event]);
    assert!(plane.get(CRD, BUCKETS).await.is_none());
    assert!(plane.get(MRD, BUCKETS).await.unwrap().get("status").is_none());
    plane.patch(MRD, BUCKETS, json!({"metadata": {"annotations": {"crossplane.io/paused": null}}})).await;
    plane.until_true(MRD, BUCKETS, "Established").await;
}

#[tokio::test]
async fn a_crd_that_cannot_be_applied_blocks_its_definition() {
    let plane = Plane::new().await;
    let mut wrong = documents(&definition("Bucket", "Active")).remove(0);
    wrong["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["type"] = "int".into();
    plane.apply(&wrong.to_string()).await;
    let message = "unable to apply CustomResourceDefinition, see events";
    let object = plane.until(MRD, BUCKETS, |o| message_of(o, "Established") == message).await;
    assert_eq!(
        (status_of(&object, "Established"), reason_of(&object, "Established")),
        ("False", "PendingManagedResource")
    );
    plane.until_idle().await;
    let events = plane.events_of(BUCKETS).await;
    let start = "Warning ApplyCustomResourceDefinition: cannot apply CustomResourceDefinition: ";
    assert!(events.iter().all(|event| event.starts_with(start) && event.contains("type")), "{events:?}");

    wrong["spec"]["versions"][0]["schema"] = json!({});
    plane.apply(&wrong.to_string()).await;
    let message = "unable to form CustomResourceDefinition, see events";
    plane.until(MRD, BUCKETS, |o| message_of(o, "Established") == message).await;

    plane.apply(&definition("Bucket", "Active")).await;
    let object = plane.until_true(MRD, BUCKETS, "Established").await;
    assert_eq!(message_of(&object, "Established"), "");
}

#[tokio::test]
async fn a_crd_that_is_refused_for_a_while_is_applied_later() {
    let plane = Plane::new().await;
    plane.refuse("PATCH /apis/apiextensions.k8s.io/v1/customresourcedefinitions/buckets");
    plane.apply(&definition("Bucket", "Active")).await;
    plane.until(MRD, BUCKETS, |o| reason_of(o, "Established") == "PendingManagedResource").await;
    plane.refuse("");
    plane.after(Duration::from_secs(61)).await;
    plane.until_true(MRD, BUCKETS, "Established").await;
}

#[tokio::test]
async fn a_crd_of_something_else_is_left_alone() {
    let plane = Plane::new().await;
    plane.apply(&composite_definition("Cluster", false)).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    let before = plane.get(CRD, "xthings.example.org").await.unwrap();
    let mut taken = documents(&definition("XThing", "Active")).remove(0);
    taken["metadata"]["name"] = "xthings.example.org".into();
    taken["spec"]["group"] = "example.org".into();
    plane.apply(&taken.to_string()).await;
    let message = "CustomResourceDefinition \"xthings.example.org\" exists, and is controlled by \
                   CompositeResourceDefinition \"xthings.example.org\"";
    plane.until(MRD, "xthings.example.org", |o| message_of(o, "Established") == message).await;
    assert_eq!(writes_after_touching(&plane, MRD, "xthings.example.org").await, [""; 0]);
    assert_eq!(plane.get(CRD, "xthings.example.org").await.unwrap(), before);
    // When it goes, the definition gets its CRD without being touched.
    plane.delete(XRD, "xthings.example.org").await;
    plane.until_true(MRD, "xthings.example.org", "Established").await;
    let crd = plane.get(CRD, "xthings.example.org").await.unwrap();
    assert_eq!(owners(&crd)[0].0, "ManagedResourceDefinition");
}

#[tokio::test]
async fn a_crd_without_a_controller_is_adopted() {
    adopts(false).await;
}

/// As it is when the controllers are stopped in the middle of an adoption.
#[tokio::test]
async fn a_crd_that_has_no_managers_is_adopted() {
    adopts(true).await;
}

async fn adopts(without_managers: bool) {
    let plane = Plane::new().await;
    let mut old = spec("Bucket", "size");
    let column = json!({"name": "SIZE", "type": "string", "jsonPath": ".spec.size"});
    old["versions"][0]["additionalPrinterColumns"] = json!([column]);
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                     "metadata": {"name": BUCKETS}, "spec": old});
    let mut crd = plane.user.create(&crd, "kubectl-create").await.unwrap();
    if without_managers {
        crd["metadata"]["managedFields"] = json!([{}]);
        plane.user.update(&crd, "kubectl-create").await.unwrap();
    }
    plane.apply(&bucket("one")).await;
    let uid = meta::uid(&plane.get(CRD, BUCKETS).await.unwrap()).to_owned();
    let object = meta::uid(&plane.get(BUCKET, "one").await.unwrap()).to_owned();
    plane.apply(&definition("Bucket", "Active")).await;
    plane.until_true(MRD, BUCKETS, "Established").await;
    plane.until_idle().await;
    let crd = plane.get(CRD, BUCKETS).await.unwrap();
    assert_eq!(meta::uid(&crd), uid);
    assert_eq!(owners(&crd), [("ManagedResourceDefinition".to_owned(), BUCKETS.to_owned(), None)]);
    assert_eq!(crd["spec"]["versions"], spec("Bucket", "size")["versions"]);
    let of_spec: Vec<String> = managers(&crd).into_iter().filter(|m| !m.ends_with("status")).collect();
    assert_eq!(of_spec, ["apiextensions.crossplane.io/managed Apply"]);
    assert_eq!(meta::uid(&plane.get(BUCKET, "one").await.unwrap()), object);
    assert_eq!(writes_after_touching(&plane, MRD, BUCKETS).await, [""; 0]);
}
