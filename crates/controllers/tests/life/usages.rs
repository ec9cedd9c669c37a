//! Usages protect what is used from being deleted.

use crate::life::fixture::*;
use serde_json::json;
use transom_engine::DeleteOptions;

const MAP: &str = "v1/ConfigMap";
const USAGE: &str = "protection.crossplane.io/v1beta1/Usage";

fn map(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default, labels: {{app: {name}}}}}\n"
    )
}

async fn refused(plane: &Plane, name: &str) -> String {
    let deleted = plane.user.delete(&gvk(MAP), "default", name, DeleteOptions::default()).await;
    deleted.expect_err("it is in use").to_string()
}

#[tokio::test]
async fn usage_standalone_namespaced() {
    let plane = Plane::new().await;
    plane.apply(&map("used")).await;
    plane.apply(&map("using")).await;
    let usage = "apiVersion: protection.crossplane.io/v1beta1\nkind: Usage\nmetadata: {name: u, namespace: default}\nspec:\n  of: {apiVersion: v1, kind: ConfigMap, resourceSelector: {matchLabels: {app: used}}}\n  by: {apiVersion: v1, kind: ConfigMap, resourceRef: {name: using}}\n  replayDeletion: true\n";
    plane.apply(usage).await;
    let ready = plane.until_true(USAGE, "default/u", "Ready").await;
    assert_eq!(ready["spec"]["of"]["resourceRef"]["name"], "used");
    assert_eq!(
        ready["metadata"]["annotations"]["crossplane.io/usage-details"],
        "ConfigMap/using uses ConfigMap/used"
    );
    let why = refused(&plane, "used").await;
    assert_eq!(
        why,
        "admission webhook \"nousages.protection.crossplane.io\" denied the request: This resource is in-use by 1 usage(s), including the *v1beta1.Usage \"u\" (in namespace \"default\") by resource ConfigMap/using."
    );
    plane
        .until(MAP, "default/used", |o| {
            o["metadata"]["annotations"]["usage.crossplane.io/deletion-attempt-with-policy"] == "Background"
        })
        .await;
    // What uses it goes, its usage goes with it, and the deletion that was refused happens.
    plane.delete(MAP, "default/using").await;
    plane.until_gone(USAGE, "default/u").await;
    plane.until_gone(MAP, "default/used").await;
}

#[tokio::test]
async fn a_reason_is_enough_and_the_label_goes_with_the_last_usage() {
    let plane = Plane::new().await;
    plane.apply(&map("used")).await;
    for name in ["a", "b"] {
        let usage = format!(
            "apiVersion: protection.crossplane.io/v1beta1\nkind: Usage\nmetadata: {{name: {name}, namespace: default}}\nspec:\n  of: {{apiVersion: v1, kind: ConfigMap, resourceRef: {{name: used}}}}\n  reason: precious\n"
        );
        plane.apply(&usage).await;
        plane.until_true(USAGE, &format!("default/{name}"), "Ready").await;
    }
    assert!(refused(&plane, "used").await.contains("2 usage(s)"));
    plane.delete(USAGE, "default/a").await;
    plane.until_gone(USAGE, "default/a").await;
    assert!(refused(&plane, "used").await.ends_with("with reason: \"precious\"."));
    plane.delete(USAGE, "default/b").await;
    plane.until_gone(USAGE, "default/b").await;
    let free = plane.get(MAP, "default/used").await.unwrap();
    assert_eq!(free["metadata"]["labels"], json!({"app": "used"}));
    plane.delete(MAP, "default/used").await;
    plane.until_gone(MAP, "default/used").await;
}

#[tokio::test]
async fn an_attempt_that_could_not_be_noted_in_time_is_replayed() {
    let plane = Plane::new().await;
    plane.apply(&map("used")).await;
    plane.apply(&map("using")).await;
    plane.apply("apiVersion: protection.crossplane.io/v1beta1\nkind: Usage\nmetadata: {name: u, namespace: default}\nspec:\n  of: {apiVersion: v1, kind: ConfigMap, resourceRef: {name: used}}\n  by: {apiVersion: v1, kind: ConfigMap, resourceRef: {name: using}}\n  replayDeletion: true\n").await;
    plane.until_true(USAGE, "default/u", "Ready").await;
    plane.until_idle().await;
    plane.refuse("PATCH /api/v1/namespaces/default/configmaps/used?");
    refused(&plane, "used").await;
    plane.until_idle().await;
    let used = plane.get(MAP, "default/used").await.unwrap();
    assert!(used["metadata"].get("annotations").is_none(), "{used:#}");
    plane.refuse("");
    plane.delete(MAP, "default/using").await;
    plane.until_gone(USAGE, "default/u").await;
    plane.until_gone(MAP, "default/used").await;
}

#[tokio::test]
async fn a_mark_that_is_gone_comes_back_and_nothing_else_wakes_a_usage() {
    let plane = Plane::new().await;
    plane.apply(&map("used")).await;
    plane.apply("apiVersion: protection.crossplane.io/v1beta1\nkind: Usage\nmetadata: {name: u, namespace: default}\nspec:\n  of: {apiVersion: v1, kind: ConfigMap, resourceRef: {name: used}}\n  reason: precious\n").await;
    plane.until_true(USAGE, "default/u", "Ready").await;
    plane.until_idle().await;
    let marked = json!({"app": "used", "crossplane.io/in-use": "true"});
    plane.patch(MAP, "default/used", json!({"metadata": {"labels": {"crossplane.io/in-use": null}}})).await;
    plane.until(MAP, "default/used", |o| o["metadata"]["labels"] == marked).await;
    plane.until_idle().await;
    plane.take_reads();
    plane.patch(MAP, "default/used", json!({"data": {"a": "b"}})).await;
    plane.until_idle().await;
    assert_eq!(plane.take_reads(), Vec::<String>::new(), "its content is not read");
}

#[tokio::test]
async fn what_is_in_use_is_protected_before_it_is_known_by_what() {
    let mut plane = Plane::quiet().await;
    plane.hide("usages");
    plane.start().await;
    plane.apply(&map("free")).await;
    plane.apply(&map("used").replace("app: used", "app: used, crossplane.io/in-use: 'true'")).await;
    let why = refused(&plane, "used").await;
    assert!(why.contains("usage(s) that are not known yet, because the control plane is starting"), "{why}");
    plane.delete(MAP, "default/free").await;
    plane.show();
    // Nothing uses it after all, whatever its label says.
    let deadline = std::time::Instant::now() + PATIENCE;
    while plane.user.delete(&gvk(MAP), "default", "used", DeleteOptions::default()).await.is_err() {
        assert!(std::time::Instant::now() < deadline, "it cannot be deleted");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
