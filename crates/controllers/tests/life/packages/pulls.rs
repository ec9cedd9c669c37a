//! When registries are asked: what is waited for, and what is not.

use super::install::platform;
use super::sources::{image_config, secret, secret_with};
use super::*;
use crate::life::basics::composition;
use serde_json::json;
use std::time::Duration;

const V1: &str = "r.io/acme/platform:v1.0.0";
const V2: &str = "r.io/acme/platform:v2.0.0";
const HOUR: Duration = Duration::from_secs(3600);
const STEP: Duration = Duration::from_secs(600);

#[tokio::test]
async fn a_registry_that_asks_for_a_wait_is_not_asked_before_it_is_over() {
    let plane = Plane::new().await;
    let digest = plane.registry.push(V1, &platform());
    plane.registry.set_busy("resolve", HOUR);
    plane.apply(&install("platform", V1)).await;
    plane
        .until(CONFIGURATION, "platform", |p| message_of(p, "Installed").contains("too many requests"))
        .await;
    plane.until_idle().await;
    assert_eq!(plane.registry.take_requests(), [format!("resolve {V1}")]);
    for _ in 0..5 {
        plane.after(STEP).await;
    }
    assert_eq!(plane.registry.take_requests(), [""; 0], "it asked for an hour");
    plane.registry.set_ready();
    plane.after(STEP).await;
    plane.after(STEP).await;
    until_installed(&plane, "platform", &digest).await;
}

#[tokio::test]
async fn signatures_are_not_looked_for_before_the_wait_that_the_registry_asked_for_is_over() {
    let plane = Plane::new().await;
    let digest = plane.registry.push(V1, &platform());
    plane.registry.sign(&digest, "key-1");
    secret_with(&plane, "team", "cosign.pub", "key-1").await;
    let authority = "{name: team, key: {secretRef: {name: team, key: cosign.pub}, hashAlgorithm: sha256}}";
    let spec = format!("verification: {{provider: Cosign, cosign: {{authorities: [{authority}]}}}}");
    plane.apply(&image_config("signed", "r.io/", &spec)).await;
    plane.registry.set_busy("signatures", HOUR);
    plane.apply(&install("platform", V1)).await;
    plane
        .until(CONFIGURATION, "platform", |p| message_of(p, "Installed").contains("too many requests"))
        .await;
    plane.until_idle().await;
    plane.registry.take_requests();
    for _ in 0..5 {
        plane.after(STEP).await;
    }
    assert_eq!(plane.registry.take_requests(), [""; 0], "it asked for an hour");
    plane.registry.set_ready();
    plane.after(STEP).await;
    plane.after(STEP).await;
    until_installed(&plane, "platform", &digest).await;
}

#[tokio::test]
async fn a_change_of_the_package_ends_the_wait_that_a_registry_asked_for() {
    let plane = Plane::new().await;
    plane.registry.push(V1, &platform());
    let digest = plane.registry.push(V2, &platform());
    plane.registry.set_busy(&format!("resolve {V1}"), HOUR);
    plane.apply(&install("platform", V1)).await;
    plane
        .until(CONFIGURATION, "platform", |p| message_of(p, "Installed").contains("too many requests"))
        .await;
    plane.until_idle().await;
    plane.patch(CONFIGURATION, "platform", json!({"spec": {"package": V2}})).await;
    until_installed(&plane, "platform", &digest).await;
}

#[tokio::test]
async fn tags_are_not_listed_before_the_wait_that_the_registry_asked_for_is_over() {
    let plane = Plane::new().await;
    let push = |name: &str, spec: &str| {
        let package = configuration(name, spec, &[composition(name, &["sizer"])]);
        plane.registry.push(&format!("r.io/acme/{name}:v1.0.0"), &package);
    };
    push("a", &depends_on(&[("r.io/acme/b", ">=v1.0.0")]));
    push("b", "");
    push("other", "");
    plane.registry.set_busy("tags", HOUR);
    plane.apply(&install("a", "r.io/acme/a:v1.0.0")).await;
    plane.until(LOCK, "lock", |l| message_of(l, "Resolved").contains("too many requests")).await;
    plane.until_idle().await;
    plane.registry.take_requests();
    // Changes of the Lock do not end the wait.
    plane.apply(&install("other", "r.io/acme/other:v1.0.0")).await;
    plane.until(CONFIGURATION, "other", is_healthy).await;
    for _ in 0..5 {
        plane.after(STEP).await;
    }
    let asked = plane.registry.take_requests();
    assert!(!asked.iter().any(|request| request.starts_with("tags")), "{asked:?}");
    plane.registry.set_ready();
    plane.after(STEP).await;
    plane.after(STEP).await;
    plane.until(CONFIGURATION, "a", is_healthy).await;
    plane.until(CONFIGURATION, "acme-b", is_healthy).await;
}

#[tokio::test]
async fn a_package_with_another_image_does_not_wait_for_the_registry_of_the_old_one() {
    let plane = Plane::new().await;
    plane.registry.push(V1, &platform());
    plane.registry.push(V2, &platform());
    plane.registry.hang(&format!("resolve {V1}"));
    plane.apply(&install("platform", V1)).await;
    plane.registry.until_asked(&format!("resolve {V1}")).await;
    plane.patch(CONFIGURATION, "platform", json!({"spec": {"package": V2}})).await;
    let moved = |p: &Value| p["status"]["currentIdentifier"] == V2;
    plane.until_without_time(CONFIGURATION, "platform", moved).await;
}

/// What names the Secret `pull`.
#[derive(Clone, Copy, Debug)]
enum Names {
    Package,
    ImageConfig,
    ServiceAccount,
}

#[tokio::test]
async fn a_pull_secret_that_is_corrected_or_made_is_used_at_once() {
    for (by, exists) in [
        (Names::Package, true),
        (Names::Package, false),
        (Names::ImageConfig, true),
        (Names::ImageConfig, false),
        (Names::ServiceAccount, true),
        (Names::ServiceAccount, false),
    ] {
        let plane = Plane::new().await;
        plane.registry.require_password("right");
        let digest = plane.registry.push(V1, &platform());
        if exists {
            secret(&plane, "pull", "wrong").await;
        } else {
            secret(&plane, "unrelated", "wrong").await;
        }
        let mut package = install("platform", V1);
        match by {
            Names::Package => {
                package = package.replace("spec: {", "spec: {packagePullSecrets: [{name: pull}], ");
            }
            Names::ImageConfig => {
                let spec = "registry: {authentication: {pullSecretRef: {name: pull}}}";
                plane.apply(&image_config("auth", "r.io/", spec)).await;
            }
            Names::ServiceAccount => plane.apply(&service_account("pull")).await,
        }
        plane.apply(&package).await;
        plane.until(CONFIGURATION, "platform", |p| reason_of(p, "Installed") == "UnpackingPackage").await;
        plane.until_idle().await;
        secret(&plane, "pull", "right").await;
        let name = revision_of("platform", &digest);
        let moved = |p: &Value| p["status"]["currentRevision"] == *name;
        plane.until_without_time(CONFIGURATION, "platform", moved).await;
        until_installed(&plane, "platform", &digest).await;
    }
}

fn service_account(secret: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: crossplane, namespace: crossplane-system}}\n\
         imagePullSecrets: [{{name: {secret}}}]\n"
    )
}

#[tokio::test]
async fn a_service_account_that_gets_a_pull_secret_is_followed() {
    let plane = Plane::new().await;
    plane.registry.require_password("right");
    plane.registry.push(V1, &platform());
    secret(&plane, "pull", "right").await;
    plane.apply(&install("platform", V1)).await;
    plane.until(CONFIGURATION, "platform", |p| message_of(p, "Installed").contains("unauthorized")).await;
    plane.until_idle().await;
    plane.apply(&service_account("pull")).await;
    let moved = |p: &Value| p["status"]["currentIdentifier"] == V1;
    plane.until_without_time(CONFIGURATION, "platform", moved).await;
}

#[tokio::test]
async fn tags_are_listed_with_a_corrected_pull_secret_at_once() {
    let plane = Plane::new().await;
    let spec = depends_on(&[("r.io/acme/b", ">=v1.0.0")]);
    let package = configuration("a", &spec, &[composition("a", &["sizer"])]);
    plane.registry.push("r.io/acme/a:v1.0.0", &package);
    secret(&plane, "pull", "wrong").await;
    let manifest =
        install("a", "r.io/acme/a:v1.0.0").replace("spec: {", "spec: {packagePullSecrets: [{name: pull}], ");
    plane.apply(&manifest).await;
    // There is no such repository yet; by the time that there is, it requires a password.
    plane.until(LOCK, "lock", |l| message_of(l, "Resolved").contains("not found")).await;
    plane.registry.push("r.io/acme/b:v1.0.0", &configuration("b", "", &[composition("b", &["sizer"])]));
    plane.registry.require_password("right");
    plane.after(Duration::from_secs(61)).await;
    plane.until(LOCK, "lock", |l| message_of(l, "Resolved").contains("unauthorized")).await;
    plane.until_idle().await;
    secret(&plane, "pull", "right").await;
    plane.until_without_time(CONFIGURATION, "acme-b", |b| b["spec"]["package"] == "r.io/acme/b:v1.0.0").await;
}

#[tokio::test]
async fn pull_secrets_of_an_installed_package_cost_nothing_when_they_change() {
    let plane = Plane::new().await;
    let digest = plane.registry.push(V1, &platform());
    secret(&plane, "pull", "first").await;
    let manifest = install("platform", V1).replace("spec: {", "spec: {packagePullSecrets: [{name: pull}], ");
    plane.apply(&manifest).await;
    until_installed(&plane, "platform", &digest).await;
    let before = plane.until_idle().await;
    plane.registry.take_requests();
    secret(&plane, "pull", "second").await;
    assert_eq!(plane.until_idle().await, before);
    assert_eq!(plane.registry.take_requests(), [""; 0]);
}
