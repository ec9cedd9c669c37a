//! Composite resources in namespaces.

use crate::life::basics::*;
use crate::life::fixture::*;
use serde_json::json;
use transom_object::meta;

fn xr_in(namespace: &str, name: &str) -> String {
    format!(
        "apiVersion: example.org/v1\nkind: XThing\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec: {{size: s}}\n"
    )
}

#[tokio::test]
async fn basic_composition_namespaced() {
    let plane = with_things("Namespaced", false).await;
    plane.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n").await;
    plane.apply(&xr_in("team", "one")).await;
    let xr = plane.until_true(XR, "team/one", "Ready").await;
    let name = composed_name(&xr);
    assert!(name.starts_with("team/one-"), "the composite resource's own namespace: {name}");
    assert!(xr["spec"]["crossplane"]["resourceRefs"][0].get("namespace").is_none());
    assert!(plane.get("v1/ConfigMap", &name).await.is_some());
    plane.until_idle().await;
    let events = plane.events_of("one").await;
    let overridden = "Warning NamespaceOverridden: cannot create composed resource \"config\" in namespace \"default\", using XR namespace \"team\" instead";
    assert!(events.iter().any(|e| e == overridden), "{events:#?}");
    plane.delete(XRD, "xthings.example.org").await;
    plane.until_gone(XR, "team/one").await;
    plane.until_gone(XRD, "xthings.example.org").await;
}

#[tokio::test]
async fn namespaced_xr_cluster_composition() {
    let plane = with_things("Namespaced", false).await;
    plane
        .function("sizer", |mut request| {
            let mut response = request.start_response();
            let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"});
            response.set_composed("role", ready(role));
            Ok(response)
        })
        .await;
    plane.apply(&xr_in("default", "one")).await;
    let xr = plane.until(XR, "default/one", |o| status_of(o, "Synced") == "False").await;
    assert_eq!(reason_of(&xr, "Synced"), "ReconcileError");
    assert!(
        message_of(&xr, "Synced").contains(
            "cannot apply cluster scoped composed resource \"role\" (a ClusterRole) for a namespaced"
        ),
        "{xr:#}"
    );
    plane.delete(XR, "default/one").await;
    plane.until_gone(XR, "default/one").await;
}

#[tokio::test]
async fn namesakes_in_two_namespaces_do_not_disturb_each_other() {
    let plane = with_things("Namespaced", false).await;
    plane.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n").await;
    plane.apply(&xr_in("team", "one")).await;
    plane.apply(&xr_in("default", "one")).await;
    let a = plane.until_true(XR, "team/one", "Ready").await;
    let b = plane.until_true(XR, "default/one", "Ready").await;
    assert_ne!(composed_name(&a), composed_name(&b));
    plane.delete(XR, "team/one").await;
    plane.until_gone(XR, "team/one").await;
    plane.until_gone("v1/ConfigMap", &composed_name(&a)).await;
    let left = plane.get("v1/ConfigMap", &composed_name(&b)).await.unwrap();
    assert!(!meta::is_deleting(&left));
}
