//! Objects: made, put right, observed, deleted, left behind.

use crate::stand::*;
use serde_json::{Value, json};
use transom_object::meta;

/// Of both scopes: an object is made, what is changed in it is put right, what others add stays, and it is deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_is_made_put_right_and_deleted() {
    let stand = Stand::new(Pace::Polls).await;
    for (kind, name) in [(OBJECT, "one"), (MODERN_OBJECT, "default/one")] {
        stand.create(kind, name, &object(&map("made", &json!({"a": "1", "b": "2"})), &json!({}))).await;
        let made = stand.until_ready(kind, name).await;
        assert_eq!(made["status"]["atProvider"]["manifest"]["data"], json!({"a": "1", "b": "2"}));
        assert_eq!(condition(&made, "Ready").reason, "Available");
        let live = stand.get(MAP, "default/made").await.unwrap();
        assert_eq!(live["metadata"]["managedFields"][0]["manager"], "provider-kubernetes/one");
        stand.patch(MAP, "default/made", &json!({"data": {"a": "9", "of-others": "x"}})).await;
        stand
            .until(MAP, "default/made", |map| map["data"] == json!({"a": "1", "b": "2", "of-others": "x"}))
            .await;
        stand.patch(kind, name, &json!({"spec": {"forProvider": {"manifest": {"data": {"b": null}}}}})).await;
        stand.until(MAP, "default/made", |map| map["data"] == json!({"a": "1", "of-others": "x"})).await;
        stand.until(kind, name, |object| condition(object, "UpToDate").is_true()).await;
        stand.delete(kind, name).await;
        stand.until_gone(kind, name).await;
        assert_eq!(stand.get(MAP, "default/made").await, None);
    }
}

/// What is not there any more is made again. At rest nothing is written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_rest_nothing_is_written() {
    let stand = Stand::new(Pace::Polls).await;
    for name in ["still", "other"] {
        stand.create(OBJECT, name, &object(&map(name, &json!({"a": "1"})), &json!({}))).await;
    }
    let settled = |object: &Value| is_ready(object) && condition(object, "UpToDate").is_true();
    let before = stand.until(OBJECT, "still", settled).await;
    let live = stand.get(MAP, "default/still").await.unwrap();
    // These take several polls of both.
    for n in 0..4 {
        stand.until(OBJECT, "other", settled).await;
        stand.patch(MAP, "default/other", &json!({"data": {"a": format!("changed {n}")}})).await;
        stand.until(MAP, "default/other", |map| map["data"]["a"] == "1").await;
    }
    let after = stand.get(OBJECT, "still").await.unwrap();
    assert_eq!(meta::resource_version(&before), meta::resource_version(&after));
    let same = stand.get(MAP, "default/still").await.unwrap();
    assert_eq!(meta::resource_version(&live), meta::resource_version(&same));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orphan_stays() {
    let stand = Stand::new(Pace::Polls).await;
    let without_delete = json!({"managementPolicies": ["Observe", "Create", "Update"]});
    for (kind, name, more) in [
        (OBJECT, "kept", json!({"deletionPolicy": "Orphan"})),
        (MODERN_OBJECT, "default/kept-too", without_delete),
    ] {
        let own = name.rsplit('/').next().unwrap();
        stand.create(kind, name, &object(&map(own, &json!({"a": "1"})), &more)).await;
        stand.until_ready(kind, name).await;
        stand.delete(kind, name).await;
        stand.until_gone(kind, name).await;
        let kept = stand.get(MAP, &format!("default/{own}")).await.unwrap();
        assert!(!meta::is_deleting(&kept));
    }
}

/// An Object that only observes needs no right to write, changes nothing, and leaves what it observed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn observing_never_writes() {
    let stand = Stand::without_rights(Pace::Polls).await;
    let role = json!({"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]});
    stand.create("rbac.authorization.k8s.io/v1/ClusterRole", "reads", &role).await;
    let binding = json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reads"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "crossplane-system", "name": "provider-kubernetes"}],
    });
    stand.create("rbac.authorization.k8s.io/v1/ClusterRoleBinding", "reads", &binding).await;
    let only = json!({"managementPolicies": ["Observe"]});
    stand.create(OBJECT, "seen", &object(&map("seen", &json!({"a": "wanted"})), &only)).await;
    stand.until_it_says(OBJECT, "seen", "observe failed: external resource does not exist").await;
    assert_eq!(stand.get(MAP, "default/seen").await, None);
    stand.create(MAP, "default/seen", &json!({"data": {"a": "real"}})).await;
    let before = stand.get(MAP, "default/seen").await.unwrap();
    let seen = stand.until_ready(OBJECT, "seen").await;
    assert_eq!(seen["status"]["atProvider"]["manifest"]["data"]["a"], "real");
    stand.delete(OBJECT, "seen").await;
    stand.until_gone(OBJECT, "seen").await;
    assert_eq!(stand.get(MAP, "default/seen").await, Some(before));
}

/// With the right to update alone, what is missing is not created, although an apply would create it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_be_created_is_not() {
    let stand = Stand::new(Pace::Polls).await;
    let more = json!({"managementPolicies": ["Observe", "Update"]});
    stand.create(OBJECT, "later", &object(&map("later", &json!({"a": "1"})), &more)).await;
    stand.until_it_says(OBJECT, "later", "managementPolicies has no Create").await;
    assert_eq!(stand.get(MAP, "default/later").await, None);
    stand.create(MAP, "default/later", &json!({"data": {"a": "0"}})).await;
    stand.until(MAP, "default/later", |map| map["data"]["a"] == "1").await;
    stand.until_ready(OBJECT, "later").await;
}

/// With `watch`, changes of the object are noticed although nothing is polled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watched_object_is_put_right_at_once() {
    let stand = Stand::new(Pace::Waits).await;
    let query =
        json!({"policy": "DeriveFromCelQuery", "celQuery": "has(object.data.go) && object.data.go == 'yes'"});
    let more = json!({"watch": true, "readiness": query});
    stand.create(OBJECT, "watched", &object(&map("watched", &json!({"a": "1"})), &more)).await;
    let waiting = |object: &Value| condition(object, "Ready").reason == "Unavailable";
    stand.until(OBJECT, "watched", waiting).await;
    stand.patch(MAP, "default/watched", &json!({"data": {"a": "2"}})).await;
    stand.until(MAP, "default/watched", |map| map["data"]["a"] == "1").await;
    stand.patch(MAP, "default/watched", &json!({"data": {"go": "yes"}})).await;
    stand.until_ready(OBJECT, "watched").await;
}

/// Connection details are decoded and published; the status shows the data of Secrets, unless the ProviderConfig says
/// otherwise; conditions and events never do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_shown_where_the_original_shows_them() {
    let stand = Stand::new(Pace::Polls).await;
    let sanitizing = json!({
        "metadata": {"annotations": {"transom.io/sanitize-secrets": "true"}},
        "spec": {"credentials": {"source": "InjectedIdentity"}},
    });
    stand.create("kubernetes.crossplane.io/v1alpha1/ProviderConfig", "sanitizing", &sanitizing).await;
    let secret = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}, "data": {"password": "c2VzYW1l"}});
    let details = |name: &str| {
        json!([{"apiVersion": "v1", "kind": "Secret", "namespace": "default", "name": name,
            "fieldPath": "data.password", "toConnectionSecretKey": "word"}])
    };
    for config in ["default", "sanitizing"] {
        let more = json!({
            "providerConfigRef": {"name": config}, "connectionDetails": details(config),
            "writeConnectionSecretToRef": {"namespace": "default", "name": format!("{config}-connection")},
        });
        stand.create(OBJECT, config, &object(&secret(config), &more)).await;
        let made = stand.until_ready(OBJECT, config).await;
        let shows = made["status"].to_string().contains("c2VzYW1l");
        assert_eq!(shows, config == "default", "K8: {:#}", made["status"]);
        let connection =
            stand.until("v1/Secret", &format!("default/{config}-connection"), |s| !s.is_null()).await;
        assert_eq!(connection["data"]["word"], "c2VzYW1l");
        stand
            .patch("v1/Secret", &format!("default/{config}"), &json!({"data": {"password": "b3RoZXI="}}))
            .await;
        stand.until("v1/Secret", &format!("default/{config}"), |s| s["data"]["password"] == "c2VzYW1l").await;
        let settled = stand.until(OBJECT, config, |o| condition(o, "UpToDate").is_true()).await;
        let conditions = settled["status"]["conditions"].to_string();
        assert!(!conditions.contains("c2VzYW1l") && !conditions.contains("b3RoZXI"), "{conditions}");
    }
    let events = stand.cluster.list(&gvk("v1/Event"), "", &Default::default()).await.unwrap();
    assert!(!json!(events).to_string().contains("c2VzYW1l"));
    // What is to be published and does not exist yet is a failure that names it.
    let mut absent = object(&map("absent", &json!({})), &json!({"connectionDetails": details("nowhere")}));
    absent["spec"]["connectionDetails"][0]["name"] = "nowhere".into();
    stand.create(OBJECT, "absent", &absent).await;
    let words =
        "observe failed: cannot get connection details: cannot get object: Secret \"nowhere\" not found";
    stand.until_it_says(OBJECT, "absent", words).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manifests_that_cannot_be_applied_are_explained() {
    let stand = Stand::new(Pace::Polls).await;
    let mut without = map("nowhere", &json!({}));
    without["metadata"]["namespace"].take();
    stand.create(OBJECT, "without-namespace", &object(&without, &json!({}))).await;
    stand
        .until_it_says(
            OBJECT,
            "without-namespace",
            "observe failed: cannot get object: an empty namespace may not be set",
        )
        .await;
    let unknown = json!({"apiVersion": "example.org/v1", "kind": "Unknown", "metadata": {"name": "x"}});
    stand.create(OBJECT, "unknown", &object(&unknown, &json!({}))).await;
    stand
        .until_it_says(OBJECT, "unknown", "no matches for kind \"Unknown\" in version \"example.org/v1\"")
        .await;
    // A conflict is not a failure of the managed resource, and lasts.
    stand.create(MAP, "default/stale", &json!({"data": {"a": "0"}})).await;
    let mut stale = map("stale", &json!({"a": "1"}));
    stale["metadata"]["resourceVersion"] = "1".into();
    stand.create(OBJECT, "stale", &object(&stale, &json!({}))).await;
    stand.until_it_says(OBJECT, "stale", "update failed: cannot apply object: ").await;
    let invalid = map("Not_A_Name", &json!({}));
    stand.create(OBJECT, "invalid", &object(&invalid, &json!({}))).await;
    let failed = stand.until_it_says(OBJECT, "invalid", "create failed: cannot create object").await;
    assert_eq!(condition(&failed, "Ready").reason, "Creating");
}

/// An Object whose kind is no longer served can be deleted: its object went with the definition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_of_a_kind_that_is_gone_is_deleted() {
    let stand = Stand::new(Pace::Polls).await;
    let unknown = json!({"apiVersion": "example.org/v1", "kind": "Unknown", "metadata": {"name": "x"}});
    let mut made = object(&unknown, &json!({}));
    // As after a restart of a provider that applied it.
    made["metadata"] = json!({"finalizers": ["finalizer.managedresource.crossplane.io"]});
    stand.create(OBJECT, "gone", &made).await;
    stand.until_it_says(OBJECT, "gone", "no matches for kind").await;
    stand.delete(OBJECT, "gone").await;
    stand.until_gone(OBJECT, "gone").await;
}
