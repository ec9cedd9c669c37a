//! What the control plane may not do.

use crate::life::basics::*;
use crate::life::fixture::*;
use std::time::Duration;
use transom_apiserver::{Attributes, Authorizer, Decision, async_trait};
use transom_function::ResourceSelector;

/// Lets the controllers look at ConfigMaps but not write them; everyone else may do everything.
struct LookDoNotTouch;

#[async_trait]
impl Authorizer for LookDoNotTouch {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let write = !matches!(attributes.verb, "get" | "list" | "watch");
        let controllers = attributes.user.user == "crossplane";
        Decision::of(!(controllers && write && attributes.resource == "configmaps"))
    }
}

#[tokio::test]
async fn lack_of_rights() {
    let mut plane = Plane::guarded(Box::new(LookDoNotTouch)).await;
    plane.start().await;
    sizer(&plane).await;
    plane.apply(&definition("Cluster", false)).await;
    plane.apply(&composition("things", &["sizer"])).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    plane.apply(&xr("one", "small")).await;
    let refused = plane.until(XR, "one", |o| message_of(o, "Synced").contains("cannot apply")).await;
    assert_eq!(reason_of(&refused, "Synced"), "ReconcileError");
    let why = message_of(&refused, "Synced");
    let missing = "crossplane is not allowed to [create, update, patch, delete] resource configmaps/v1 in namespace default";
    assert!(
        why.starts_with("cannot compose resources: cannot apply composed resource \"config\": "),
        "{why}"
    );
    assert!(why.contains(missing), "{why}");
    assert!(why.contains("rbac.crossplane.io/aggregate-to-crossplane: \"true\""), "the remedy: {why}");
    plane.until_idle().await;
    let events = plane.events_of("one").await;
    assert!(
        events.iter().any(|e| e.starts_with("Warning RoleBasedAccessControl: ") && e.contains(missing)),
        "{events:#?}"
    );
    assert!(
        plane.metrics.render().lines().any(|line| {
            line.starts_with(
                "controller_runtime_reconcile_errors_total{controller=\"composite/xthings.example.org\"}",
            )
        }),
        "it counts as an error"
    );
}

/// Lets the controllers do everything but read Services; everyone else may do everything.
struct NoServices;

#[async_trait]
impl Authorizer for NoServices {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let reads = matches!(attributes.verb, "get" | "list" | "watch" | "*");
        let controllers = attributes.user.user == "crossplane";
        Decision::of(!(controllers && reads && attributes.resource == "services"))
    }
}

#[tokio::test]
async fn lack_of_the_right_to_read() {
    let mut plane = Plane::guarded(Box::new(NoServices)).await;
    plane.start().await;
    plane
        .function("reader", |mut request| {
            let mut response = request.start_response();
            let selector = ResourceSelector::named("v1", "Service", "shop").in_namespace("default");
            response.requirements.get_or_insert_default().resources.insert("service".to_owned(), selector);
            Ok(response)
        })
        .await;
    plane.apply(&definition("Cluster", false)).await;
    plane.apply(&composition("things", &["reader"])).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    plane.apply(&xr("one", "small")).await;
    let refused = plane.until(XR, "one", |o| message_of(o, "Synced").contains("fetching resources")).await;
    let why = message_of(&refused, "Synced");
    let missing = "crossplane is not allowed to [get, list, watch] resource services/v1 in namespace default";
    assert!(why.contains(missing), "{why}");
    assert!(why.contains("rbac.crossplane.io/aggregate-to-crossplane: \"true\""), "the remedy: {why}");
    assert_eq!(why.matches("cannot get resource").count(), 1, "no cause is printed twice: {why}");
    // The watch of what may not be read is tried again and again, so the plane does not become idle.
    let is_reported = |e: &String| e.starts_with("Warning RoleBasedAccessControl: ") && e.contains(missing);
    let reported = async {
        while !plane.events_of("one").await.iter().any(is_reported) {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), reported)
        .await
        .expect("an event reports the missing right");
}
