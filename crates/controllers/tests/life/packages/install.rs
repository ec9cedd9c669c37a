//! Installing a Configuration, and what it costs.

use super::*;
use crate::life::basics::{COMPOSITION, XR, XRD, composition, definition, sizer, xr};
use serde_json::json;
use transom_object::meta;

pub(super) fn platform() -> String {
    configuration("platform", "", &[definition("Cluster", false), composition("things", &["sizer"])])
}

#[tokio::test]
async fn a_configuration_brings_a_kind_that_works() {
    let plane = Plane::new().await;
    sizer(&plane).await;
    let digest = plane.registry.push("r.io/acme/platform:v1.0.0", &platform());
    plane.apply(&install("platform", "r.io/acme/platform:v1.0.0")).await;
    let package = until_installed(&plane, "platform", &digest).await;
    let status = &package["status"];
    assert_eq!(status["currentIdentifier"], "r.io/acme/platform:v1.0.0");
    assert_eq!(status["resolvedPackage"], "r.io/acme/platform:v1.0.0");
    assert_eq!(
        (reason_of(&package, "Installed"), reason_of(&package, "Healthy")),
        ("ActivePackageRevision", "HealthyPackageRevision")
    );

    let name = revision_of("platform", &digest);
    let revision = plane.get(CONFIGURATION_REVISION, &name).await.unwrap();
    assert_eq!(revision["spec"]["desiredState"], "Active");
    assert_eq!(
        (&revision["spec"]["revision"], &revision["spec"]["image"]),
        (&json!(1), &json!("r.io/acme/platform:v1.0.0"))
    );
    assert_eq!(meta::label(&revision, "pkg.crossplane.io/package"), Some("platform"));
    assert_eq!(meta::finalizers(&revision), ["revision.pkg.crossplane.io"]);
    assert_eq!(meta::controller_of(&revision).unwrap().name, "platform");
    let references: Vec<&str> = revision["status"]["objectRefs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["name"].as_str().unwrap())
        .collect();
    assert_eq!(references, ["xthings.example.org", "things"].iter().rev().copied().collect::<Vec<_>>());

    let xrd = plane.until_true(XRD, "xthings.example.org", "Established").await;
    let owners: Vec<(String, Option<bool>)> =
        meta::owner_references(&xrd).into_iter().map(|o| (o.name, o.controller)).collect();
    assert_eq!(owners, [(name.clone(), Some(true)), ("platform".to_owned(), Some(false))]);
    let lock = plane.until_true(LOCK, "lock", "Resolved").await;
    let entries = lock["packages"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["name"] == *name).expect("it is in the Lock");
    assert_eq!((&entry["source"], &entry["version"]), (&json!("r.io/acme/platform"), &json!("v1.0.0")));

    plane.apply(&xr("one", "small")).await;
    plane.until_true(XR, "one", "Ready").await;
}

#[tokio::test]
async fn nothing_is_written_and_asked_at_rest() {
    let plane = Plane::new().await;
    let digest = plane.registry.push("r.io/acme/platform:v1.0.0", &platform());
    plane.apply(&install("platform", "r.io/acme/platform:v1.0.0")).await;
    until_installed(&plane, "platform", &digest).await;
    let before = plane.until_idle().await;
    let asked = plane.registry.take_requests();
    assert_eq!(asked.iter().filter(|r| r.starts_with("resolve")).count(), 1, "{asked:?}");
    // Something that changes nothing for the package, and an hour.
    plane.patch(CONFIGURATION, "platform", json!({"metadata": {"annotations": {"a": "b"}}})).await;
    let after = plane.after(std::time::Duration::from_secs(3600)).await;
    assert_eq!(plane.log()[usize::try_from(before).unwrap()..], [""; 0], "{before} {after}");
    assert_eq!(plane.registry.take_requests(), [""; 0]);
}

#[tokio::test]
async fn controllers_that_start_again_write_nothing() {
    let mut plane = Plane::new().await;
    let digest = plane.registry.push("r.io/acme/platform:v1.0.0", &platform());
    plane.apply(&install("platform", "r.io/acme/platform:v1.0.0")).await;
    until_installed(&plane, "platform", &digest).await;
    plane.until_idle().await;
    plane.start().await;
    assert_eq!(plane.until_idle().await, 0, "{:#?}", plane.log());
    let asked = plane.registry.take_requests();
    assert!(!asked.iter().skip(3).any(|r| r.starts_with("resolve")), "{asked:?}");
}

#[tokio::test]
async fn a_package_that_cannot_be_established_whole_changes_nothing() {
    let plane = Plane::new().await;
    let broken = "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {name: broken}\nspec: {mode: Pipeline}\n";
    let package = configuration("platform", "", &[definition("Cluster", false), broken.to_owned()]);
    let digest = plane.registry.push("r.io/acme/platform:v1.0.0", &package);
    plane.apply(&install("platform", "r.io/acme/platform:v1.0.0")).await;
    let name = revision_of("platform", &digest);
    let revision =
        plane.until(CONFIGURATION_REVISION, &name, |r| status_of(r, "RevisionHealthy") == "False").await;
    let message = message_of(&revision, "RevisionHealthy");
    assert!(
        message.starts_with(
            "cannot establish control of object: cannot establish control of Composition \"broken\""
        ),
        "{message}"
    );
    assert!(plane.get(XRD, "xthings.example.org").await.is_none());
    let package =
        plane.until(CONFIGURATION, "platform", |p| message_of(p, "Healthy").contains("broken")).await;
    assert_eq!(status_of(&package, "Healthy"), "False");
    assert!(plane.events_of(&name).await.iter().any(|e| e.contains("SyncPackage")));
}

#[tokio::test]
async fn an_object_of_someone_else_is_left_alone() {
    let plane = Plane::new().await;
    let mut other = documents(&composition("things", &["sizer"])).remove(0);
    other["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "someone", "uid": "u-1", "controller": true,
    }]);
    plane.user.create(&other, "kubectl").await.unwrap();
    let digest = plane.registry.push("r.io/acme/platform:v1.0.0", &platform());
    plane.apply(&install("platform", "r.io/acme/platform:v1.0.0")).await;
    let name = revision_of("platform", &digest);
    let revision =
        plane.until(CONFIGURATION_REVISION, &name, |r| status_of(r, "RevisionHealthy") == "False").await;
    let message = message_of(&revision, "RevisionHealthy");
    assert!(message.contains("things is already controlled by ConfigMap someone"), "{message}");
    assert!(plane.get(XRD, "xthings.example.org").await.is_none(), "nothing of it is installed");
}

#[tokio::test]
async fn what_a_package_brought_and_a_user_deletes_comes_back() {
    let plane = Plane::new().await;
    let digest = plane.registry.push("r.io/acme/platform:v1.0.0", &platform());
    plane.apply(&install("platform", "r.io/acme/platform:v1.0.0")).await;
    until_installed(&plane, "platform", &digest).await;
    plane.until_idle().await;
    let uid = meta::uid(&plane.get(COMPOSITION, "things").await.unwrap()).to_owned();
    plane.delete(COMPOSITION, "things").await;
    plane.until(COMPOSITION, "things", |c| meta::uid(c) != uid).await;
    let name = revision_of("platform", &digest);
    let names_new =
        |r: &Value| r["status"]["objectRefs"].as_array().unwrap().iter().all(|r| r["uid"] != *uid);
    plane.until(CONFIGURATION_REVISION, &name, names_new).await;
}

#[tokio::test]
async fn a_deleted_package_takes_its_objects_along() {
    let plane = Plane::new().await;
    let digest = plane.registry.push("r.io/acme/platform:v1.0.0", &platform());
    plane.apply(&install("platform", "r.io/acme/platform:v1.0.0")).await;
    until_installed(&plane, "platform", &digest).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    plane.delete(CONFIGURATION, "platform").await;
    plane.until_gone(CONFIGURATION_REVISION, &revision_of("platform", &digest)).await;
    plane.until_gone(COMPOSITION, "things").await;
    plane.until_gone(XRD, "xthings.example.org").await;
    let lock = plane.until(LOCK, "lock", |l| l["packages"].as_array().is_none_or(Vec::is_empty)).await;
    let lock = if meta::finalizers(&lock).is_empty() {
        lock
    } else {
        plane.until(LOCK, "lock", |l| meta::finalizers(l).is_empty()).await
    };
    assert_eq!(status_of(&lock, "Resolved"), "");
}

#[tokio::test]
async fn common_labels_and_labels_of_the_package_reach_their_objects() {
    let plane = Plane::new().await;
    let digest = plane.registry.push("r.io/acme/platform:v1.0.0", &platform());
    plane
        .apply(
            "apiVersion: pkg.crossplane.io/v1\nkind: Configuration\n\
             metadata: {name: platform, labels: {team: a}}\n\
             spec:\n  package: r.io/acme/platform:v1.0.0\n  commonLabels: {cost: high}\n  commonAnnotations: {note: x}\n",
        )
        .await;
    until_installed(&plane, "platform", &digest).await;
    let thing = plane.get(COMPOSITION, "things").await.unwrap();
    assert_eq!((meta::label(&thing, "cost"), meta::annotation(&thing, "note")), (Some("high"), Some("x")));
    let revision = plane.get(CONFIGURATION_REVISION, &revision_of("platform", &digest)).await.unwrap();
    assert_eq!(meta::label(&revision, "team"), Some("a"));
    plane.patch(CONFIGURATION, "platform", json!({"spec": {"commonLabels": {"cost": "low"}}})).await;
    plane.until(COMPOSITION, "things", |c| meta::label(c, "cost") == Some("low")).await;
}

#[tokio::test]
async fn the_package_must_be_of_its_kind_and_fit_the_core() {
    let plane = Plane::new().await;
    plane
        .registry
        .push("r.io/acme/platform:v1.0.0", &platform().replacen("kind: Configuration", "kind: Provider", 1));
    plane.apply(&install("platform", "r.io/acme/platform:v1.0.0")).await;
    let wrong =
        plane.until(CONFIGURATION, "platform", |p| reason_of(p, "Installed") == "UnpackingPackage").await;
    assert!(message_of(&wrong, "Installed").starts_with("cannot unpack package: "), "{wrong:#}");
    assert_eq!(status_of(&wrong, "Healthy"), "False");
    assert!(plane.list(CONFIGURATION_REVISION).await.is_empty());

    let old =
        configuration("old", "  crossplane: {version: '<v2.0.0'}\n", &[composition("things", &["sizer"])]);
    let digest = plane.registry.push("r.io/acme/old:v1.0.0", &old);
    plane.apply(&install("old", "r.io/acme/old:v1.0.0")).await;
    let name = revision_of("old", &digest);
    let revision =
        plane.until(CONFIGURATION_REVISION, &name, |r| status_of(r, "RevisionHealthy") == "False").await;
    let message = message_of(&revision, "RevisionHealthy");
    assert!(message.starts_with("incompatible Crossplane version: "), "{message}");
    assert!(plane.get(COMPOSITION, "things").await.is_none());
    plane.patch(CONFIGURATION, "old", json!({"spec": {"ignoreCrossplaneConstraints": true}})).await;
    until_installed(&plane, "old", &digest).await;
    assert!(plane.get(COMPOSITION, "things").await.is_some());
}
