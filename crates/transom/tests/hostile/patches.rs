//! Patches that explode, point nowhere, or ask for the impossible.

use super::{CONFIG_MAPS, Target};
use http::Method;
use serde_json::{Value, json};

const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

async fn json_patch(target: &Target, what: &str, patch: Value) -> u16 {
    let path = format!("{CONFIG_MAPS}/bystander");
    target.refuses(what, Method::PATCH, &path, JSON_PATCH, patch.to_string().into()).await.status
}

#[tokio::test]
async fn json_patches_that_explode_are_refused() {
    let target = Target::start().await;
    let mut doubling = vec![json!({"op": "add", "path": "/x", "value": {"a": "0123456789".repeat(100)}})];
    doubling.extend((0..60).map(|i| json!({"op": "copy", "from": "/x", "path": format!("/x/b{i}")})));
    assert_eq!(json_patch(&target, "copies that double", Value::Array(doubling)).await, 422);
    let test = json!({"op": "test", "path": "/kind", "value": "ConfigMap"});
    assert_eq!(json_patch(&target, "10,001 operations", vec![test; 10_001].into()).await, 413);
    let inwards: Vec<Value> = (0..9_000)
        .map(|i| json!({"op": "add", "path": format!("/data{}", "/a".repeat(i)), "value": {}}))
        .take(1_000)
        .collect();
    json_patch(&target, "ever deeper", inwards.into()).await;
    let nest = json!([
        {"op": "copy", "from": "", "path": "/data/a"},
        {"op": "copy", "from": "", "path": "/data/b"},
    ]);
    json_patch(&target, "the whole into itself", nest).await;
    target.assert_intact().await;
}

/// A copy into its own deepest place doubles the depth, for two bytes of path a level.
#[tokio::test]
async fn copies_cannot_build_what_no_stack_can_walk() {
    let target = Target::start().await;
    let mut patch = vec![json!({"op": "add", "path": "/x", "value": {"x": {}}})];
    let mut depth = 2;
    while depth < 200_000 {
        patch.push(json!({"op": "copy", "from": "/x", "path": "/x".repeat(depth + 1)}));
        depth *= 2;
    }
    assert_eq!(json_patch(&target, "copies that nest", patch.into()).await, 413);
    target.assert_intact().await;
}

/// Each operation of a list puts the list into a list: depth without size.
#[tokio::test]
async fn moves_cannot_build_what_a_body_may_not_be() {
    let target = Target::start().await;
    let mut patch = Vec::new();
    for _ in 0..3_000 {
        patch.push(json!({"op": "add", "path": "/wrap", "value": {}}));
        patch.push(json!({"op": "move", "from": "/data", "path": "/wrap/a"}));
        patch.push(json!({"op": "move", "from": "/wrap", "path": "/data"}));
    }
    json_patch(&target, "moves that nest", patch.into()).await;
    target.assert_intact().await;
}

#[tokio::test]
async fn json_patches_that_make_no_sense_are_refused() {
    let target = Target::start().await;
    for patch in [
        json!({}),
        json!("x"),
        json!([1]),
        json!([{}]),
        json!([{"op": "explode", "path": "/data"}]),
        json!([{"op": "add"}]),
        json!([{"op": "add", "path": 7, "value": 1}]),
        json!([{"op": "add", "path": "data", "value": 1}]),
        json!([{"op": "add", "path": "/nowhere/at/all", "value": 1}]),
        json!([{"op": "remove", "path": ""}]),
        json!([{"op": "remove", "path": "/data/none"}]),
        json!([{"op": "replace", "path": "", "value": 1}]),
        json!([{"op": "replace", "path": "", "value": []}]),
        json!([{"op": "move", "from": "/metadata", "path": "/metadata/labels"}]),
        json!([{"op": "move", "from": "/data", "path": "/data"}, {"op": "test", "path": "/data", "value": 0}]),
        json!([{"op": "copy", "from": "/none", "path": "/none/none"}]),
        json!([{"op": "test", "path": "/data", "value": null}]),
        json!([{"op": "add", "path": "/metadata/finalizers", "value": [1, 2]}]),
        json!([{"op": "add", "path": "/metadata/finalizers/99999999999999999999", "value": "x"}]),
        json!([{"op": "add", "path": "/metadata/managedFields/-99999999999", "value": "x"}]),
        json!([{"op": "remove", "path": "/metadata"}]),
        json!([{"op": "replace", "path": "/metadata/name", "value": "other"}]),
        json!([{"op": "replace", "path": "/kind", "value": "Secret"}]),
        json!([{"op": "add", "path": format!("/data{}", "/~01~10".repeat(10_000)), "value": 1}]),
    ] {
        let what = patch.to_string().chars().take(100).collect::<String>();
        json_patch(&target, &what, patch).await;
    }
    target.assert_intact().await;
}

#[tokio::test]
async fn strategic_directives_that_make_no_sense_do_not_fail_the_server() {
    let target = Target::start().await;
    let path = format!("{CONFIG_MAPS}/bystander");
    for patch in [
        json!({"$patch": "explode"}),
        json!({"$patch": 7}),
        json!({"data": {"$patch": "replace", "$retainKeys": "x"}}),
        json!({"data": {"$retainKeys": [{}]}}),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": {"a": 1}}}),
        json!({"metadata": {"$deleteFromPrimitiveList/": []}}),
        json!({"metadata": {"$setElementOrder/ownerReferences": [1, null, {}]}}),
        json!({"metadata": {"ownerReferences": [{"$patch": "delete"}]}}),
        json!({"metadata": {"ownerReferences": [7]}}),
        json!({"metadata": null}),
        json!({"metadata": {"ownerReferences": {"uid": {}}}}),
    ] {
        let reply = target.client.patch(&path, STRATEGIC, patch.to_string()).await.unwrap();
        // Upstream answers an unknown directive with 500 and no reason; a failure of ours has a reason.
        let ours = reply.status >= 500 && reply.json()["reason"].is_string();
        assert!(!ours, "{patch}: {}", reply.text());
    }
    target.assert_intact().await;
}

#[tokio::test]
async fn applies_and_updates_with_foreign_ownership_do_not_fail_the_server() {
    let target = Target::start().await;
    let path = format!("{CONFIG_MAPS}/bystander");
    let deep = |levels: usize| format!("{}{{}}{}", r#"{"f:a":"#.repeat(levels), "}".repeat(levels));
    let fields = [
        "{}".to_owned(),
        "[]".to_owned(),
        r#""x""#.to_owned(),
        r#"{"f:data":7}"#.to_owned(),
        r#"{"k:{\"a\":":{}}"#.to_owned(),
        r#"{"v:{":{},"i:x":{},"q:":{},"":{}}"#.to_owned(),
        r#"{"i:99999999999999999999":{}}"#.to_owned(),
        deep(100),
        deep(400),
    ];
    for fields in fields {
        for version in ["v1", "v9", "", "not/a/version"] {
            let body = format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"bystander","managedFields":[
                {{"manager":"m","operation":"Apply","apiVersion":"{version}","fieldsType":"FieldsV1","fieldsV1":{fields}}}]}},"data":{{"k":"w"}}}}"#
            );
            let what =
                format!("managedFields {} at {version:?}", fields.chars().take(60).collect::<String>());
            target.try_send(&what, Method::PUT, &path, "application/json", body.into()).await;
            let apply = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": what}}).to_string();
            let path = format!("{path}?fieldManager=m&force=true");
            target.try_send(&what, Method::PATCH, &path, "application/apply-patch+yaml", apply.into()).await;
        }
    }
    target.assert_intact().await;
}
