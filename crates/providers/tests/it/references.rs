//! References: waiting by watches, copied fields, protection.

use crate::stand::*;
use serde_json::{Value, json};
use transom_object::meta;

/// Nothing is polled or tried again: only the watch of what is missing can trigger the reconcile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reference_that_does_not_resolve_waits_for_a_watch() {
    let stand = Stand::new(Pace::Waits).await;
    let from = json!({"apiVersion": "v1", "kind": "Secret", "namespace": "default", "name": "source", "fieldPath": "data.word"});
    let more = json!({"references": [{"patchesFrom": from, "toFieldPath": "data.copied"}]});
    stand.create(OBJECT, "copy", &object(&map("copy", &json!({"a": "1"})), &more)).await;
    let words = "observe failed: cannot resolve resource references: cannot get referenced resource: \
                 Secret \"source\" not found in namespace \"default\"";
    let waiting = stand.until_it_says(OBJECT, "copy", words).await;
    assert_eq!(meta::finalizers(&waiting), Vec::<&str>::new());
    assert_eq!(stand.get(MAP, "default/copy").await, None, "K9: nothing is applied");
    stand.create("v1/Secret", "default/source", &json!({"data": {"other": "c2VzYW1l"}})).await;
    stand
        .until_it_says(OBJECT, "copy", "cannot patch from referenced resource: data.word: no such field")
        .await;
    stand.patch("v1/Secret", "default/source", &json!({"data": {"word": "c2VzYW1l"}})).await;
    let made = stand.until_ready(OBJECT, "copy").await;
    stand.until(MAP, "default/copy", |map| map["data"] == json!({"a": "1", "copied": "c2VzYW1l"})).await;
    assert!(!made["spec"].to_string().contains("c2VzYW1l"), "what was copied is not written to the spec");
    stand.patch("v1/Secret", "default/source", &json!({"data": {"word": "b3RoZXI="}})).await;
    stand.until(MAP, "default/copy", |map| map["data"]["copied"] == "b3RoZXI=").await;
}

/// What Objects depend on stays for as long as they do: other Objects, by the version of the original, and anything else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dependency_is_protected() {
    let stand = Stand::new(Pace::Polls).await;
    stand.create(OBJECT, "first", &object(&map("first", &json!({"a": "1"})), &json!({}))).await;
    stand.create(MAP, "default/plain", &json!({})).await;
    stand.until_ready(OBJECT, "first").await;
    let plain = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "plain"});
    let more = json!({"references": [{"dependsOn": {"name": "first"}}, {"dependsOn": plain}]});
    stand.create(OBJECT, "second", &object(&map("second", &json!({})), &more)).await;
    let second = stand.until_ready(OBJECT, "second").await;
    assert_eq!(
        second["spec"]["references"][0]["dependsOn"]["apiVersion"],
        "kubernetes.crossplane.io/v1alpha1"
    );
    let finalizer = format!("kubernetes.crossplane.io/referred-by-object-{}", meta::uid(&second));
    for (kind, name) in [(OBJECT, "first"), (MAP, "default/plain")] {
        let held = |object: &Value| meta::finalizers(object).contains(&finalizer.as_str());
        stand.until(kind, name, held).await;
        stand.delete(kind, name).await;
        stand.until(kind, name, |object| meta::is_deleting(object) && held(object)).await;
    }
    assert!(
        stand.get(MAP, "default/first").await.is_some(),
        "it is not deleted while another depends on its Object"
    );
    stand.delete(OBJECT, "second").await;
    for (kind, name) in
        [(OBJECT, "second"), (OBJECT, "first"), (MAP, "default/plain"), (MAP, "default/first")]
    {
        stand.until_gone(kind, name).await;
    }
}

/// Also if the dependency is gone already, and if it is added later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reference_of_a_namespaced_object_is_in_its_namespace() {
    let stand = Stand::new(Pace::Polls).await;
    stand.create(MODERN_OBJECT, "default/one", &object(&map("one", &json!({})), &json!({}))).await;
    stand.until_ready(MODERN_OBJECT, "default/one").await;
    stand.create(MAP, "default/base", &json!({"data": {"a": "1"}})).await;
    let base = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "base", "fieldPath": "data.a"});
    stand
        .patch(MODERN_OBJECT, "default/one", &json!({"spec": {"references": [{"patchesFrom": base}]}}))
        .await;
    stand.until(MAP, "default/one", |map| map["data"]["a"] == "1").await;
    stand.until(MAP, "default/base", |map| meta::finalizers(map).len() == 1).await;
    stand.patch(MAP, "default/base", &json!({"metadata": {"finalizers": null}})).await;
    stand.delete(MODERN_OBJECT, "default/one").await;
    stand.until_gone(MODERN_OBJECT, "default/one").await;
    stand.delete(MAP, "default/base").await;
    stand.until_gone(MAP, "default/base").await;
}

/// A server shows the values that it refuses; what was copied may be a secret.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_copy_is_not_shown() {
    let stand = Stand::new(Pace::Polls).await;
    let source = json!({"metadata": {"annotations": {"word": "Open Sesame!"}}});
    stand.create("v1/Secret", "default/source", &source).await;
    let from = json!({"apiVersion": "v1", "kind": "Secret", "namespace": "default", "name": "source", "fieldPath": "metadata.annotations.word"});
    let more = json!({"references": [{"patchesFrom": from, "toFieldPath": "metadata.labels.word"}]});
    stand.create(OBJECT, "refused", &object(&map("refused", &json!({"a": "1"})), &more)).await;
    let failed = stand.until_it_says(OBJECT, "refused", "Invalid value: \"<copied>\"").await;
    assert!(!failed["status"].to_string().contains("Sesame"), "{:#}", failed["status"]);
}
