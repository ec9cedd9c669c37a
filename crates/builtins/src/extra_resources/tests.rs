//! What is required, and how it is put into the context.

use super::*;
use serde_json::json;
use transom_function::testing::{RequestBuilder, run as run_until_stable};

fn bucket(name: &str, namespace: &str, size: u64) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Bucket",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "x"}}, "size": size})
}

async fn call(spec: Value) -> RunFunctionResponse {
    let request = RequestBuilder::new(json!({"spec": {"app": "x"}}))
        .context(CONTEXT_KEY, json!({"earlier": []}))
        .input(
            json!({"apiVersion": "extra-resources.fn.crossplane.io/v1beta1", "kind": "Input", "spec": spec}),
        )
        .build();
    let world = [bucket("a", "one", 3), bucket("b", "one", 1), bucket("c", "two", 2)];
    run_until_stable(&ExtraResources, request, &world).await
}

fn source(mut more: Value) -> Value {
    more["apiVersion"] = "example.org/v1".into();
    more["kind"] = "Bucket".into();
    more["into"] = "buckets".into();
    json!({"extraResources": [more]})
}

fn selecting(mut selector: Value) -> Value {
    selector["matchLabels"] = json!([{"key": "app", "valueFromFieldPath": "spec.app"}]);
    source(json!({"type": "Selector", "selector": selector}))
}

async fn names(spec: Value) -> Vec<String> {
    let response = call(spec).await;
    assert!(response.results.is_empty(), "{:?}", response.results);
    let context = response.context.unwrap().into_value();
    let found = context[CONTEXT_KEY].as_object().unwrap();
    assert_eq!(found.keys().collect::<Vec<_>>(), ["buckets"]);
    found["buckets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|b| b["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn resources_are_found_and_sorted() {
    assert_eq!(names(source(json!({"ref": {"name": "b"}}))).await, ["b"]);
    assert_eq!(names(selecting(json!({}))).await, ["a", "b", "c"]);
    assert_eq!(names(selecting(json!({"sortByFieldPath": "size", "maxMatch": 2}))).await, ["b", "c"]);
    let mut in_namespace = selecting(json!({}));
    in_namespace["extraResources"][0]["namespace"] = "two".into();
    assert_eq!(names(in_namespace).await, ["c"]);
}

#[tokio::test]
async fn they_can_be_left_elsewhere() {
    let mut spec = source(json!({"ref": {"name": "b"}}));
    spec["context"] = json!({"key": "mine"});
    let context = call(spec).await.context.unwrap().into_value();
    assert_eq!(context["mine"]["buckets"][0]["metadata"]["name"], "b");
    assert_eq!(context[CONTEXT_KEY], json!({"earlier": []}));
}

#[tokio::test]
async fn an_optional_reference_may_be_missing() {
    let mut spec = source(json!({"ref": {"name": "none"}}));
    spec["policy"] = json!({"resolution": "Optional"});
    assert_eq!(call(spec).await.context.unwrap().into_value()[CONTEXT_KEY], json!({}));
}

#[tokio::test]
async fn problems_are_fatal() {
    let verifying = "verifying and sorting extra resources: ";
    let building = "could not build extra resource requirements: ";
    let label = |matcher: Value| source(json!({"type": "Selector", "selector": {"matchLabels": [matcher]}}));
    let mut with_unasked =
        label(json!({"key": "a", "valueFromFieldPath": "none", "fromFieldPathPolicy": "Optional"}));
    let asked = source(json!({"ref": {"name": "a"}}))["extraResources"][0].clone();
    with_unasked["extraResources"][0]["into"] = "unasked".into();
    with_unasked["extraResources"].as_array_mut().unwrap().push(asked);
    for (spec, expected) in [
        (
            source(json!({"ref": {"name": "none"}})),
            format!("{verifying}Required extra resource \"buckets\" not found"),
        ),
        (
            selecting(json!({"minMatch": 4})),
            format!("{verifying}expected at least 4 extra resources \"buckets\", got 3"),
        ),
        (with_unasked, format!("{verifying}cannot find expected extra resource \"unasked\"")),
        (
            selecting(json!({"sortByFieldPath": "metadata"})),
            format!("{verifying}unsupported type \"map\" for sorting"),
        ),
        (
            label(json!({"key": "a", "valueFromFieldPath": "no"})),
            format!("{building}cannot get value from field path \"no\": no: no such field"),
        ),
        (
            label(json!({"key": "a"})),
            format!("{building}ValueFromFieldPath cannot be nil for type 'FromCompositeFieldPath'"),
        ),
        (
            source(json!({"type": "Selector"})),
            format!("{building}Selector cannot be nil for type 'Selector'"),
        ),
    ] {
        assert_eq!(call(spec).await.results[0].message, expected);
    }
}
