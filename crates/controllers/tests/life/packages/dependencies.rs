//! The Lock: what depends on what, and what is installed because of it.

use super::*;
use crate::life::basics::composition;
use serde_json::json;
use transom_object::meta;

fn empty(name: &str, dependencies: &[(&str, &str)]) -> String {
    let spec = if dependencies.is_empty() { String::new() } else { depends_on(dependencies) };
    configuration(name, &spec, &[composition(name, &["sizer"])])
}

fn push(plane: &Plane, name: &str, version: &str, dependencies: &[(&str, &str)]) -> Digest {
    plane.registry.push(&format!("r.io/acme/{name}:{version}"), &empty(name, dependencies))
}

async fn names(plane: &Plane) -> Vec<String> {
    plane.list(CONFIGURATION).await.iter().map(|p| meta::name(p).to_owned()).collect()
}

#[tokio::test]
async fn dependencies_are_installed_transitively_in_their_highest_version() {
    let plane = Plane::new().await;
    push(&plane, "a", "v1.0.0", &[("r.io/acme/b", ">=v1.0.0")]);
    push(&plane, "b", "v1.0.0", &[]);
    push(&plane, "b", "v1.2.0", &[("r.io/acme/c", "v1.0.0")]);
    push(&plane, "b", "v2", &[]);
    push(&plane, "c", "v1.0.0", &[]);
    push(&plane, "c", "v1.1.0", &[]);
    plane.apply(&install("a", "r.io/acme/a:v1.0.0")).await;
    plane.until(CONFIGURATION, "a", is_healthy).await;
    let b = plane.until(CONFIGURATION, "acme-b", is_healthy).await;
    let c = plane.until(CONFIGURATION, "acme-c", is_healthy).await;
    assert_eq!(b["spec"]["package"], "r.io/acme/b:v1.2.0", "the highest complete version");
    assert_eq!(c["spec"]["package"], "r.io/acme/c:v1.0.0");
    assert!(meta::owner_references(&b).is_empty(), "it outlives its dependents");
    plane.until_idle().await;
    let revisions = plane.list(CONFIGURATION_REVISION).await;
    let a = revisions.iter().find(|r| r["spec"]["image"] == "r.io/acme/a:v1.0.0").unwrap();
    let count = |field: &str| a["status"][field].as_i64().unwrap_or_default();
    assert_eq!(
        (count("foundDependencies"), count("installedDependencies"), count("invalidDependencies")),
        (2, 2, 0)
    );
    let lock = plane.until_true(LOCK, "lock", "Resolved").await;
    assert_eq!(lock["packages"].as_array().unwrap().len(), 3);
    assert_eq!(meta::finalizers(&lock), ["lock.pkg.crossplane.io"]);
}

#[tokio::test]
async fn a_dependency_by_digest_is_exactly_that_image() {
    let plane = Plane::new().await;
    let pinned = push(&plane, "b", "v1.0.0", &[]);
    push(&plane, "b", "v1.1.0", &[("r.io/acme/missing", "v1.0.0")]);
    push(&plane, "a", "v1.0.0", &[("r.io/acme/b", pinned.as_str())]);
    plane.apply(&install("a", "r.io/acme/a:v1.0.0")).await;
    plane.until(CONFIGURATION, "a", is_healthy).await;
    let b = until_installed(&plane, "acme-b", &pinned).await;
    assert_eq!(b["spec"]["package"], format!("r.io/acme/b@{pinned}"));
    let revision = plane.get(CONFIGURATION_REVISION, &revision_of("acme-b", &pinned)).await.unwrap();
    assert_eq!(meta::annotation(&revision, "transom.io/image-digest"), Some(pinned.as_str()));
    let lock = plane.until_true(LOCK, "lock", "Resolved").await;
    let entry = lock["packages"].as_array().unwrap().iter().find(|e| e["source"] == "r.io/acme/b");
    assert_eq!(entry.unwrap()["version"], pinned.as_str());
    // A digest leaves nothing to be looked up.
    let asked = plane.registry.take_requests();
    let lookups = asked.iter().filter(|r| r.contains("acme/b") && !r.starts_with("fetch"));
    assert_eq!(lookups.count(), 0, "{asked:?}");
}

#[tokio::test]
async fn a_package_of_the_same_source_under_another_name_is_enough() {
    let plane = Plane::new().await;
    push(&plane, "a", "v1.0.0", &[("r.io/acme/b", ">=v0.2.0")]);
    push(&plane, "b", "v0.3.0", &[]);
    push(&plane, "b", "v0.4.0", &[]);
    plane.apply(&install("other-name", "r.io/acme/b:v0.3.0")).await;
    plane.apply(&install("a", "r.io/acme/a:v1.0.0")).await;
    plane.until(CONFIGURATION, "a", is_healthy).await;
    plane.until_idle().await;
    assert_eq!(names(&plane).await, ["a", "other-name"]);
}

#[tokio::test]
async fn what_is_missing_is_named_with_all_that_want_it() {
    let plane = Plane::new().await;
    push(&plane, "a", "v1.0.0", &[("r.io/acme/b", ">=v2.0.0")]);
    push(&plane, "x", "v1.0.0", &[("r.io/acme/b", ">=v3.0.0")]);
    push(&plane, "b", "v1.0.0", &[]);
    push(&plane, "fine", "v1.0.0", &[]);
    for name in ["a", "x", "fine"] {
        plane.apply(&install(name, &format!("r.io/acme/{name}:v1.0.0"))).await;
    }
    plane.until(CONFIGURATION, "fine", is_healthy).await;
    let named = |l: &Value| {
        let message = message_of(l, "Resolved");
        [">=v2.0.0", ">=v3.0.0", "a-", "x-", "r.io/acme/b"].iter().all(|part| message.contains(part))
    };
    let lock = plane.until(LOCK, "lock", named).await;
    assert_eq!(reason_of(&lock, "Resolved"), "DependencyResolutionFailed");
    let a = plane.until(CONFIGURATION, "a", |p| message_of(p, "Healthy").contains("r.io/acme/b")).await;
    let message = message_of(&a, "Healthy");
    assert!(
        message.contains("cannot resolve package dependencies: missing dependencies: \"r.io/acme/b\""),
        "{message}"
    );
    assert!(plane.get("apiextensions.crossplane.io/v1/Composition", "a").await.is_none());
    plane.until_idle().await;
    assert_eq!(names(&plane).await, ["a", "fine", "x"]);
}

#[tokio::test]
async fn two_packages_of_one_source_fail_and_no_others() {
    let plane = Plane::new().await;
    push(&plane, "a", "v1.0.0", &[]);
    push(&plane, "a", "v1.1.0", &[("r.io/acme/nothing", "v1.0.0")]);
    push(&plane, "fine", "v1.0.0", &[("r.io/acme/other", "v1.0.0")]);
    push(&plane, "other", "v1.0.0", &[]);
    plane.apply(&install("a", "r.io/acme/a:v1.0.0")).await;
    plane.until(CONFIGURATION, "a", is_healthy).await;
    plane.apply(&install("again", "r.io/acme/a:v1.1.0")).await;
    let twice = |p: &Value| message_of(p, "Healthy").contains("is installed more than once");
    plane.until(CONFIGURATION, "again", twice).await;
    plane.until(CONFIGURATION, "a", twice).await;
    plane.apply(&install("fine", "r.io/acme/fine:v1.0.0")).await;
    plane.until(CONFIGURATION, "fine", is_healthy).await;
    let lock = plane.until(LOCK, "lock", |l| status_of(l, "Resolved") == "False").await;
    assert!(message_of(&lock, "Resolved").contains("more than once"));
    plane.delete(CONFIGURATION, "again").await;
    plane.until(CONFIGURATION, "a", is_healthy).await;
    plane.until_true(LOCK, "lock", "Resolved").await;
}

#[tokio::test]
async fn a_cycle_is_shown_to_those_in_it() {
    let plane = Plane::new().await;
    push(&plane, "a", "v1.0.0", &[("r.io/acme/b", "v1.0.0")]);
    push(&plane, "b", "v1.0.0", &[("r.io/acme/a", "v1.0.0")]);
    push(&plane, "fine", "v1.0.0", &[]);
    plane.apply(&install("a", "r.io/acme/a:v1.0.0")).await;
    let cycle = |p: &Value| message_of(p, "Healthy").contains("detected cycle on: r.io/acme/");
    plane.until(CONFIGURATION, "a", cycle).await;
    plane.until(CONFIGURATION, "acme-b", cycle).await;
    plane.apply(&install("fine", "r.io/acme/fine:v1.0.0")).await;
    plane.until(CONFIGURATION, "fine", is_healthy).await;
}

#[tokio::test]
async fn an_installed_version_that_is_not_accepted_is_named() {
    let plane = Plane::new().await;
    push(&plane, "a", "v1.0.0", &[("r.io/acme/b", ">=v2.0.0")]);
    push(&plane, "b", "v1.0.0", &[]);
    push(&plane, "b", "v2.0.0", &[]);
    plane.apply(&install("b", "r.io/acme/b:v1.0.0")).await;
    plane.apply(&install("a", "r.io/acme/a:v1.0.0")).await;
    let named = "existing package r.io/acme/b@v1.0.0 is incompatible with constraint >=v2.0.0";
    plane.until(CONFIGURATION, "a", |p| message_of(p, "Healthy").contains(named)).await;
    plane.until_idle().await;
    assert_eq!(plane.get(CONFIGURATION, "b").await.unwrap()["spec"]["package"], "r.io/acme/b:v1.0.0");
    plane.patch(CONFIGURATION, "b", json!({"spec": {"package": "r.io/acme/b:v2.0.0"}})).await;
    plane.until(CONFIGURATION, "a", is_healthy).await;
}

#[tokio::test]
async fn dependencies_are_upgraded_and_downgraded_where_allowed() {
    let mut plane = Plane::quiet().await;
    plane.options.dependency_upgrades = true;
    plane.start().await;
    push(&plane, "a", "v1.0.0", &[("r.io/acme/b", ">=v1.1.0")]);
    push(&plane, "low", "v1.0.0", &[("r.io/acme/b", "<v1.1.0")]);
    for version in ["v1.0.0", "v1.1.0", "v1.2.0"] {
        push(&plane, "b", version, &[]);
    }
    plane.apply(&install("b", "r.io/acme/b:v1.0.0")).await;
    plane.until(CONFIGURATION, "b", is_healthy).await;
    plane.apply(&install("a", "r.io/acme/a:v1.0.0")).await;
    plane.until(CONFIGURATION, "a", is_healthy).await;
    let b = plane.get(CONFIGURATION, "b").await.unwrap();
    assert_eq!(b["spec"]["package"], "r.io/acme/b:v1.1.0", "the lowest that is accepted");

    plane.delete(CONFIGURATION, "a").await;
    plane.apply(&install("low", "r.io/acme/low:v1.0.0")).await;
    plane.until(LOCK, "lock", |l| message_of(l, "Resolved").contains("manual intervention")).await;
    plane.options.dependency_downgrades = true;
    plane.start().await;
    plane.until(CONFIGURATION, "low", is_healthy).await;
    let b = plane.get(CONFIGURATION, "b").await.unwrap();
    assert_eq!(b["spec"]["package"], "r.io/acme/b:v1.0.0");
}

#[tokio::test]
async fn a_package_that_skips_resolution_is_not_in_the_lock() {
    let plane = Plane::new().await;
    push(&plane, "a", "v1.0.0", &[("r.io/acme/b", ">=v1.0.0")]);
    let manifest =
        install("a", "r.io/acme/a:v1.0.0").replace("spec: {", "spec: {skipDependencyResolution: true, ");
    plane.apply(&manifest).await;
    plane.until(CONFIGURATION, "a", is_healthy).await;
    plane.until_idle().await;
    assert!(plane.get(LOCK, "lock").await.is_none_or(|l| l["packages"].as_array().is_none_or(Vec::is_empty)));
    assert_eq!(names(&plane).await, ["a"]);
}

#[tokio::test]
async fn tags_that_cannot_be_listed_are_listed_later() {
    let plane = Plane::new().await;
    push(&plane, "a", "v1.0.0", &[("r.io/acme/b", ">=v1.0.0")]);
    plane.apply(&install("a", "r.io/acme/a:v1.0.0")).await;
    let lock = plane.until(LOCK, "lock", |l| status_of(l, "Resolved") == "False").await;
    let message = message_of(&lock, "Resolved");
    assert!(message.contains("cannot fetch dependency package tags of r.io/acme/b [a-"), "{message}");
    push(&plane, "b", "v1.0.0", &[]);
    plane.after(std::time::Duration::from_secs(120)).await;
    plane.until(CONFIGURATION, "a", is_healthy).await;
    plane.until_true(LOCK, "lock", "Resolved").await;
}

#[tokio::test]
async fn an_entry_that_a_user_removes_from_the_lock_comes_back() {
    let plane = Plane::new().await;
    push(&plane, "a", "v1.0.0", &[("r.io/acme/b", ">=v1.0.0")]);
    push(&plane, "b", "v1.0.0", &[]);
    plane.apply(&install("a", "r.io/acme/a:v1.0.0")).await;
    plane.until(CONFIGURATION, "a", is_healthy).await;
    plane.until_idle().await;
    plane.patch(LOCK, "lock", json!({"packages": []})).await;
    plane.until(LOCK, "lock", |l| l["packages"].as_array().is_some_and(|p| p.len() == 2)).await;
    plane.until_idle().await;
    assert!(is_healthy(&plane.get(CONFIGURATION, "a").await.unwrap()));
    plane.until_true(LOCK, "lock", "Resolved").await;
}

#[tokio::test]
async fn a_function_that_is_built_in_needs_no_registry() {
    let plane = Plane::new().await;
    let source = "xpkg.example.org/crossplane-contrib/function-auto-ready";
    let spec = format!("  dependsOn:\n  - {{function: {source}, version: '>=v0.2.1'}}\n");
    let package = configuration("a", &spec, &[composition("a", &["sizer"])]);
    plane.registry.push("r.io/acme/a:v1.0.0", &package);
    plane.apply(&install("a", "r.io/acme/a:v1.0.0")).await;
    plane.until(CONFIGURATION, "a", is_healthy).await;
    let function = plane.until_true(FUNCTION, "crossplane-contrib-function-auto-ready", "Healthy").await;
    assert_eq!(function["spec"]["package"], format!("{source}:v0.2.1"));
    plane.until_true(LOCK, "lock", "Resolved").await;
    let asked = plane.registry.take_requests();
    assert!(!asked.iter().any(|request| request.contains("function")), "{asked:?}");
}

#[tokio::test]
async fn a_function_that_is_installed_satisfies_a_dependency() {
    let plane = Plane::new().await;
    plane.function("renderer", |mut request| Ok(request.start_response())).await;
    let spec = "  dependsOn:\n  - {function: example.org/renderer, version: '>=v0.9.0'}\n";
    plane.registry.push("r.io/acme/a:v1.0.0", &configuration("a", spec, &[composition("a", &["renderer"])]));
    plane.apply(&install("a", "r.io/acme/a:v1.0.0")).await;
    plane.until(CONFIGURATION, "a", is_healthy).await;
    plane.delete(FUNCTION, "renderer").await;
    let missing =
        |p: &Value| message_of(p, "Healthy").contains("missing dependencies: \"example.org/renderer\"");
    plane.until(CONFIGURATION, "a", missing).await;
}
