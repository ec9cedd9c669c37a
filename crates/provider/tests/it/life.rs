//! The life of a managed resource, step by step.

use crate::cloud::{Cloud, Faults, Stand, condition, is_ready};
use serde_json::{Value, json};
use transom_object::meta;
use transom_provider::GroupVersionKind;

async fn stand() -> Stand {
    Stand::new(Cloud::new(7, true)).await
}

fn has_size(size: i64) -> impl Fn(Option<&Value>) -> bool {
    move |object| object.is_some_and(|o| o["spec"]["forProvider"]["size"] == size)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn created_filled_changed_and_deleted() {
    let stand = stand().await;
    let secret = json!({"namespace": "default", "name": "s"});
    stand.create("a", &json!({"forProvider": {}, "writeConnectionSecretToRef": secret}), &json!({})).await;
    let object = stand.until("it is ready", "a", is_ready).await.unwrap();
    assert_eq!(meta::annotation(&object, "crossplane.io/external-name"), Some("a"));
    assert!(meta::annotation(&object, "crossplane.io/external-create-succeeded").is_some());
    assert_eq!(meta::finalizers(&object), ["finalizer.managedresource.crossplane.io"]);
    stand.until("unset fields are filled", "a", has_size(1)).await;
    let gvk = GroupVersionKind::new("", "v1", "Secret");
    let published = stand.cluster.get(&gvk, "default", "s").await.unwrap().unwrap();
    assert_eq!(published["type"], "connection.crossplane.io/v1alpha1");
    let keys: Vec<&String> = published["data"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["size", "token"], "of the creation, and of the observation");
    // Drift of the external resource is corrected, and changes of the spec are applied to it.
    stand.cloud.things.lock().unwrap().get_mut("a").unwrap().size = 9;
    stand.until("drift is put right", "a", |_| stand.cloud.things.lock().unwrap()["a"].size == 1).await;
    stand.patch("a", &json!({"spec": {"forProvider": {"size": 4}}})).await;
    stand.until("it grows", "a", |_| stand.cloud.things.lock().unwrap()["a"].size == 4).await;
    stand.delete("a").await;
    stand.until("it is gone", "a", |object| object.is_none()).await;
    assert_eq!(stand.cloud.count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_decide_what_is_done() {
    let stand = stand().await;
    stand
        .create("orphan", &json!({"forProvider": {"size": 1}, "deletionPolicy": "Orphan"}), &json!({}))
        .await;
    stand.until("it is ready", "orphan", is_ready).await;
    stand.delete("orphan").await;
    stand.until("it is gone", "orphan", |object| object.is_none()).await;
    assert_eq!(stand.cloud.count(), 1, "what it stood for stays");
    // The same thing, looked at only.
    let observe = json!({"forProvider": {"size": 5}, "managementPolicies": ["Observe"]});
    stand.create("orphan", &observe, &json!({})).await;
    let differs =
        |o: Option<&Value>| o.is_some_and(|o| condition(o, "UpToDate").reason == "UpdateRestricted");
    let object = stand.until("the difference is shown", "orphan", differs).await.unwrap();
    assert_eq!(condition(&object, "UpToDate").message, "size is 1");
    assert!(is_ready(Some(&object)));
    stand.create("missing", &observe, &json!({})).await;
    let missing = |o: Option<&Value>| {
        o.is_some_and(|o| {
            condition(o, "Synced").message == "observe failed: external resource does not exist"
        })
    };
    stand.until("it says that nothing is there", "missing", missing).await;
    let invalid = json!({"forProvider": {}, "managementPolicies": ["Observe", "Update", "Delete"]});
    stand.create("invalid", &invalid, &json!({})).await;
    let refused =
        |o: Option<&Value>| o.is_some_and(|o| condition(o, "Synced").message.contains("not supported"));
    stand.until("it says why nothing is done", "invalid", refused).await;
    let paused = json!({"annotations": {"crossplane.io/paused": "true"}});
    stand.create("paused", &json!({"forProvider": {}}), &paused).await;
    let is_paused = |o: Option<&Value>| o.is_some_and(|o| condition(o, "Synced").reason == "ReconcilePaused");
    stand.until("it is paused", "paused", is_paused).await;
    assert_eq!(stand.cloud.count(), 1);
    stand.patch("paused", &json!({"metadata": {"annotations": {"crossplane.io/paused": null}}})).await;
    stand.until("it continues", "paused", is_ready).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_are_reported_and_retried() {
    let stand = stand().await;
    *stand.cloud.faults.lock().unwrap() = Faults { fails: 100, ..Faults::default() };
    let asked = json!({"annotations": {"crossplane.io/reconcile-requested-at": "t1"}});
    stand.create("a", &json!({"forProvider": {"size": 1}}), &asked).await;
    let failed = |o: Option<&Value>| {
        o.is_some_and(|o| condition(o, "Synced").message == "observe failed: too many requests")
    };
    let object = stand.until("it says what is wrong", "a", failed).await.unwrap();
    assert_eq!(object["status"]["lastHandledReconcileAt"], "t1");
    *stand.cloud.faults.lock().unwrap() = Faults::default();
    stand.until("it heals", "a", is_ready).await;
}
