//! Compositions of mode `Resources` in the terms of the function's input.
//!
//! The language is the same, but the API server applied defaults, and merging was configured by options instead of a
//! policy. The result runs with [`Profile::Native`]. Mistakes are reported as a review words them.

use serde_json::{Map, Value, json};
use transom_function::{Error, Function, RunFunctionRequest, RunFunctionResponse, async_trait};

use super::input::Resources;
use super::{Profile, fatal, run, validate, violations};
use crate::review::Review;
use crate::strict;

/// Runs the templates of a composition of mode `Resources`, which are its input.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Templates;

#[async_trait]
impl Function for Templates {
    async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        let nothing = Map::new();
        let spec = request.input.as_ref().map_or(&nothing, |input| input.fields());
        let rewritten = rewritten(spec);
        let input = input(&rewritten);
        let response = request.start_response();
        Ok(match input.and_then(|input| validate(&input).map(|()| input)) {
            Ok(input) => run(&input, &request, response, Profile::Native),
            Err(error) => {
                let refusal = violations::review(&rewritten).refusal();
                fatal(response, refusal.unwrap_or_else(|| error.to_string()))
            }
        })
    }
}

/// What is wrong with the templates of a composition's `spec`.
pub(crate) fn review(spec: &Map<String, Value>) -> Review {
    let mut rewritten = rewritten(spec);
    // Templates need no names; those without are given one before they run.
    for template in elements(rewritten.get_mut("resources")) {
        if template["name"].is_null() {
            template["name"] = "unnamed".into();
        }
    }
    violations::review(&rewritten)
}

fn input(rewritten: &Map<String, Value>) -> Result<Resources, Error> {
    strict::object(rewritten).map_err(|error| Error::fatal(error.to_string()))
}

/// A Composition's `spec` as an input of the function.
fn rewritten(spec: &Map<String, Value>) -> Map<String, Value> {
    let mut input = Map::new();
    for list in ["patchSets", "resources"] {
        let mut items = spec.get(list).cloned().unwrap_or_default();
        elements(Some(&mut items)).for_each(rewrite);
        input.insert(list.to_owned(), items);
    }
    // The rest of the environment is made before the templates run.
    if let Some(patches) = spec.get("environment").and_then(|environment| environment.get("patches")) {
        let mut environment = json!({"patches": patches});
        rewrite(&mut environment);
        input.insert("environment".to_owned(), environment);
    }
    input
}

/// The objects in a list.
fn elements(list: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    list.and_then(Value::as_array_mut).into_iter().flatten().filter(|item| item.is_object())
}

fn rewrite(template: &mut Value) {
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
    policy.entry("toFieldPath").or_insert_with(|| to.into());
}

/// What the API server filled in.
fn default_types(transform: &mut Value) {
    let kinds = ["math", "map", "match", "string", "convert"];
    if transform["type"].is_null()
        && let Some(kind) = kinds.into_iter().find(|kind| !transform[*kind].is_null())
    {
        transform["type"] = kind.into();
    }
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
    use super::*;
    use transom_function::testing::{RequestBuilder, run};
    use transom_function::{Ready, Severity};

    fn composite() -> Value {
        json!({"apiVersion": "example.org/v1", "kind": "X", "metadata": {"name": "demo"},
            "spec": {"size": 5, "tags": ["b", "a"], "labels": {"k": "new", "l": "added"}}})
    }

    fn thing(patches: &Value) -> Value {
        json!({"name": "thing", "base": {"apiVersion": "v1", "kind": "Thing"}, "patches": patches})
    }

    /// A patch that cannot be made: a list cannot be multiplied.
    fn failing() -> Value {
        json!({"fromFieldPath": "spec.tags", "transforms": [{"type": "math", "math": {"multiply": 2}}]})
    }

    async fn templates(resources: Value, observed: Option<Value>) -> RunFunctionResponse {
        let mut request = RequestBuilder::new(composite()).input(json!({"resources": resources}));
        if let Some(observed) = observed {
            request = request.observed("thing", observed);
        }
        run(&Templates, request.build(), &[]).await
    }

    #[tokio::test]
    async fn a_composition_of_resources_runs() {
        let spec = json!({
            "patchSets": [{"name": "names", "patches": [{"fromFieldPath": "metadata.name"}]}],
            "resources": [{
                "name": "one",
                "base": {"apiVersion": "v1", "kind": "Thing", "spec": {"tags": ["a"], "labels": {"k": "kept"}}},
                "patches": [
                    {"type": "PatchSet", "patchSetName": "names"},
                    {"fromFieldPath": "spec.size", "toFieldPath": "spec.size", "transforms": [{"math": {"multiply": 2}},
                        {"type": "string", "string": {"fmt": "%d GB"}}]},
                    {"fromFieldPath": "spec.tags", "policy": {"mergeOptions": {"appendSlice": true}}},
                    {"fromFieldPath": "spec.labels", "policy": {"mergeOptions": {"keepMapValues": true}}},
                    {"fromFieldPath": "spec.tags", "toFieldPath": "spec.joined",
                        "transforms": [{"type": "string", "string": {"type": "Join", "join": {"separator": ", "}}}]},
                ],
                "connectionDetails": [{"fromConnectionSecretKey": "user"}, {"name": "port", "value": "80"}],
            }],
        });
        let decoded = input(&rewritten(spec.as_object().unwrap())).unwrap();
        assert_eq!(decoded.resources[0].connection_details[0].name, "user");
        let request = RequestBuilder::new(composite()).input(spec).build();
        let response = run(&Templates, request, &[]).await;
        let resources = &response.desired.as_ref().unwrap().resources;
        assert_eq!(
            resources["one"].object()["spec"],
            json!({"size": "10 GB", "tags": ["a", "b"], "labels": {"k": "kept", "l": "added"}, "joined": "b, a"})
        );
        assert_eq!(resources["one"].name(), "demo");
    }

    /// What cannot be rendered is left out with a warning, whether or not it exists, and the rest goes on.
    #[tokio::test]
    async fn a_patch_that_fails_costs_its_resource_only() {
        let other = json!({"name": "other", "base": {"apiVersion": "v1", "kind": "Other"}});
        let required = json!({"fromFieldPath": "spec.none", "policy": {"fromFieldPath": "Required"}});
        let exists = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "here"}});
        for patch in [failing(), required] {
            for observed in [None, Some(exists.clone())] {
                let response = templates(json!([thing(&json!([patch])), other]), observed).await;
                let desired = response.desired.as_ref().unwrap();
                assert_eq!(desired.resources.keys().collect::<Vec<_>>(), ["other"]);
                assert_eq!(desired.composite.as_ref().unwrap().ready(), Ready::False);
                let warnings: Vec<&str> = response.results.iter().map(|r| r.message.as_str()).collect();
                assert_eq!(warnings.len(), 1);
                assert!(warnings[0].starts_with("cannot render composed resource \"thing\""), "{warnings:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_patch_to_the_composite_resource_that_fails_stops_all() {
        let exists = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "here"}});
        let required = json!({"type": "ToCompositeFieldPath", "fromFieldPath": "status.none",
            "toFieldPath": "status.x", "policy": {"fromFieldPath": "Required"}});
        let response = templates(json!([thing(&json!([required]))]), Some(exists)).await;
        assert_eq!(response.results[0].severity(), Severity::Fatal);
    }

    #[tokio::test]
    async fn a_composed_resource_stays_of_its_kind() {
        let exists = json!({"apiVersion": "v1", "kind": "Thong", "metadata": {"name": "here"}});
        let response = templates(json!([thing(&json!([]))]), Some(exists)).await;
        assert_eq!(response.results[0].severity(), Severity::Fatal);
        let message = &response.results[0].message;
        assert!(message.contains("from /v1, Kind=Thong to /v1, Kind=Thing"), "{message}");
    }

    #[tokio::test]
    async fn environment_patches_come_first() {
        let input = json!({
            "resources": [thing(&json!([{"type": "FromEnvironmentFieldPath", "fromFieldPath": "size", "toFieldPath": "spec.size"}]))],
            "environment": {"patches": [{"type": "FromCompositeFieldPath", "fromFieldPath": "spec.size", "toFieldPath": "size",
                "transforms": [{"math": {"multiply": 2}}]}]},
        });
        let response = run(&Templates, RequestBuilder::new(composite()).input(input).build(), &[]).await;
        let desired = response.desired.unwrap();
        assert_eq!(desired.resources["thing"].object()["spec"]["size"], 10);
    }

    #[tokio::test]
    async fn two_templates_that_publish_the_same_detail_are_named() {
        let publishing = |name: &str, value: &str| {
            json!({"name": name, "base": {"apiVersion": "v1", "kind": "Thing"},
                "connectionDetails": [{"name": "user", "value": value}, {"name": name, "value": value}]})
        };
        let input = json!({"resources": [publishing("a", "1"), publishing("b", "2")]});
        let here = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "here"}});
        let request = RequestBuilder::new(composite()).input(input);
        let request = request.observed("a", here.clone()).observed("b", here).build();
        let response = run(&Templates, request, &[]).await;
        let warnings: Vec<&str> = response.results.iter().map(|r| r.message.as_str()).collect();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0]
                .starts_with("composed resources \"a\" and \"b\" both publish connection detail \"user\""),
            "{warnings:?}"
        );
    }
}
