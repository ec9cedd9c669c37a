//! One reconcile without a control plane.

use crate::script::{Script, now, resource};
use serde_json::{Map, Value, json};
use transom_compose::offline::{Error, Input, Reconciled, reconcile};
use transom_compose::{Layout, Objects};
use transom_object::error_chain::chain;
use transom_xapi::Composition;

fn xr() -> Value {
    json!({"apiVersion": "nop.example.org/v1alpha1", "kind": "XNopResource", "metadata": {"name": "test-render", "namespace": "default"}})
}

fn composition() -> Composition {
    serde_json::from_value(json!({
        "metadata": {"name": "comp"},
        "spec": {
            "compositeTypeRef": {"apiVersion": "nop.example.org/v1alpha1", "kind": "XNopResource"},
            "pipeline": [{"step": "a", "functionRef": {"name": "f"}}],
            "writeConnectionSecretsToNamespace": "secrets",
        },
    }))
    .expect("a composition")
}

async fn run(xr: &Value, layout: Layout, observed: &[Value], script: &Script) -> Result<Reconciled, Error> {
    let composition = composition();
    let input = Input { xr, layout, composition: &composition, observed, context: Map::new(), now: now() };
    let world: Objects = observed.iter().cloned().collect();
    reconcile(&input, script, &world).await
}

fn wanting_a() -> Script {
    Script::new().then(|request| {
        let mut response = request.copy_response();
        response.set_composed("resource-a", resource("A"));
        response
    })
}

#[tokio::test]
async fn names_and_uids_are_those_of_crossplane() {
    let reconciled = run(&xr(), Layout::Modern, &[], &wanting_a()).await.unwrap();
    let composed = &reconciled.decision.apply[0].object["metadata"];
    assert_eq!(composed["name"], "test-render-75c6998e2569");
    assert_eq!(composed["ownerReferences"][0]["uid"], "a74e9307-4996-5956-bedc-750d5e1d3f4d");
    let types: Vec<&Value> =
        reconciled.xr["status"]["conditions"].as_array().unwrap().iter().map(|c| &c["type"]).collect();
    assert_eq!(types, ["Responsive", "Synced", "Ready"]);
    let said: Vec<String> = reconciled.events.iter().map(transom_compose::Event::text).collect();
    assert_eq!(
        said,
        ["Successfully selected composition: comp", r#"Composed resource "resource-a" is not yet ready"#]
    );
}

#[tokio::test]
async fn functions_see_what_a_control_plane_would_have_added() {
    let script = wanting_a();
    run(&xr(), Layout::Legacy, &[], &script).await.unwrap();
    let request = &script.calls()[0].request;
    let seen = request.observed_composite().object();
    assert_eq!(seen["metadata"]["resourceVersion"], "999");
    assert_eq!(seen["metadata"]["labels"]["crossplane.io/composite"], "test-render");
    assert_eq!(seen["spec"]["compositionRef"]["name"], "comp");
    assert_eq!(seen["spec"]["writeConnectionSecretToRef"]["namespace"], "secrets");
    assert_eq!(seen["status"]["conditions"][0]["type"], "Responsive");
}

#[tokio::test]
async fn observed_resources_are_referred_to_and_deleted_when_unwanted() {
    let observed = json!({
        "apiVersion": "example.org/v1", "kind": "B",
        "metadata": {"name": "b", "namespace": "default", "annotations": {"crossplane.io/composition-resource-name": "b"}},
    });
    let script = wanting_a();
    let reconciled = run(&xr(), Layout::Modern, std::slice::from_ref(&observed), &script).await.unwrap();
    assert!(script.calls()[0].request.observed_composed("b").is_some());
    assert_eq!(reconciled.decision.delete[0].object, observed);
    let mut elsewhere = observed.clone();
    elsewhere["metadata"]["namespace"] = "elsewhere".into();
    elsewhere["metadata"]["ownerReferences"] = json!([{"uid": "x", "controller": true}]);
    let error = run(&xr(), Layout::Modern, &[elsewhere], &script).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid observed resources: [observed resource b has a controller ref but is not controlled by the XR, observed resource b is not in the same namespace as the XR]"
    );
}

#[tokio::test]
async fn a_failure_shows_the_whole_composite_resource() {
    let script = Script::new().then(|request| {
        let mut response = request.copy_response();
        response.warning("careful");
        response.fatal("no");
        response
    });
    let error = run(&xr(), Layout::Modern, &[], &script).await.unwrap_err();
    let text = r#"cannot compose resources: pipeline step "a" returned a fatal result: no"#;
    assert_eq!(chain(&error), text);
    let Error::Compose { so_far, .. } = error else { panic!("a failure to compose") };
    assert_eq!(so_far.xr["status"]["conditions"][1]["message"], text);
    let said: Vec<String> = so_far.events.iter().map(transom_compose::Event::text).collect();
    assert_eq!(said, ["Successfully selected composition: comp", text, r#"Pipeline step "a": careful"#]);
    let broken = run(&xr(), Layout::Modern, &[], &Script::new().then_fail("gone")).await.unwrap_err();
    let broken = chain(&broken);
    assert!(broken.starts_with("reconcile failed: cannot compose resources: "), "{broken}");
    let mut other = xr();
    other["kind"] = "Other".into();
    let error = run(&other, Layout::Modern, &[], &wanting_a()).await.unwrap_err();
    assert!(matches!(error, Error::Ended(_)));
}
