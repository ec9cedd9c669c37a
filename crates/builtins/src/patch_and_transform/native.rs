//! Compositions of mode `Resources` in the terms of the function's input.
//!
//! The language is the same, but their API server filled in what was left out, names were optional, and how to merge
//! was said in options instead of a policy. Run what comes of it with [`Profile::Native`](super::Profile::Native).

use serde_json::{Map, Value, json};

use super::input::Resources;
use crate::strict;

/// The input that a composition's `spec` stands for. Resources without a name are named by their place: `resource-0`.
pub fn input(spec: &Value) -> Result<Resources, strict::Error> {
    let mut input = Map::new();
    for list in ["patchSets", "resources"] {
        let mut items = spec.get(list).cloned().unwrap_or_default();
        for (i, item) in elements(Some(&mut items)).enumerate() {
            rewrite(item, i);
        }
        input.insert(list.to_owned(), items);
    }
    strict::value(&input.into())
}

/// The objects in a list.
fn elements(list: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    list.and_then(Value::as_array_mut).into_iter().flatten().filter(|item| item.is_object())
}

fn rewrite(template: &mut Value, index: usize) {
    if template["name"].as_str().unwrap_or_default().is_empty() {
        template["name"] = format!("resource-{index}").into();
    }
    for patch in elements(template.get_mut("patches")) {
        merge_policy(patch);
        for transform in elements(patch.get_mut("transforms")) {
            default_types(transform);
        }
    }
    for detail in elements(template.get_mut("connectionDetails")) {
        infer_type(detail);
    }
}

/// `policy.mergeOptions` is a policy for the target.
fn merge_policy(patch: &mut Value) {
    let Some(policy) = patch.get_mut("policy").and_then(Value::as_object_mut) else { return };
    let Some(options) = policy.remove("mergeOptions").filter(Value::is_object) else { return };
    let is_set = |option: &str| options[option].as_bool().unwrap_or_default();
    let to = match (is_set("keepMapValues"), is_set("appendSlice")) {
        (true, true) => "MergeObjectsAppendArrays",
        (true, false) => "MergeObjects",
        (false, true) => "ForceMergeObjectsAppendArrays",
        (false, false) => "ForceMergeObjects",
    };
    policy.insert("toFieldPath".to_owned(), to.into());
}

/// What the API server filled in.
fn default_types(transform: &mut Value) {
    for (config, kind) in [("string", "Format"), ("math", "Multiply")] {
        if transform[config].is_object() && transform[config]["type"].is_null() {
            transform[config]["type"] = kind.into();
        }
    }
    for pattern in elements(transform.get_mut("match").and_then(|config| config.get_mut("patterns"))) {
        if pattern["type"].is_null() {
            pattern["type"] = "literal".into();
        }
    }
}

/// A connection detail's type follows from what it has, and its name may follow from its key.
fn infer_type(detail: &mut Value) {
    let sources = [
        ("value", "FromValue"),
        ("fromConnectionSecretKey", "FromConnectionSecretKey"),
        ("fromFieldPath", "FromFieldPath"),
    ];
    if detail["type"].is_null()
        && let Some((_, kind)) = sources.iter().find(|(source, _)| !detail[*source].is_null())
    {
        detail["type"] = json!(kind);
    }
    if detail["name"].is_null() && detail["type"] == "FromConnectionSecretKey" {
        detail["name"] = detail["fromConnectionSecretKey"].clone();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Profile, run, validate};
    use super::*;
    use transom_function::testing::RequestBuilder;

    #[test]
    fn a_composition_of_resources_runs() {
        let spec = json!({
            "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "X"},
            "patchSets": [{"name": "names", "patches": [{"fromFieldPath": "metadata.name"}]}],
            "resources": [{
                "base": {"apiVersion": "v1", "kind": "Thing", "spec": {"tags": ["a"], "labels": {"k": "kept"}}},
                "patches": [
                    {"type": "PatchSet", "patchSetName": "names"},
                    {"fromFieldPath": "spec.size", "toFieldPath": "spec.size", "transforms": [{"type": "math", "math": {"multiply": 2}},
                        {"type": "string", "string": {"fmt": "%d GB"}}]},
                    {"fromFieldPath": "spec.tags", "policy": {"mergeOptions": {"appendSlice": true}}},
                    {"fromFieldPath": "spec.labels", "policy": {"mergeOptions": {"keepMapValues": true}}},
                    {"fromFieldPath": "spec.tags", "toFieldPath": "spec.joined",
                        "transforms": [{"type": "string", "string": {"type": "Join", "join": {"separator": ", "}}}]},
                ],
                "connectionDetails": [{"fromConnectionSecretKey": "user"}, {"name": "port", "value": "80"}],
            }, {"base": {"apiVersion": "v1", "kind": "Broken"}, "patches": [
                {"fromFieldPath": "spec.tags", "transforms": [{"type": "math", "math": {"multiply": 2}}]}]}],
        });
        let input = input(&spec).unwrap();
        validate(&input).unwrap();
        let xr = json!({"apiVersion": "example.org/v1", "kind": "X", "metadata": {"name": "demo"},
            "spec": {"size": 5, "tags": ["b", "a"], "labels": {"k": "new", "l": "added"}}});
        let mut request = RequestBuilder::new(xr).build();
        let response = request.start_response();
        let response = run(&input, &request, response, Profile::Native);
        let resources = &response.desired.as_ref().unwrap().resources;
        assert_eq!(
            resources["resource-0"].object()["spec"],
            json!({
            "size": "10 GB", "tags": ["a", "b"], "labels": {"k": "kept", "l": "added"}, "joined": "b, a"})
        );
        assert_eq!(resources["resource-0"].name(), "demo");
        // What cannot be rendered is left out, and the rest goes on.
        assert!(!resources.contains_key("resource-1"));
        assert_eq!(response.results.len(), 1);
        assert_eq!(input.resources[0].connection_details[0].name, "user");
    }
}
