//! What is required, selected and merged into the environment.

use super::*;
use transom_function::testing::{RequestBuilder, run as run_until_stable};

fn config(name: &str, labels: &Value, data: &Value) -> Value {
    json!({"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig",
        "metadata": {"name": name, "labels": labels}, "data": data})
}

fn world() -> Vec<Value> {
    vec![
        config("base", &json!({"tier": "base"}), &json!({"region": "eu", "net": {"a": 1, "list": [1]}})),
        config("over", &json!({"tier": "over"}), &json!({"region": "us", "net": {"b": 2, "list": [2]}})),
        config("two", &json!({"tier": "over"}), &json!({"n": 2})),
        config("nothing", &json!({}), &json!(null)),
        config("text", &json!({}), &json!("data")),
    ]
}

async fn call(spec: Value) -> RunFunctionResponse {
    let request = RequestBuilder::new(json!({"spec": {"tier": "base", "size": 3}}))
        .context(ENVIRONMENT, json!({"region": "earlier", "earlier": true}))
        .input(json!({"apiVersion": "environmentconfigs.fn.crossplane.io/v1beta1", "kind": "Input", "spec": spec}))
        .build();
    run_until_stable(&EnvironmentConfigs, request, &world()).await
}

async fn environment(spec: Value) -> Value {
    let response = call(spec).await;
    assert!(response.results.is_empty(), "{:?}", response.results);
    let mut environment = response.context.unwrap().into_value()[ENVIRONMENT].take();
    let environment = environment.as_object_mut().unwrap();
    assert_eq!(environment.remove("apiVersion"), Some(json!("internal.crossplane.io/v1alpha1")));
    assert_eq!(environment.remove("kind"), Some(json!("Environment")));
    Value::Object(environment.clone())
}

fn named(name: &str) -> Value {
    json!({"ref": {"name": name}})
}

#[tokio::test]
async fn data_is_merged_by_precedence() {
    let spec = json!({"defaultData": {"region": "default", "earlier": false, "default": null},
        "environmentConfigs": [named("base"), named("over")]});
    let expected = json!({"region": "us", "earlier": true, "default": null,
        "net": {"a": 1, "b": 2, "list": [2]}});
    assert_eq!(environment(spec).await, expected);
}

#[tokio::test]
async fn what_hides_is_hidden_first() {
    let request = RequestBuilder::new(json!({}))
        .context(ENVIRONMENT, json!({"net": [1]}))
        .input(
            json!({"spec": {"defaultData": {"net": {"default": 1}}, "environmentConfigs": [named("over")]}}),
        )
        .build();
    let context =
        run_until_stable(&EnvironmentConfigs, request, &world()).await.context.unwrap().into_value();
    assert_eq!(context[ENVIRONMENT]["net"], json!({"default": 1, "b": 2, "list": [2]}));
}

#[tokio::test]
async fn data_goes_to_a_path() {
    let spec = json!({"environmentConfigs": [
        {"ref": {"name": "two"}, "toFieldPath": "at.path"},
        {"ref": {"name": "nothing"}, "toFieldPath": "none"},
        named("nothing"),
    ]});
    let expected = json!({"region": "earlier", "earlier": true, "at": {"path": {"n": 2}}, "none": null});
    assert_eq!(environment(spec).await, expected);
}

#[tokio::test]
async fn selectors_find_by_labels() {
    let tier = |value: &str| json!([{"type": "Value", "key": "tier", "value": value}]);
    let from_path = json!([{"key": "tier", "valueFromFieldPath": "spec.tier"}]);
    let single =
        json!({"environmentConfigs": [{"type": "Selector", "selector": {"matchLabels": from_path}}]});
    assert_eq!(environment(single).await["net"], json!({"a": 1, "list": [1]}));
    let many = json!({"environmentConfigs": [
        {"type": "Selector", "selector": {"mode": "Multiple", "matchLabels": tier("over"), "maxMatch": 1}}]});
    assert_eq!(environment(many).await["region"], "us");
    let unmatched =
        json!([{"key": "tier", "valueFromFieldPath": "spec.none", "fromFieldPathPolicy": "Optional"}]);
    let unasked = json!({"environmentConfigs": [named("two"), {"type": "Selector", "selector": {"matchLabels": unmatched}}]});
    assert_eq!(environment(unasked).await["n"], 2);
}

#[tokio::test]
async fn what_is_optional_may_be_missing() {
    let spec = json!({"environmentConfigs": [named("none")], "policy": {"resolution": "Optional"}});
    assert_eq!(environment(spec).await["region"], "earlier");
}

#[tokio::test]
async fn without_configs_nothing_happens() {
    let response = call(json!({"defaultData": {"a": 1}})).await;
    assert!(response.requirements.is_none());
    assert_eq!(response.context.unwrap().into_value()[ENVIRONMENT]["region"], "earlier");
}

#[tokio::test]
async fn problems_are_fatal() {
    let by_label =
        |selector: Value| json!({"environmentConfigs": [{"type": "Selector", "selector": selector}]});
    let over = json!([{"type": "Value", "key": "tier", "value": "over"}]);
    for (spec, expected) in [
        (
            json!({"environmentConfigs": [named("none")]}),
            r#"cannot get selected environment configs: cannot process environment config "none" by reference, "environment-config-0": Required environment config "none" not found"#,
        ),
        (
            by_label(json!({"matchLabels": over})),
            r#"cannot get selected environment configs: cannot process environment config "environment-config-0" by selector: expected exactly one required resource, got 2"#,
        ),
        (
            by_label(json!({"mode": "Multiple", "minMatch": 3, "matchLabels": over})),
            r#"cannot get selected environment configs: cannot process environment config "environment-config-0" by selector: expected at least 3 required resources, got 2"#,
        ),
        (
            by_label(json!({"mode": "Some", "matchLabels": over})),
            r#"cannot get selected environment configs: cannot process environment config "environment-config-0" by selector: unknown selector mode "Some""#,
        ),
        (
            by_label(json!({"matchLabels": [{"key": "tier", "valueFromFieldPath": "spec.size"}]})),
            r#"cannot build requirements: cannot get value from field path "spec.size": spec.size: not a string"#,
        ),
        (
            by_label(json!({"matchLabels": [{"type": "Value"}]})),
            "cannot build requirements: Value cannot be nil for type 'Value'",
        ),
        (
            json!({"environmentConfigs": [{}]}),
            "cannot build requirements: Ref cannot be nil for type 'Reference'",
        ),
        (
            json!({"environmentConfigs": [named("text")]}),
            r#"cannot merge environment data: cannot get data from environment config "text": cannot unmarshal value from JSON: json: cannot unmarshal string into Go value of type map[string]interface {}"#,
        ),
        (
            json!({"environmentConfigs": [{"ref": {"name": "two"}, "toFieldPath": "a..b"}]}),
            r#"cannot merge environment data: cannot get data from environment config two into path "a..b""#,
        ),
    ] {
        let response = call(spec).await;
        assert_eq!(response.results[0].message, expected);
    }
}
