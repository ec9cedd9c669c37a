//! The events of managed resources: their types, reasons and messages are those of crossplane-runtime.

use crate::cloud::{Cloud, Faults, Stand, condition, is_ready};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use transom_object::meta;

async fn stand() -> Stand {
    Stand::new(Cloud::new(7, true)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_success_has_one_event() {
    let stand = stand().await;
    let asked = json!({"annotations": {"crossplane.io/reconcile-requested-at": "t1"}});
    stand.create("a", &json!({"forProvider": {"size": 1}}), &asked).await;
    stand.until("it is ready", "a", is_ready).await;
    let normal = async |reason: &str, message: &str| stand.until_event("a", "Normal", reason, message).await;
    normal("ReconcileRequestHandled", "Handling reconcile request").await;
    normal("CreatedExternalResource", "Successfully requested creation of external resource").await;
    stand.patch("a", &json!({"spec": {"forProvider": {"size": 2}}})).await;
    normal("UpdatedExternalResource", "Successfully requested update of external resource").await;
    stand.patch("a", &json!({"metadata": {"annotations": {"crossplane.io/paused": "true"}}})).await;
    let paused = "Reconciliation is paused either through the pause annotation or the management policies";
    normal("ReconciliationPaused", paused).await;
    stand.patch("a", &json!({"metadata": {"annotations": {"crossplane.io/paused": null}}})).await;
    stand.delete("a").await;
    stand.until("it is gone", "a", |object| object.is_none()).await;
    normal("DeletedExternalResource", "Successfully requested deletion of external resource").await;
    let mut told: Vec<String> = stand.events("a").await.into_iter().map(|[_, reason, _]| reason).collect();
    told.sort();
    // It was created a moment ago: that it is missing has to be seen for a while.
    let expected = [
        "CreatedExternalResource",
        "DeletedExternalResource",
        "PendingExternalResource",
        "ReconcileRequestHandled",
        "ReconciliationPaused",
        "UpdatedExternalResource",
    ];
    assert_eq!(told, expected, "each once, and nothing else");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_has_an_event_with_its_cause() {
    let stand = stand().await;
    let warning = async |name: &str, reason: &str, message: &str| {
        stand.until_event(name, "Warning", reason, message).await;
    };
    let size = |size: i64| json!({"forProvider": {"size": size}});
    stand.cloud.unreachable.store(true, Ordering::SeqCst);
    stand.create("a", &size(1), &json!({})).await;
    warning("a", "CannotConnectToProvider", "no route to the cloud").await;
    *stand.cloud.faults.lock().unwrap() = Faults { fails: 100, ..Faults::default() };
    stand.cloud.unreachable.store(false, Ordering::SeqCst);
    warning("a", "CannotObserveExternalResource", "too many requests").await;
    stand.cloud.conflicts.store(true, Ordering::SeqCst);
    *stand.cloud.faults.lock().unwrap() = Faults::default();
    warning("a", "CannotCreateExternalResource", "the thing is in use").await;
    let failed = |o: Option<&Value>| {
        o.is_some_and(|o| meta::annotation(o, "crossplane.io/external-create-failed").is_some())
    };
    stand.until("the failure is recorded", "a", failed).await;
    stand.cloud.conflicts.store(false, Ordering::SeqCst);
    stand.until("it heals", "a", is_ready).await;
    stand.cloud.conflicts.store(true, Ordering::SeqCst);
    stand.patch("a", &json!({"spec": {"forProvider": {"size": 2}}})).await;
    warning("a", "CannotUpdateExternalResource", "the thing is in use").await;
    stand.delete("a").await;
    warning("a", "CannotDeleteExternalResource", "the thing is in use").await;
    stand.cloud.conflicts.store(false, Ordering::SeqCst);
    let policies = json!({"forProvider": {}, "managementPolicies": ["Create"]});
    stand.create("b", &policies, &json!({})).await;
    let unsupported = "`spec.managementPolicies` is set to a value([Create]) which is not supported. Check docs for \
                       supported policies";
    warning("b", "CannotUseInvalidManagementPolicy", unsupported).await;
    stand.create("c", &json!({"forProvider": {}, "managementPolicies": ["Observe"]}), &json!({})).await;
    warning("c", "CannotObserveExternalResource", "external resource does not exist").await;
    // A Secret of another owner is not written.
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "taken", "namespace": "default"}, "type": "Opaque",
    });
    stand.cluster.create(&secret, "test").await.unwrap();
    let mut taken = size(1);
    taken["writeConnectionSecretToRef"] = json!({"namespace": "default", "name": "taken"});
    stand.create("d", &taken, &json!({})).await;
    let refused = "cannot create or update connection secret: refusing to modify uncontrolled secret of type \"Opaque\"";
    warning("d", "CannotPublishConnectionDetails", refused).await;
}

/// What was created and is not seen yet is waited for; what may have been created is left to a person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uncertain_creation_has_an_event() {
    let stand = Stand::new(Cloud::new(7, false)).await;
    *stand.cloud.faults.lock().unwrap() = Faults { hidden: 300, ..Faults::default() };
    stand.create("hidden", &json!({"forProvider": {"size": 1}}), &json!({})).await;
    let words = "Waiting for external resource existence to be confirmed";
    stand.until_event("hidden", "Normal", "PendingExternalResource", words).await;
    stand.until("it is ready", "hidden", is_ready).await;
    let pending = json!({"crossplane.io/external-create-pending": "2024-01-01T10:00:00Z"});
    stand.create("unknown", &json!({"forProvider": {"size": 1}}), &json!({"annotations": pending})).await;
    let words = "cannot determine creation result - remove the crossplane.io/external-create-pending annotation if it is \
                 safe to proceed";
    stand.until_event("unknown", "Warning", "CannotInitializeManagedResource", words).await;
    let object = stand.get("unknown").await.unwrap();
    assert!(!condition(&object, "Synced").is_true());
    assert_eq!(stand.cloud.count(), 1, "nothing was created for it");
}
