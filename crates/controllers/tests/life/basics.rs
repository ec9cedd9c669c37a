//! From an XRD to a composite resource that is ready.

use crate::life::fixture::*;
use serde_json::json;
use transom_object::meta;

/// A definition of `XThing` (or `Thing`) with a `spec.size` and a `status.size`.
pub(super) fn definition(scope: &str, claim: bool) -> String {
    let claim = if claim { "claimNames: {kind: Thing, plural: things}" } else { "" };
    format!(
        r"
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {{name: xthings.example.org}}
spec:
  group: example.org
  scope: {scope}
  names: {{kind: XThing, plural: xthings}}
  {claim}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {{type: string}}
          status:
            type: object
            properties:
              size: {{type: string}}
"
    )
}

pub(super) fn composition(name: &str, functions: &[&str]) -> String {
    let steps: Vec<String> =
        functions.iter().map(|f| format!("  - {{step: {f}, functionRef: {{name: {f}}}}}\n")).collect();
    format!(
        "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {{name: {name}}}\nspec:\n  \
         compositeTypeRef: {{apiVersion: example.org/v1, kind: XThing}}\n  mode: Pipeline\n  pipeline:\n{}",
        steps.concat()
    )
}

pub(super) const XR: &str = "example.org/v1/XThing";
pub(super) const XRD: &str = "apiextensions.crossplane.io/v1/CompositeResourceDefinition";
pub(super) const COMPOSITION: &str = "apiextensions.crossplane.io/v1/Composition";
pub(super) const REVISION: &str = "apiextensions.crossplane.io/v1/CompositionRevision";

/// A function that composes one ready ConfigMap with the size of the composite resource, and reports the size.
pub(super) async fn sizer(plane: &Plane) {
    plane
        .function("sizer", |mut request| {
            let mut response = request.start_response();
            let size = request.observed_composite().get_str("spec.size").unwrap_or("none").to_owned();
            let mut composed = config_map(&json!({"size": size}));
            meta::set_namespace(&mut composed, "default");
            response.set_composed("config", ready(composed));
            response.composite().set("status.size", size)?;
            response.meta.as_mut().unwrap().ttl = None;
            Ok(response)
        })
        .await;
}

/// A function that composes as many ready ConfigMaps as the size says, each named after a prefix and its number.
pub(super) async fn counted(plane: &Plane, name: &str, prefix: &'static str) {
    plane
        .function(name, move |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            let count: usize = request.observed_composite().get_str("spec.size")?.parse()?;
            for i in 0..count {
                let mut map = config_map(&json!({"i": i.to_string()}));
                meta::set_namespace(&mut map, "default");
                response.set_composed(format!("{prefix}-{i}"), ready(map));
            }
            response.composite().set("status.size", format!("{prefix}-{count}"))?;
            Ok(response)
        })
        .await;
}

pub(super) fn xr(name: &str, size: &str) -> String {
    format!("apiVersion: example.org/v1\nkind: XThing\nmetadata: {{name: {name}}}\nspec: {{size: {size}}}\n")
}

/// A plane on which things of this scope are defined and composed.
pub(super) async fn with_things(scope: &str, claim: bool) -> Plane {
    let plane = Plane::new().await;
    sizer(&plane).await;
    plane.apply(&definition(scope, claim)).await;
    things(&plane, &["sizer"]).await;
    if claim {
        plane.until_true(XRD, "xthings.example.org", "Offered").await;
    }
    plane
}

/// Composes things, which may be defined already, by these functions.
pub(super) async fn things(plane: &Plane, functions: &[&str]) {
    if plane.get(XRD, "xthings.example.org").await.is_none() {
        plane.apply(&definition("Cluster", false)).await;
    }
    plane.apply(&composition("things", functions)).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    // Tests that count writes do not count the verdict on the revision.
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        let revisions = plane.list(REVISION).await;
        let judged = |r: &serde_json::Value| !status_of(r, "ValidPipeline").is_empty();
        if !revisions.is_empty() && revisions.iter().all(judged) {
            return;
        }
        assert!(std::time::Instant::now() < deadline, "revisions are not judged: {revisions:#?}");
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
}

/// What a composite resource refers to, as `namespace/name` of its only reference.
pub(super) fn composed_name(xr: &serde_json::Value) -> String {
    let machinery = xr["spec"].get("crossplane").unwrap_or(&xr["spec"]);
    let reference = &machinery["resourceRefs"][0];
    let namespace = reference["namespace"].as_str().or(xr["metadata"]["namespace"].as_str());
    format!("{}/{}", namespace.unwrap_or_default(), reference["name"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn basic_composition_cluster() {
    let plane = with_things("Cluster", false).await;
    plane.apply(&xr("one", "small")).await;
    let ready = plane.until_true(XR, "one", "Ready").await;
    assert_eq!(reason_of(&ready, "Ready"), "Available");
    assert_eq!(reason_of(&ready, "Synced"), "ReconcileSuccess");
    assert_eq!(reason_of(&ready, "Responsive"), "WatchCircuitClosed");
    assert_eq!(condition(&ready, "Ready")["observedGeneration"], ready["metadata"]["generation"]);
    assert_eq!(ready["status"]["size"], "small");
    assert_eq!(ready["metadata"]["finalizers"], json!(["composite.apiextensions.crossplane.io"]));
    let refs = &ready["spec"]["crossplane"]["resourceRefs"];
    let name = refs[0]["name"].as_str().unwrap();
    assert!(name.starts_with("one-"), "{name}");
    let composed = plane.get("v1/ConfigMap", &format!("default/{name}")).await.unwrap();
    assert_eq!(composed["data"]["size"], "small");
    assert_eq!(composed["metadata"]["generateName"], "one-");
    assert_eq!(composed["metadata"]["labels"]["crossplane.io/composite"], "one");
    assert_eq!(meta::controller_of(&composed).unwrap().uid, meta::uid(&ready));
    // That it cannot be composed before its revision was judged may have been said, too.
    let notices = plane.notices.lock().unwrap().clone();
    assert_eq!(notices.iter().filter(|notice| notice.problem.is_none()).count(), 1, "{notices:?}");
}

#[tokio::test]
async fn everything_ready_means_no_writes() {
    let mut plane = with_things("Cluster", false).await;
    for i in 0..20 {
        plane.apply(&xr(&format!("xr-{i}"), "small")).await;
    }
    for i in 0..20 {
        plane.until_true(XR, &format!("xr-{i}"), "Ready").await;
    }
    let before = plane.until_idle().await;
    let after = plane.after(std::time::Duration::from_secs(2)).await;
    assert_eq!(after, before, "{:#?}", plane.log());
    plane.start().await;
    plane.until_idle().await;
    assert_eq!(plane.log(), Vec::<String>::new(), "a restart changes nothing");
}

#[tokio::test]
async fn deletion_takes_composed_resources_along() {
    let plane = with_things("Cluster", false).await;
    plane.apply(&xr("one", "small")).await;
    let ready = plane.until_true(XR, "one", "Ready").await;
    let name = composed_name(&ready);
    plane.delete_with(XR, "one", Some("Foreground")).await;
    plane.until_gone(XR, "one").await;
    assert!(
        plane.get("v1/ConfigMap", &name).await.is_none(),
        "foreground deletion waits for what is composed"
    );
    plane.delete(XRD, "xthings.example.org").await;
    plane.until_gone(XRD, "xthings.example.org").await;
    plane.until_gone("apiextensions.k8s.io/v1/CustomResourceDefinition", "xthings.example.org").await;
}

#[tokio::test]
async fn updates_and_drift_are_corrected() {
    let plane = with_things("Cluster", false).await;
    plane.apply(&xr("one", "small")).await;
    let ready = plane.until_true(XR, "one", "Ready").await;
    let name = composed_name(&ready);
    plane.patch("v1/ConfigMap", &name, json!({"data": {"size": "huge", "other": "x"}})).await;
    let healed = plane.until("v1/ConfigMap", &name, |o| o["data"]["size"] == "small").await;
    assert_eq!(healed["data"]["other"], "x", "fields of others stay");
    plane.apply(&xr("one", "large")).await;
    plane.until("v1/ConfigMap", &name, |o| o["data"]["size"] == "large").await;
    plane.until(XR, "one", |o| o["status"]["size"] == "large").await;
    plane.delete("v1/ConfigMap", &name).await;
    plane.until("v1/ConfigMap", &name, |o| o["data"]["size"] == "large" && !meta::is_deleting(o)).await;
}
