//! Signatures: what an ImageConfig wants verified is verified by digest, once, before anything of it is used.

use super::install::platform;
use super::sources::{image_config, secret_with};
use super::*;
use crate::life::basics::composition;
use serde_json::json;
use std::time::Duration;

const IMAGE_CONFIG: &str = "pkg.crossplane.io/v1beta1/ImageConfig";
const VERIFIED_BY: &str = "transom.io/verified-by";
const PLATFORM: &str = "r.io/acme/platform:v1.0.0";

/// Authorities with a key each: the name of the authority is that of the Secret.
fn verification(names: &[&str]) -> String {
    let authority = |name: &&str| {
        format!(
            "{{name: {name}, key: {{secretRef: {{name: {name}, key: cosign.pub}}, hashAlgorithm: sha256}}}}"
        )
    };
    let all: Vec<String> = names.iter().map(authority).collect();
    format!("verification: {{provider: Cosign, cosign: {{authorities: [{}]}}}}", all.join(", "))
}

/// Wants all images of the registry verified, and waits until the controllers know.
async fn verify_all(plane: &Plane, spec: &str) {
    plane.apply(&image_config("signed", "r.io/", spec)).await;
    plane.until(IMAGE_CONFIG, "signed", |_| true).await;
    plane.until_idle().await;
}

async fn key(plane: &Plane, name: &str, key: &str) {
    secret_with(plane, name, "cosign.pub", key).await;
}

/// Waits until a Configuration is refused for a reason.
async fn until_refused(plane: &Plane, name: &str, reason: &str) -> Value {
    let package = plane.until(CONFIGURATION, name, |p| message_of(p, "Installed").contains(reason)).await;
    assert_eq!(reason_of(&package, "Installed"), "UnpackingPackage");
    assert_eq!(status_of(&package, "Healthy"), "False");
    assert!(message_of(&package, "Installed").contains("ImageConfig \"signed\""), "{package:#}");
    package
}

#[tokio::test]
async fn what_is_not_signed_is_not_installed() {
    let plane = Plane::new().await;
    let digest = plane.registry.push(PLATFORM, &platform());
    verify_all(&plane, &verification(&["team"])).await;
    plane.apply(&install("platform", PLATFORM)).await;
    until_refused(
        &plane,
        "platform",
        "authority \"team\": signature verification failed with there is no Secret",
    )
    .await;
    key(&plane, "team", "key-1").await;
    // A signature by another key, and one of another image, do not count.
    plane.registry.sign(&digest, "key-2");
    until_refused(&plane, "platform", "authority \"team\": no signature of it was found").await;
    assert!(plane.list(CONFIGURATION_REVISION).await.is_empty());
    assert!(plane.list("apiextensions.crossplane.io/v1/Composition").await.is_empty());
    assert!(
        plane
            .get(LOCK, "lock")
            .await
            .is_none_or(|lock| lock["packages"].as_array().is_none_or(Vec::is_empty))
    );
    let fetched = |request: &String| request.starts_with("fetch");
    assert!(
        !plane.registry.take_requests().iter().any(fetched),
        "content was fetched before it was verified"
    );
    // It is tried again, and installed once it is signed.
    plane.registry.sign(&digest, "key-1");
    plane.after(Duration::from_secs(61)).await;
    let package = until_installed(&plane, "platform", &digest).await;
    assert_eq!(
        package["status"]["appliedImageConfigRefs"],
        json!([{"name": "signed", "reason": "VerifyImage"}])
    );
    let revision = plane.get(CONFIGURATION_REVISION, &revision_of("platform", &digest)).await.unwrap();
    let record = revision["metadata"]["annotations"][VERIFIED_BY].as_str().unwrap();
    assert!(record.starts_with("signed/team sha256:"), "{record}");
}

#[tokio::test]
async fn an_image_config_that_the_watch_has_not_reported_counts() {
    let plane = Plane::new().await;
    plane.until_idle().await;
    plane.delay_watches("imageconfigs", Duration::from_secs(60));
    plane.registry.push(PLATFORM, &platform());
    plane.apply(&image_config("signed", "r.io/", &verification(&["team"]))).await;
    plane.apply(&install("platform", PLATFORM)).await;
    let judged = |p: &Value| is_healthy(p) || reason_of(p, "Installed") == "UnpackingPackage";
    let package = plane.until(CONFIGURATION, "platform", judged).await;
    assert!(message_of(&package, "Installed").contains("authority \"team\""), "{package:#}");
    assert!(plane.list(CONFIGURATION_REVISION).await.is_empty());
    assert!(plane.list("apiextensions.crossplane.io/v1/Composition").await.is_empty());
}

#[tokio::test]
async fn nothing_is_asked_again_at_rest_or_after_a_restart() {
    let mut plane = Plane::new().await;
    let digest = plane.registry.push(PLATFORM, &platform());
    plane.registry.sign(&digest, "key-1");
    key(&plane, "team", "key-1").await;
    verify_all(&plane, &verification(&["team"])).await;
    plane.apply(&install("platform", PLATFORM)).await;
    until_installed(&plane, "platform", &digest).await;
    plane.until_idle().await;
    let signatures = |request: &String| request.starts_with("signatures");
    assert_eq!(plane.registry.take_requests().iter().filter(|r| signatures(r)).count(), 1);
    // Another package of the same image, a change of the package, and a new process need no other verification.
    plane.patch(CONFIGURATION, "platform", json!({"spec": {"revisionHistoryLimit": 3}})).await;
    plane.until_idle().await;
    assert_eq!(plane.registry.take_requests(), Vec::<String>::new());
    plane.stop();
    plane.start().await;
    plane.until_idle().await;
    until_installed(&plane, "platform", &digest).await;
    assert!(!plane.registry.take_requests().iter().any(signatures));
}

#[tokio::test]
async fn another_key_or_policy_verifies_again() {
    let plane = Plane::new().await;
    let digest = plane.registry.push(PLATFORM, &platform());
    plane.registry.sign(&digest, "key-1");
    key(&plane, "team", "key-1").await;
    verify_all(&plane, &verification(&["team"])).await;
    plane.apply(&install("platform", PLATFORM)).await;
    until_installed(&plane, "platform", &digest).await;
    let name = revision_of("platform", &digest);
    // The key is rotated: the image is no longer trusted. What it installed stays until a user removes it.
    key(&plane, "team", "key-2").await;
    until_refused(&plane, "platform", "no signature of it was found").await;
    let revision = plane
        .until(CONFIGURATION_REVISION, &name, |r| message_of(r, "RevisionHealthy").contains("no signature"))
        .await;
    assert_eq!(revision["spec"]["desiredState"], "Active");
    assert!(!plane.list("apiextensions.crossplane.io/v1/Composition").await.is_empty());
    // It is signed by the new key as well.
    plane.registry.sign(&digest, "key-2");
    plane.after(Duration::from_secs(61)).await;
    until_installed(&plane, "platform", &digest).await;
    // Another authority in the same ImageConfig.
    key(&plane, "security", "key-3").await;
    plane.apply(&image_config("signed", "r.io/", &verification(&["security"]))).await;
    until_refused(&plane, "platform", "authority \"security\"").await;
    // One of several is enough, and without verification none is needed.
    plane.apply(&image_config("signed", "r.io/", &verification(&["security", "team"]))).await;
    until_installed(&plane, "platform", &digest).await;
    let verified = |r: &Value| r["metadata"]["annotations"][VERIFIED_BY].as_str().map(str::to_owned);
    let by_team = |r: &Value| verified(r).is_some_and(|record| record.starts_with("signed/team "));
    plane.until(CONFIGURATION_REVISION, &name, by_team).await;
    plane.delete(IMAGE_CONFIG, "signed").await;
    plane.until(CONFIGURATION_REVISION, &name, |r| verified(r).is_none()).await;
    until_installed(&plane, "platform", &digest).await;
}

#[tokio::test]
async fn an_image_that_is_installed_is_verified_when_that_is_asked_for() {
    let plane = Plane::new().await;
    let digest = plane.registry.push(PLATFORM, &platform());
    plane.apply(&install("platform", PLATFORM)).await;
    until_installed(&plane, "platform", &digest).await;
    key(&plane, "team", "key-1").await;
    verify_all(&plane, &verification(&["team"])).await;
    until_refused(&plane, "platform", "no signature of it was found").await;
    plane.registry.sign(&digest, "key-1");
    plane.after(Duration::from_secs(61)).await;
    until_installed(&plane, "platform", &digest).await;
}

#[tokio::test]
async fn what_was_verified_is_what_is_used() {
    let plane = Plane::new().await;
    let signed = plane.registry.push(PLATFORM, &platform());
    plane.registry.sign(&signed, "key-1");
    key(&plane, "team", "key-1").await;
    verify_all(&plane, &verification(&["team"])).await;
    plane.apply(&install("platform", PLATFORM)).await;
    until_installed(&plane, "platform", &signed).await;
    // The tag moves to an image without a signature: the package stays at the one that was verified.
    let moved = configuration("platform", "", &[composition("moved", &["sizer"])]);
    plane.registry.push(PLATFORM, &moved);
    plane.patch(CONFIGURATION, "platform", json!({"spec": {"packagePullPolicy": "Always"}})).await;
    let package = until_refused(&plane, "platform", "no signature of it was found").await;
    assert_eq!(package["status"]["currentRevision"], *revision_of("platform", &signed));
    assert!(plane.get("apiextensions.crossplane.io/v1/Composition", "moved").await.is_none());
    assert_eq!(plane.list(CONFIGURATION_REVISION).await.len(), 1);
}

#[tokio::test]
async fn dependencies_are_verified_too() {
    let plane = Plane::new().await;
    let spec = depends_on(&[("r.io/acme/b", ">=v1.0.0")]);
    let a = configuration("a", &spec, &[composition("a", &["sizer"])]);
    let a = plane.registry.push("r.io/acme/a:v1.0.0", &a);
    let b = configuration("b", "", &[composition("b", &["sizer"])]);
    let b = plane.registry.push("r.io/acme/b:v1.0.0", &b);
    plane.registry.sign(&a, "key-1");
    key(&plane, "team", "key-1").await;
    verify_all(&plane, &verification(&["team"])).await;
    plane.apply(&install("a", "r.io/acme/a:v1.0.0")).await;
    until_refused(&plane, "acme-b", "no signature of it was found").await;
    let waiting =
        plane.until(CONFIGURATION, "a", |p| message_of(p, "Healthy").contains("dependencies")).await;
    assert_eq!(status_of(&waiting, "Healthy"), "False");
    assert!(plane.list("apiextensions.crossplane.io/v1/Composition").await.is_empty());
    plane.registry.sign(&b, "key-1");
    plane.after(Duration::from_secs(61)).await;
    until_installed(&plane, "acme-b", &b).await;
    until_installed(&plane, "a", &a).await;
}

#[tokio::test]
async fn attestations_are_wanted_by_their_type() {
    let plane = Plane::new().await;
    let digest = plane.registry.push(PLATFORM, &platform());
    key(&plane, "team", "key-1").await;
    let wanted = "name: team, attestations: [{name: p, predicateType: slsaprovenance1}], key: {secretRef";
    let attested = verification(&["team"]).replace("name: team, key: {secretRef", wanted);
    verify_all(&plane, &attested).await;
    plane.registry.sign(&digest, "key-1");
    plane.registry.attest(&digest, "key-1", "https://spdx.dev/Document");
    plane.apply(&install("platform", PLATFORM)).await;
    until_refused(&plane, "platform", "no attestation of type slsaprovenance1 found").await;
    plane.registry.attest(&digest, "key-1", "https://slsa.dev/provenance/v1");
    plane.after(Duration::from_secs(61)).await;
    until_installed(&plane, "platform", &digest).await;
}

#[tokio::test]
async fn a_package_cannot_say_that_it_was_verified() {
    let plane = Plane::new().await;
    let package = platform().replacen(
        "metadata: {name: platform}",
        "metadata: {name: platform, annotations: {transom.io/verified-by: 'signed/team sha256:x', note: kept}}",
        1,
    );
    assert!(package.contains(VERIFIED_BY));
    let digest = plane.registry.push(PLATFORM, &package);
    plane.apply(&install("platform", PLATFORM)).await;
    until_installed(&plane, "platform", &digest).await;
    let revision = plane.get(CONFIGURATION_REVISION, &revision_of("platform", &digest)).await.unwrap();
    assert_eq!(revision["metadata"]["annotations"]["note"], "kept");
    assert_eq!(revision["metadata"]["annotations"][VERIFIED_BY], Value::Null);
}
