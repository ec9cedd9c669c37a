//! Upgrades, roll-backs, activation, history, pausing, and registries that fail.

use super::install::platform;
use super::*;
use crate::life::basics::{COMPOSITION, XRD, composition, definition};
use serde_json::json;
use std::time::Duration;
use transom_object::meta;

/// The second version of the platform: its Composition calls another function.
fn next_platform() -> String {
    configuration("platform", "", &[definition("Cluster", false), composition("things", &["other"])])
}

const V1: &str = "r.io/acme/platform:v1.0.0";
const V2: &str = "r.io/acme/platform:v2.0.0";

struct Versions {
    plane: Plane,
    first: Digest,
    second: Digest,
}

/// A plane with the first of two versions installed.
async fn versions(more: &str) -> Versions {
    let plane = Plane::new().await;
    let first = plane.registry.push(V1, &platform());
    let second = plane.registry.push(V2, &next_platform());
    let manifest = install("platform", V1).replace("spec: {", &format!("spec: {{{more}"));
    plane.apply(&manifest).await;
    Versions { plane, first, second }
}

async fn move_to(plane: &Plane, package: &str) {
    plane.patch(CONFIGURATION, "platform", json!({"spec": {"package": package}})).await;
}

fn state(revision: &Value) -> (i64, &str) {
    (revision["spec"]["revision"].as_i64().unwrap(), revision["spec"]["desiredState"].as_str().unwrap())
}

fn step_of(composition: &Value) -> &str {
    composition["spec"]["pipeline"][0]["functionRef"]["name"].as_str().unwrap()
}

#[tokio::test]
async fn an_upgrade_moves_control_without_a_gap_and_can_be_rolled_back() {
    let Versions { plane, first, second } = versions("").await;
    until_installed(&plane, "platform", &first).await;
    let xrd = plane.until_true(XRD, "xthings.example.org", "Established").await;
    let seen = plane.record(XRD, "compositeresourcedefinitions").await;
    move_to(&plane, V2).await;
    until_installed(&plane, "platform", &second).await;
    plane.until_idle().await;
    let (old, new) = (revision_of("platform", &first), revision_of("platform", &second));
    let revision = async |name: &str| plane.get(CONFIGURATION_REVISION, name).await.unwrap();
    assert_eq!(state(&revision(&old).await), (1, "Inactive"));
    assert_eq!(state(&revision(&new).await), (2, "Active"));
    assert_eq!(step_of(&plane.get(COMPOSITION, "things").await.unwrap()), "other");
    let after = plane.get(XRD, "xthings.example.org").await.unwrap();
    assert_eq!(meta::uid(&after), meta::uid(&xrd), "it was never deleted");
    assert_eq!(meta::controller_of(&after).unwrap().name, new);
    for state in seen.lock().unwrap().iter() {
        assert!(meta::owner_references(state).iter().any(|owner| owner.name == "platform"), "{state:#}");
        assert!(!meta::is_deleting(state));
    }
    let lock = plane.get(LOCK, "lock").await.unwrap();
    assert_eq!(lock["packages"].as_array().unwrap().len(), 1);
    assert_eq!(lock["packages"][0]["name"], *new);

    move_to(&plane, V1).await;
    until_installed(&plane, "platform", &first).await;
    plane.until_idle().await;
    assert_eq!(state(&revision(&old).await), (3, "Active"), "the old revision is the newest again");
    assert_eq!(state(&revision(&new).await), (2, "Inactive"));
    assert_eq!(step_of(&plane.get(COMPOSITION, "things").await.unwrap()), "sizer");
    assert_eq!(meta::controller_of(&plane.get(XRD, "xthings.example.org").await.unwrap()).unwrap().name, old);
}

#[tokio::test]
async fn an_upgrade_writes_revisions_in_the_order_of_the_original() {
    let Versions { plane, first, second } = versions("").await;
    until_installed(&plane, "platform", &first).await;
    move_to(&plane, V2).await;
    until_installed(&plane, "platform", &second).await;
    plane.until_idle().await;
    let before = plane.log().len();
    let next = configuration("platform", "", &[composition("things", &["third"])]);
    let third = plane.registry.push("r.io/acme/platform:v3.0.0", &next);
    move_to(&plane, "r.io/acme/platform:v3.0.0").await;
    until_installed(&plane, "platform", &third).await;
    plane.until_gone(CONFIGURATION_REVISION, &revision_of("platform", &first)).await;
    let log = plane.log().split_off(before);
    let path = "/apis/pkg.crossplane.io/v1/configurationrevisions";
    let position = |write: String| {
        let found = log.iter().position(|line| line.starts_with(&write));
        found.unwrap_or_else(|| panic!("{write} is not in {log:#?}"))
    };
    let deactivated = position(format!("PUT {path}/{}?", revision_of("platform", &second)));
    let deleted = position(format!("DELETE {path}/{}", revision_of("platform", &first)));
    let created = position(format!("POST {path}?"));
    assert!(deactivated < deleted && deleted < created, "{log:#?}");
}

#[tokio::test]
async fn another_tag_of_the_same_bytes_is_the_same_revision() {
    let Versions { plane, first, .. } = versions("").await;
    until_installed(&plane, "platform", &first).await;
    plane.registry.push("r.io/acme/platform:v1.0.1", &platform());
    move_to(&plane, "r.io/acme/platform:v1.0.1").await;
    let moved = |p: &Value| p["status"]["currentIdentifier"] == "r.io/acme/platform:v1.0.1" && is_healthy(p);
    plane.until(CONFIGURATION, "platform", moved).await;
    plane.until(LOCK, "lock", |l| l["packages"][0]["version"] == "v1.0.1").await;
    assert_eq!(plane.list(CONFIGURATION_REVISION).await.len(), 1);
}

#[tokio::test]
async fn a_package_that_is_activated_by_hand_waits() {
    let Versions { plane, first, second } = versions("revisionActivationPolicy: Manual, ").await;
    let old = revision_of("platform", &first);
    let inactive = |p: &Value| reason_of(p, "Installed") == "InactivePackageRevision";
    let package = plane.until(CONFIGURATION, "platform", inactive).await;
    assert_eq!(message_of(&package, "Installed"), "Package is inactive");
    plane.until_true(CONFIGURATION_REVISION, &old, "RevisionHealthy").await;
    plane.until_idle().await;
    assert!(plane.get(XRD, "xthings.example.org").await.is_none());
    let activate = json!({"spec": {"desiredState": "Active"}});
    plane.patch(CONFIGURATION_REVISION, &old, activate.clone()).await;
    until_installed(&plane, "platform", &first).await;
    assert!(plane.get(XRD, "xthings.example.org").await.is_some());

    move_to(&plane, V2).await;
    plane.until(CONFIGURATION, "platform", |p| inactive(p) && p["status"]["currentIdentifier"] == V2).await;
    plane.until_idle().await;
    let new = revision_of("platform", &second);
    let state_of = async |name: &str| {
        plane.get(CONFIGURATION_REVISION, name).await.unwrap()["spec"]["desiredState"].clone()
    };
    assert_eq!((state_of(&old).await, state_of(&new).await), (json!("Inactive"), json!("Inactive")));
    assert_eq!(
        step_of(&plane.get(COMPOSITION, "things").await.unwrap()),
        "sizer",
        "objects stay as they are"
    );
    plane.patch(CONFIGURATION_REVISION, &new, activate).await;
    until_installed(&plane, "platform", &second).await;
    plane.until(COMPOSITION, "things", |c| step_of(c) == "other").await;
}

#[tokio::test]
async fn history_has_a_limit() {
    let plane = Plane::new().await;
    let image = |n: usize| configuration("platform", "", &[composition(&format!("things-{n}"), &["sizer"])]);
    let digests: Vec<Digest> =
        (1..=4).map(|n| plane.registry.push(&format!("r.io/acme/platform:v{n}.0.0"), &image(n))).collect();
    plane.apply(&install("platform", "r.io/acme/platform:v1.0.0")).await;
    until_installed(&plane, "platform", &digests[0]).await;
    for n in 2..=4 {
        move_to(&plane, &format!("r.io/acme/platform:v{n}.0.0")).await;
        until_installed(&plane, "platform", &digests[n - 1]).await;
    }
    plane.until_gone(CONFIGURATION_REVISION, &revision_of("platform", &digests[1])).await;
    plane.until_idle().await;
    let mut left: Vec<(i64, String)> = plane
        .list(CONFIGURATION_REVISION)
        .await
        .iter()
        .map(|r| (state(r).0, state(r).1.to_owned()))
        .collect();
    left.sort();
    assert_eq!(left, [(3, "Inactive".to_owned()), (4, "Active".to_owned())]);
    assert!(plane.get(COMPOSITION, "things-1").await.is_some(), "the package owns it still");
}

#[tokio::test]
async fn a_paused_package_does_nothing() {
    let Versions { plane, first, second } = versions("").await;
    until_installed(&plane, "platform", &first).await;
    let paused = json!({"metadata": {"annotations": {"crossplane.io/paused": "true"}}});
    plane.patch(CONFIGURATION, "platform", paused).await;
    plane.until(CONFIGURATION, "platform", |p| reason_of(p, "Synced") == "ReconcilePaused").await;
    move_to(&plane, V2).await;
    plane.until_idle().await;
    assert_eq!(plane.list(CONFIGURATION_REVISION).await.len(), 1);
    let on = json!({"metadata": {"annotations": {"crossplane.io/paused": null}}});
    plane.patch(CONFIGURATION, "platform", on).await;
    let package = until_installed(&plane, "platform", &second).await;
    assert_eq!(status_of(&package, "Synced"), "", "no trace of the pause");
}

#[tokio::test]
async fn an_unknown_tag_leaves_the_installed_revision_alone() {
    let Versions { plane, first, .. } = versions("").await;
    until_installed(&plane, "platform", &first).await;
    move_to(&plane, "r.io/acme/platform:v9.0.0").await;
    let unpacking = |p: &Value| reason_of(p, "Installed") == "UnpackingPackage";
    let package = plane.until(CONFIGURATION, "platform", unpacking).await;
    let expected = "cannot unpack package: r.io/acme/platform:v9.0.0: not found; check the reference, and the \
                    ImageConfigs that rewrite it";
    assert_eq!((message_of(&package, "Installed"), message_of(&package, "Healthy")), (expected, expected));
    assert_eq!(status_of(&package, "Healthy"), "False");
    let old = plane.get(CONFIGURATION_REVISION, &revision_of("platform", &first)).await.unwrap();
    assert_eq!(state(&old), (1, "Active"));
    plane.until_idle().await;
    assert!(plane.events_of("platform").await.iter().any(|e| e.starts_with("Warning UnpackPackage")));
    // The tag is pushed: the package finds it without being touched.
    let digest = plane.registry.push("r.io/acme/platform:v9.0.0", &next_platform());
    plane.after(Duration::from_secs(120)).await;
    until_installed(&plane, "platform", &digest).await;
}

#[tokio::test]
async fn a_registry_that_comes_back_is_asked_again() {
    let plane = Plane::new().await;
    let digest = plane.registry.push(V1, &platform());
    plane.registry.set_down(true);
    plane.apply(&install("platform", V1)).await;
    let package =
        plane.until(CONFIGURATION, "platform", |p| reason_of(p, "Installed") == "UnpackingPackage").await;
    assert!(message_of(&package, "Healthy").contains("connection refused"));
    for _ in 0..6 {
        plane.after(Duration::from_secs(61)).await;
    }
    let asked = plane.registry.take_requests().len();
    assert!((6..=14).contains(&asked), "it is asked with pauses, not all the time: {asked}");
    plane.registry.set_down(false);
    plane.after(Duration::from_secs(61)).await;
    until_installed(&plane, "platform", &digest).await;
}

#[tokio::test]
async fn inactive_revisions_ask_for_nothing() {
    let Versions { plane, first, second } = versions("").await;
    until_installed(&plane, "platform", &first).await;
    move_to(&plane, V2).await;
    until_installed(&plane, "platform", &second).await;
    plane.until_idle().await;
    plane.registry.take_requests();
    let old = revision_of("platform", &first);
    plane.patch(CONFIGURATION_REVISION, &old, json!({"metadata": {"labels": {"touched": "yes"}}})).await;
    plane.until_idle().await;
    assert_eq!(plane.registry.take_requests(), [""; 0]);
    let old = plane.get(CONFIGURATION_REVISION, &old).await.unwrap();
    assert_eq!(status_of(&old, "RevisionHealthy"), "True");
}

#[tokio::test]
async fn a_tag_that_moves_is_followed_only_if_it_is_always_pulled() {
    let Versions { plane, first, .. } = versions("packagePullPolicy: Always, ").await;
    until_installed(&plane, "platform", &first).await;
    let moved = plane.registry.push(V1, &next_platform());
    plane.after(Duration::from_secs(61)).await;
    until_installed(&plane, "platform", &moved).await;
    plane.patch(CONFIGURATION, "platform", json!({"spec": {"packagePullPolicy": "IfNotPresent"}})).await;
    plane.until_idle().await;
    plane.registry.push(V1, &platform());
    plane.registry.take_requests();
    plane.after(Duration::from_secs(600)).await;
    assert_eq!(plane.registry.take_requests(), [""; 0]);
    until_installed(&plane, "platform", &moved).await;
}

#[tokio::test]
async fn a_slow_revision_that_was_rolled_back_changes_nothing() {
    let Versions { plane, first, second } = versions("").await;
    until_installed(&plane, "platform", &first).await;
    plane.until_idle().await;
    // The package checks the new image, and its revision waits for it.
    plane.registry.hold_second_fetch(&second);
    move_to(&plane, V2).await;
    let (old, new) = (revision_of("platform", &first), revision_of("platform", &second));
    plane.until(CONFIGURATION_REVISION, &old, |r| state(r).1 == "Inactive").await;
    plane.until(CONFIGURATION_REVISION, &new, |r| state(r).1 == "Active").await;
    plane.until(LOCK, "lock", |l| l["packages"].as_array().is_none_or(Vec::is_empty)).await;
    move_to(&plane, V1).await;
    until_installed(&plane, "platform", &first).await;
    plane.until(LOCK, "lock", |l| l["packages"][0]["name"] == *old).await;
    plane.registry.release();
    plane.until_idle().await;
    let lock = plane.get(LOCK, "lock").await.unwrap();
    let locked: Vec<&Value> = lock["packages"].as_array().unwrap().iter().map(|p| &p["name"]).collect();
    assert_eq!(locked, [&json!(old)]);
    let composition = plane.get(COMPOSITION, "things").await.unwrap();
    assert_eq!(step_of(&composition), "sizer");
    assert_eq!(meta::controller_of(&composition).unwrap().name, old);
}
