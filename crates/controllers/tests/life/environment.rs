//! `spec.environment` of Compositions, as in Crossplane v1.

use crate::life::basics::*;
use crate::life::fixture::*;
use crate::life::templates::{WIDGET, composing, templated};
use serde_json::{Value, json};

const CONFIG: &str = "apiextensions.crossplane.io/v1beta1/EnvironmentConfig";

fn config(version: &str, name: &str, data: &Value) -> String {
    json!({
        "apiVersion": format!("apiextensions.crossplane.io/{version}"), "kind": "EnvironmentConfig",
        "metadata": {"name": name, "labels": {"size": name}}, "data": data,
    })
    .to_string()
}

fn environment() -> Value {
    json!({
        "defaultData": {"prefix": "default", "suffix": "end"},
        "environmentConfigs": [
            {"type": "Reference", "ref": {"name": "base"}},
            {"type": "Selector", "selector": {"mode": "Single", "matchLabels": [
                {"key": "size", "type": "FromCompositeFieldPath", "valueFromFieldPath": "spec.size"},
            ]}},
        ],
        "patches": [{"type": "ToCompositeFieldPath", "fromFieldPath": "prefix", "toFieldPath": "status.size"}],
        "policy": {"resolution": "Required", "resolve": "IfNotPresent"},
    })
}

#[tokio::test]
async fn templates_patch_from_the_environment() {
    let plane = templated().await;
    // Of the version that Crossplane v1 had.
    plane.apply(&config("v1alpha1", "base", &json!({"prefix": "based"}))).await;
    plane.apply(&config("v1beta1", "small", &json!({"chosen": {"word": "tiny"}}))).await;
    let combine = json!({
        "strategy": "string", "string": {"fmt": "%s-%s-%s"},
        "variables": [{"fromFieldPath": "prefix"}, {"fromFieldPath": "chosen.word"}, {"fromFieldPath": "suffix"}],
    });
    let template = json!({
        "name": "widget", "base": {"apiVersion": "example.org/v1", "kind": "Widget"},
        "patches": [{"type": "CombineFromEnvironment", "combine": combine, "toFieldPath": "spec.size"}],
        "readinessChecks": [{"type": "None"}],
    });
    let spec = json!({
        "mode": "Resources", "resources": [template], "environment": environment(),
        "publishConnectionDetailsWithStoreConfigRef": {"name": "default"},
    });
    plane.apply(&composing("things", &spec)).await;
    plane.apply(&xr("one", "small")).await;
    let ready = plane.until_true(XR, "one", "Ready").await;
    let widget = composed_name(&ready).trim_start_matches('/').to_owned();
    plane.until(WIDGET, &widget, |o| o["spec"]["size"] == "based-tiny-end").await;
    plane.until(XR, "one", |o| o["status"]["size"] == "based").await;
    let revisions = plane.list(REVISION).await;
    for field in ["environment", "publishConnectionDetailsWithStoreConfigRef"] {
        assert_eq!(revisions[0]["spec"][field], spec[field], "a revision carries what its Composition has");
    }
    // A changed config wakes who uses it.
    plane.patch(CONFIG, "small", json!({"data": {"chosen": {"word": "teeny"}}})).await;
    plane.until(WIDGET, &widget, |o| o["spec"]["size"] == "based-teeny-end").await;
    // One that goes is missed, and nothing is deleted.
    plane.delete(CONFIG, "base").await;
    let failed = plane.until(XR, "one", |o| status_of(o, "Synced") == "False").await;
    let message = message_of(&failed, "Synced");
    assert!(message.contains("spec.environment") && message.contains("\"base\" not found"), "{message}");
    assert!(plane.get(WIDGET, &widget).await.is_some());
    plane.apply(&config("v1alpha1", "base", &json!({"prefix": "back"}))).await;
    plane.until(WIDGET, &widget, |o| o["spec"]["size"] == "back-teeny-end").await;
}

/// The author of the Composition chose what the environment is made from; only what functions ask for is switched off.
#[tokio::test]
async fn the_environment_does_not_need_extra_resources() {
    let mut plane = templated().await;
    plane.stop();
    plane.options.extra_resources = false;
    plane.start().await;
    plane.apply(&config("v1beta1", "base", &json!({"prefix": "based"}))).await;
    plane.apply(&config("v1beta1", "small", &json!({}))).await;
    let template = json!({
        "name": "widget", "base": {"apiVersion": "example.org/v1", "kind": "Widget"},
        "patches": [{"type": "FromEnvironmentFieldPath", "fromFieldPath": "prefix", "toFieldPath": "spec.size"}],
        "readinessChecks": [{"type": "None"}],
    });
    let spec = json!({"mode": "Resources", "resources": [template], "environment": environment()});
    plane.apply(&composing("things", &spec)).await;
    plane.apply(&xr("one", "small")).await;
    let ready = plane.until_true(XR, "one", "Ready").await;
    let widget = composed_name(&ready).trim_start_matches('/').to_owned();
    plane.until(WIDGET, &widget, |o| o["spec"]["size"] == "based").await;
}

#[tokio::test]
async fn functions_find_the_environment_in_their_context() {
    let plane = templated().await;
    plane.apply(&config("v1beta1", "base", &json!({"prefix": "based"}))).await;
    plane.apply(&config("v1beta1", "small", &json!({}))).await;
    plane
        .function("reader", |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            let context = response.context.as_ref().map(|c| c.as_value().clone()).unwrap_or_default();
            let environment = &context[transom_function::ENVIRONMENT];
            let words = format!("{}/{}", environment["prefix"], environment["suffix"]);
            response.composite().set("status.size", words.replace('"', ""))?;
            Ok(response)
        })
        .await;
    let steps = json!([{"step": "spec", "functionRef": {"name": "reader"}}]);
    let spec = json!({"mode": "Pipeline", "pipeline": steps, "environment": environment()});
    plane.apply(&composing("things", &spec)).await;
    plane.apply(&xr("one", "small")).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "based/end").await;
    plane.until_idle().await;
    let events = plane.events_of("one").await;
    let words = "spec.environment.patches has no effect in mode Pipeline";
    assert!(events.iter().any(|e| e.contains(words)), "{events:#?}");
}
