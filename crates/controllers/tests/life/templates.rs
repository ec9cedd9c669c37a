//! Compositions of Crossplane v1: templates instead of a pipeline.

use crate::life::basics::*;
use crate::life::fixture::*;
use serde_json::json;

/// A plane that runs templates, and serves Widgets with `spec.size` and a list of `spec.parts` by name.
pub(super) async fn templated() -> Plane {
    let plane = Plane::new().await;
    plane.apply(&definition("Cluster", false)).await;
    plane
        .apply(
            r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Cluster
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: string}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}}}
",
        )
        .await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    plane
}

pub(super) const WIDGET: &str = "example.org/v1/Widget";

/// A Composition with this in its spec.
pub(super) fn composing(name: &str, spec: &serde_json::Value) -> String {
    let mut object = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": name},
        "spec": {"compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XThing"}},
    });
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object.to_string()
}

#[tokio::test]
async fn fields_that_a_kind_does_not_declare_are_left_out_with_a_warning() {
    let plane = templated().await;
    let base = json!({
        "apiVersion": "example.org/v1", "kind": "Widget",
        "spec": {"size": "s", "region": "eu", "parts": [{"name": "a", "colour": "red"}]},
    });
    let template = json!({"name": "widget", "base": base, "readinessChecks": [{"type": "None"}],
        "patches": [{"fromFieldPath": "spec.size", "toFieldPath": "spec.size"}]});
    plane.apply(&composing("things", &json!({"mode": "Resources", "resources": [template]}))).await;
    plane.apply(&xr("one", "small")).await;
    let xr_ = plane.until_true(XR, "one", "Ready").await;
    assert_eq!(status_of(&xr_, "Synced"), "True");
    let widget = composed_name(&xr_).trim_start_matches('/').to_owned();
    let made = plane.get(WIDGET, &widget).await.unwrap();
    assert_eq!(made["spec"], json!({"size": "small", "parts": [{"name": "a"}]}));
    plane.until_idle().await;
    let events = plane.events_of("one").await;
    let warning = events.iter().find(|e| e.contains("does not declare")).expect("it is reported");
    assert!(
        warning.contains(".spec.region") && warning.contains(".colour") && warning.contains("\"widget\""),
        "{warning}"
    );
    // The second time nothing is written, and what does change arrives.
    plane.patch(XR, "one", json!({"metadata": {"annotations": {"again": "yes"}}})).await;
    plane.until_idle().await;
    assert_eq!(plane.get(WIDGET, &widget).await.unwrap(), made);
    plane.apply(&xr("one", "large")).await;
    plane.until(WIDGET, &widget, |o| o["spec"]["size"] == "large").await;
    // Drift of what is declared is still repaired.
    plane.patch(WIDGET, &widget, json!({"spec": {"size": "drifted"}})).await;
    plane.until(WIDGET, &widget, |o| o["spec"]["size"] == "large").await;
    // Once the kind declares the field, it is applied.
    let mut crd =
        plane.get("apiextensions.k8s.io/v1/CustomResourceDefinition", "widgets.example.org").await.unwrap();
    let properties = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    crd.pointer_mut(properties).unwrap()["region"] = json!({"type": "string"});
    plane.user.update(&crd, "kubectl").await.unwrap();
    plane.patch(XR, "one", json!({"metadata": {"annotations": {"again": "once more"}}})).await;
    plane.until(WIDGET, &widget, |o| o["spec"]["region"] == "eu").await;
}

#[tokio::test]
async fn a_pipeline_is_refused_what_a_kind_does_not_declare() {
    let plane = templated().await;
    plane
        .function("stray", |mut request| {
            let mut response = request.start_response();
            let widget = json!({"apiVersion": "example.org/v1", "kind": "Widget", "spec": {"region": "eu"}});
            response.set_composed("widget", ready(widget));
            Ok(response)
        })
        .await;
    plane.apply(&composition("things", &["stray"])).await;
    plane.apply(&xr("one", "small")).await;
    let failed = plane.until(XR, "one", |o| status_of(o, "Synced") == "False").await;
    assert!(
        message_of(&failed, "Synced").contains(".spec.region: field not declared in schema"),
        "{failed:#}"
    );
}

#[tokio::test]
async fn what_the_mode_ignores_is_said() {
    let plane = templated().await;
    sizer(&plane).await;
    let steps = json!([{"step": "sizer", "functionRef": {"name": "sizer"}}]);
    let both =
        json!({"mode": "Pipeline", "pipeline": steps, "patchSets": [{"name": "never", "patches": []}]});
    plane.apply(&composing("things", &both)).await;
    plane.apply(&xr("one", "small")).await;
    plane.until_true(XR, "one", "Ready").await;
    plane.until_idle().await;
    let words = "spec.patchSets has no effect in mode Pipeline";
    for object in ["things", "one"] {
        let events = plane.events_of(object).await;
        assert!(
            events.iter().any(|e| e.starts_with("Warning") && e.contains(words)),
            "{object}: {events:#?}"
        );
    }
}
