//! ObservedObjectCollections.

use crate::stand::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const LABEL: &str = "kubernetes.crossplane.io/owned-by-collection";

async fn members(stand: &Stand, kind: &str) -> Vec<Value> {
    let labels = BTreeMap::from([(LABEL.to_owned(), "all".to_owned())]);
    stand.cluster.list(&gvk(kind), "", &labels).await.unwrap()
}

async fn until_members(stand: &Stand, kind: &str, names: &[&str]) -> Vec<Value> {
    let observed = |member: &Value| {
        let name = member["status"]["atProvider"]["manifest"]["metadata"]["name"].as_str();
        name.unwrap_or_default().to_owned()
    };
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(120);
    loop {
        let members = members(stand, kind).await;
        let mut found: Vec<String> = members.iter().map(observed).collect();
        found.sort();
        if found == names {
            return members;
        }
        assert!(tokio::time::Instant::now() < deadline, "{names:?}: {members:#?}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// Nothing is polled: what comes, goes and changes its labels is noticed by a watch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collection_observes_what_matches() {
    let stand = Stand::new(Pace::Waits).await;
    for (kind, collection, name) in [
        (OBJECT, "kubernetes.crossplane.io/v1alpha1/ObservedObjectCollection", "all"),
        (MODERN_OBJECT, "kubernetes.m.crossplane.io/v1alpha1/ObservedObjectCollection", "default/all"),
    ] {
        let labelled = |tier: &str| json!({"metadata": {"labels": {"tier": tier}}, "data": {"a": "1"}});
        stand.create(MAP, "default/a", &labelled("gold")).await;
        stand.create(MAP, "default/b", &labelled("silver")).await;
        stand.create(MAP, "default/c", &labelled("none")).await;
        let selector =
            json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold", "silver"]}]});
        let spec = json!({"spec": {
            "observeObjects": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "selector": selector},
            // Its label of the membership has no effect.
            "objectTemplate": {"metadata": {"labels": {"mine": "yes", LABEL: "other"}, "annotations": {"note": "x"}}},
        }});
        stand.create(collection, name, &spec).await;
        let status = stand.until_ready(collection, name).await["status"].take();
        assert_eq!(status["membershipLabel"], json!({LABEL: "all"}));
        for member in until_members(&stand, kind, &["a", "b"]).await {
            assert_eq!(member["spec"]["managementPolicies"], json!(["Observe"]));
            assert_eq!(member["metadata"]["labels"]["mine"], "yes");
            assert_eq!(member["metadata"]["annotations"]["note"], "x");
            assert_eq!(member["metadata"]["ownerReferences"][0]["name"], "all");
        }
        stand.patch(MAP, "default/b", &json!({"metadata": {"labels": {"tier": "none"}}})).await;
        until_members(&stand, kind, &["a"]).await;
        stand.patch(MAP, "default/c", &json!({"metadata": {"labels": {"tier": "gold"}}})).await;
        until_members(&stand, kind, &["a", "c"]).await;
        for name in ["a", "b", "c"] {
            stand.delete(MAP, &format!("default/{name}")).await;
        }
        until_members(&stand, kind, &[]).await;
        stand.delete(collection, name).await;
        stand.until_gone(collection, name).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collection_says_what_is_wrong() {
    let stand = Stand::new(Pace::Polls).await;
    let kind = "kubernetes.crossplane.io/v1alpha1/ObservedObjectCollection";
    let spec = |config: &str, of: &str| {
        json!({"spec": {
            "observeObjects": {"apiVersion": "v1", "kind": of, "selector": {}}, "providerConfigRef": {"name": config},
        }})
    };
    stand.create(kind, "unknown-kind", &spec("default", "Unknown")).await;
    stand
        .until_it_says(kind, "unknown-kind", "error fetching objects of kind Unknown: no matches for kind")
        .await;
    stand.create(kind, "no-config", &spec("absent", "ConfigMap")).await;
    stand
        .until_it_says(kind, "no-config", "cannot get provider config: ProviderConfig \"absent\" not found")
        .await;
    let paused = json!({"metadata": {"annotations": {"crossplane.io/paused": "true"}}});
    stand.patch(kind, "no-config", &paused).await;
    stand.until(kind, "no-config", |object| condition(object, "Synced").reason == "ReconcilePaused").await;
}

/// The Objects of a collection are not observed by others, nor by itself: there would be more and more of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collection_of_objects_comes_to_rest() {
    let stand = Stand::new(Pace::Polls).await;
    let spec = json!({"spec": {
        "observeObjects": {"apiVersion": "kubernetes.crossplane.io/v1alpha2", "kind": "Object", "selector": {}},
    }});
    stand.create("kubernetes.crossplane.io/v1alpha1/ObservedObjectCollection", "all", &spec).await;
    for (name, names) in
        [("one", vec!["one"]), ("two", vec!["one", "two"]), ("three", vec!["one", "three", "two"])]
    {
        stand.create(OBJECT, name, &object(&map(name, &json!({})), &json!({}))).await;
        until_members(&stand, OBJECT, &names).await;
    }
}
