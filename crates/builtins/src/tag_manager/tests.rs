//! How tags are added, ignored and removed.

use super::*;
use crate::upstream;
use serde_json::json;
use transom_function::testing::{RequestBuilder, run};

fn bucket(rest: &Value) -> Value {
    let mut object = json!({"apiVersion": "s3.aws.upbound.io/v1beta1", "kind": "Bucket"});
    for (key, value) in rest.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

fn tagged(tags: &Value) -> Value {
    bucket(&json!({"spec": {"forProvider": {"tags": tags}}}))
}

async fn manage_one(input: Value, desired: Value) -> RunFunctionResponse {
    let composite =
        json!({"kind": "XR", "spec": {"tags": {"from": "xr", "n": 1}, "keys": ["a", 1, "b"], "text": "x"}});
    let request = RequestBuilder::new(composite)
        .context(
            ENVIRONMENT,
            json!({"tags": {"from": "env"}, "mixed": {"from": "env", "n": 1}, "keys": ["c"]}),
        )
        .observed(
            "bucket",
            bucket(&json!({"status": {"atProvider": {"tags": {"a": "observed", "z": "observed"}}}})),
        )
        .desired("bucket", desired)
        .input(input)
        .build();
    run(&TagManager, request, &[]).await
}

async fn managed(input: Value, desired: Value) -> Value {
    let response = manage_one(input, desired).await;
    assert_eq!(response.results[0].message, "Successfully Processed tags");
    let bucket = &response.desired.unwrap().resources["bucket"];
    bucket.object().pointer("/spec/forProvider/tags").cloned().unwrap_or_else(|| json!("none"))
}

#[tokio::test]
async fn tags_are_added() {
    let present = json!({"a": "desired", "e": ""});
    for (entries, expected) in [
        (json!([{"tags": {"a": "1", "b": "2"}}]), json!({"a": "1", "b": "2", "e": ""})),
        (
            json!([{"type": "FromValue", "policy": "Retain", "tags": {"a": "1", "b": "2", "e": "3"}}]),
            json!({"a": "desired", "b": "2", "e": "3"}),
        ),
        // Without a type there is no policy.
        (json!([{"policy": "Retain", "tags": {"a": "1"}}]), json!({"a": "1", "e": ""})),
        // Of two entries the first wins.
        (json!([{"tags": {"a": "1"}}, {"tags": {"a": "2"}}]), json!({"a": "1", "e": ""})),
        (
            json!([{"type": "FromCompositeFieldPath", "fromFieldPath": "spec.tags"}]),
            json!({"a": "desired", "e": "", "from": "xr", "n": ""}),
        ),
        (json!([{"type": "FromCompositeFieldPath", "fromFieldPath": "spec.none"}]), present.clone()),
        (
            json!([{"type": "FromEnvironmentFieldPath", "fromFieldPath": "tags"}]),
            json!({"a": "desired", "e": "", "from": "env"}),
        ),
        (json!([{"type": "FromEnvironmentFieldPath", "fromFieldPath": "mixed"}]), present.clone()),
        (json!([{"type": "Elsewhere"}]), present.clone()),
    ] {
        assert_eq!(managed(json!({"addTags": entries}), tagged(&present)).await, expected, "{entries}");
    }
}

#[tokio::test]
async fn tags_of_outsiders_are_kept() {
    for (entries, expected) in [
        (json!([{"type": "FromValue", "keys": ["a", "b"]}]), json!({"a": "observed"})),
        (json!([{"type": "FromValue", "keys": ["a"], "policy": "Retain"}]), json!({"a": "desired"})),
        (json!([{"type": "FromCompositeFieldPath", "fromFieldPath": "spec.keys"}]), json!({"a": "observed"})),
        (json!([{"type": "FromEnvironmentFieldPath", "fromFieldPath": "keys"}]), json!({"a": "desired"})),
    ] {
        let result = managed(json!({"ignoreTags": entries}), tagged(&json!({"a": "desired"}))).await;
        assert_eq!(result, expected, "{entries}");
    }
}

#[tokio::test]
async fn tags_are_removed() {
    let all = json!({"a": "1", "b": "2", "c": "3", "d": "4"});
    for (entries, expected) in [
        (json!([{"type": "FromValue", "keys": ["a", "none"]}]), json!({"b": "2", "c": "3", "d": "4"})),
        (
            json!([{"type": "FromCompositeFieldPath", "fromFieldPath": "spec.keys"}]),
            json!({"c": "3", "d": "4"}),
        ),
        // Of several paths only the last that leads to a list counts.
        (
            json!([{"type": "FromCompositeFieldPath", "fromFieldPath": "spec.keys"},
                {"type": "FromEnvironmentFieldPath", "fromFieldPath": "keys"},
                {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.text"},
                {"type": "FromCompositeFieldPath", "fromFieldPath": "none"},
                {"type": "FromValue", "keys": ["d"]}]),
            json!({"a": "1", "b": "2"}),
        ),
    ] {
        assert_eq!(managed(json!({"removeTags": entries}), tagged(&all)).await, expected, "{entries}");
    }
}

#[tokio::test]
async fn only_some_resources_are_touched() {
    let add = json!({"addTags": [{"tags": {"a": "1"}}]});
    let marked = |metadata: Value| bucket(&json!({"metadata": metadata}));
    let note = |text: &str| json!({IGNORE: text});
    for (desired, expected) in [
        (bucket(&json!({})), json!({"a": "1"})),
        (bucket(&json!({"kind": "BucketPolicy"})), json!("none")),
        (bucket(&json!({"apiVersion": "v1"})), json!("none")),
        (bucket(&json!({"apiVersion": "a/b/c"})), json!("none")),
        (bucket(&json!({"spec": "text"})), json!("none")),
        (marked(json!({"annotations": note("True")})), json!("none")),
        (marked(json!({"labels": note("TRUE")})), json!("none")),
        (marked(json!({"annotations": note("false"), "labels": note("true")})), json!({"a": "1"})),
        (marked(json!({"annotations": {"x": 1, IGNORE: "true"}})), json!({"a": "1"})),
    ] {
        assert_eq!(managed(add.clone(), desired.clone()).await, expected, "{desired}");
    }
    assert_eq!(managed(json!({}), bucket(&json!({}))).await, json!(null));
}

#[tokio::test]
async fn a_path_is_required() {
    let response = manage_one(json!({"removeTags": [{"type": "FromCompositeFieldPath"}]}), json!({})).await;
    let expected = "fromFieldPath is required for tags of type FromCompositeFieldPath";
    assert_eq!(response.results[0].message, expected);
}

fn resource(value: &Value) -> Resource {
    Resource::new(value["Resource"].clone()).unwrap_or_default()
}

#[test]
fn upstream_tables_of_resources() {
    for case in upstream::cases("function-tag-manager/fn/TestIgnoreResource") {
        let ignored = case["inputs"]["res"].is_null() || is_ignored(&resource(&case["inputs"]["res"]));
        assert_eq!(ignored, case["expected"]["want"].as_bool().unwrap_or_default(), "{case}");
    }
    for case in upstream::cases("function-tag-manager/filter/TestSupportedManagedResource") {
        // Rows with a table of their own say what that table says.
        if case["inputs"]["filter"].get("$default").is_some() {
            let expected = case["expected"]["want"].as_bool().unwrap_or_default();
            assert_eq!(has_tags(&resource(&case["inputs"]["desired"])), expected, "{case}");
        }
    }
}

#[test]
fn the_upstream_list_of_kinds_is_ours() {
    let list = transom_testkit::tables::read("functions/function-tag-manager/filter/tag-support.json");
    let Some(list) = list else { return };
    let list: std::collections::BTreeMap<String, bool> = serde_json::from_value(list).unwrap();
    for (name, expected) in list {
        let (group, kind) = name.split_once('/').unwrap();
        assert_eq!(taggable::is_taggable(group, kind), expected, "{name}");
    }
}

fn updates(value: &Value) -> Updates {
    let read = |list: &str| serde_json::from_value(value.get(list).cloned().unwrap_or_default()).unwrap();
    Updates { retain: read("Retain"), replace: read("Replace") }
}

fn entries<T: serde::de::DeserializeOwned>(case: &Value) -> Vec<T> {
    let entries = case["inputs"]["in"].as_array().cloned().unwrap_or_default();
    entries.iter().map(|entry| crate::strict::value(entry).unwrap()).collect()
}

#[test]
fn upstream_tables_of_tags() {
    for case in upstream::cases("function-tag-manager/tags/TestAddTags") {
        let mut desired = resource(&case["inputs"]["desired"]);
        updates(&case["inputs"]["tu"]).apply(&mut desired);
        assert_eq!(desired.object(), &case["expected"]["desired"]["Resource"], "{case}");
    }
    for case in upstream::cases("function-tag-manager/tags/TestRemoveTags") {
        let mut desired = resource(&case["inputs"]["desired"]);
        let keys: Vec<String> = serde_json::from_value(case["inputs"]["keys"].clone()).unwrap();
        tags::remove(&mut desired, &keys);
        assert_eq!(desired.object(), &case["expected"]["desired"]["Resource"], "{case}");
    }
    for case in upstream::cases("function-tag-manager/tags/TestResolveAddTags") {
        let (composite, environment) = (&case["inputs"]["oxr"]["Resource"], &case["inputs"]["env"]);
        let resolved = Updates::adding(&entries(&case), &Sources { composite, environment }).unwrap();
        assert_eq!(resolved, updates(&case["expected"]["tu"]), "{case}");
    }
    for case in upstream::cases("function-tag-manager/tags/TestResolveIgnoreTags") {
        let (composite, environment) = (&case["inputs"]["oxr"]["Resource"], &case["inputs"]["env"]);
        let observed = resource(&case["inputs"]["observed"]);
        let kept = Updates::keeping(&entries(&case), &observed, &Sources { composite, environment }).unwrap();
        let expected = case["expected"].get("tu").map(updates);
        assert_eq!(kept, expected, "{case}");
    }
    for case in upstream::cases("function-tag-manager/tags/TestResolveRemoveTags") {
        let (composite, environment) = (&case["inputs"]["oxr"]["Resource"], &case["inputs"]["env"]);
        let mut names = tags::removed(&entries(&case), &Sources { composite, environment }).unwrap();
        names.sort();
        let mut expected: Vec<String> = serde_json::from_value(case["expected"]["keys"].clone()).unwrap();
        expected.sort();
        assert_eq!(names, expected, "{case}");
    }
}
