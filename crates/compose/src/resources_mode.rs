//! Compositions of mode `Resources`, the templates of Crossplane's first version: a pipeline of one step that calls
//! function-patch-and-transform, whose language descends from them. This module bridges what changed since.

use crate::failure::Cause;
use serde_json::{Map, Value, json};
use transom_object::meta;
use transom_xapi::composition::NameReference;
use transom_xapi::{CompositionSpec, PipelineStep};

/// The function that such a composition is run by.
pub const FUNCTION: &str = "function-patch-and-transform";
const STEP: &str = "resources";

/// The pipeline that does what the templates say.
pub(crate) fn pipeline(composition: &CompositionSpec) -> Result<Vec<PipelineStep>, Cause> {
    let named = composition.resources.iter().filter(|template| name(template).is_some()).count();
    if named != 0 && named != composition.resources.len() {
        return Err(Cause::Resources(
            "either every template of a Composition of mode Resources has a name, or none has".to_owned(),
        ));
    }
    let mut templates = composition.resources.clone();
    for (index, template) in templates.iter_mut().enumerate() {
        let name = template_name(template, index);
        if let Some(fields) = template.as_object_mut() {
            fields.insert("name".to_owned(), name.into());
        }
        modernise(template);
    }
    let mut patch_sets = composition.patch_sets.clone();
    patch_sets.iter_mut().for_each(|set| each(set, "patches", patch));
    let mut input = json!({
        "apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": templates,
    });
    if !patch_sets.is_empty() {
        input["patchSets"] = patch_sets.into();
    }
    Ok(vec![PipelineStep {
        step: STEP.to_owned(),
        function_ref: NameReference::new(FUNCTION),
        input: Some(input),
        ..PipelineStep::default()
    }])
}

/// A template's name. Those without are known by their place, and so are then the resources they compose.
pub(crate) fn template_name(template: &Value, index: usize) -> String {
    name(template).map_or_else(|| index.to_string(), str::to_owned)
}

fn name(template: &Value) -> Option<&str> {
    template.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())
}

/// Writes out what used to be implied.
fn modernise(template: &mut Value) {
    each(template, "patches", patch);
    each(template, "connectionDetails", connection_detail);
    // A base may say which namespace it is in, but never its name; that was ours to choose.
    if let Some(base) = template.get_mut("base").filter(|base| !meta::name(base).is_empty()) {
        meta::set(base, "name", Value::Null);
    }
}

fn each(object: &mut Value, list: &str, change: fn(&mut Map<String, Value>)) {
    let items = object.get_mut(list).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut).for_each(change);
}

/// Merge options became a policy for the target's path; a transform now names its type.
fn patch(patch: &mut Map<String, Value>) {
    if let Some(policy) = patch.get_mut("policy").and_then(Value::as_object_mut)
        && let Some(options) = policy.remove("mergeOptions").filter(|options| !options.is_null())
    {
        let is = |field| options.get(field).and_then(Value::as_bool).unwrap_or_default();
        let merge = match (is("keepMapValues"), is("appendSlice")) {
            (true, true) => "MergeObjectsAppendArrays",
            (true, false) => "MergeObjects",
            (false, true) => "ForceMergeObjectsAppendArrays",
            (false, false) => "ForceMergeObjects",
        };
        policy.entry("toFieldPath").or_insert_with(|| merge.into());
    }
    let transforms = patch.get_mut("transforms").and_then(Value::as_array_mut);
    for transform in transforms.into_iter().flatten().filter_map(Value::as_object_mut) {
        self::transform(transform);
    }
}

fn transform(transform: &mut Map<String, Value>) {
    if !transform.contains_key("type")
        && let Some(kind) = ["math", "map", "match", "string", "convert"]
            .into_iter()
            .find(|kind| transform.contains_key(*kind))
    {
        transform.insert("type".to_owned(), kind.into());
    }
    for (kind, implied) in [("math", "Multiply"), ("string", "Format")] {
        if let Some(options) = transform.get_mut(kind).and_then(Value::as_object_mut) {
            options.entry("type").or_insert_with(|| implied.into());
        }
    }
}

/// The type used to be told from the field that is set, and the name from the key.
fn connection_detail(detail: &mut Map<String, Value>) {
    let implied = [
        ("value", "FromValue"),
        ("fromConnectionSecretKey", "FromConnectionSecretKey"),
        ("fromFieldPath", "FromFieldPath"),
    ];
    if !detail.contains_key("type")
        && let Some((_, kind)) = implied.iter().find(|(field, _)| detail.contains_key(*field))
    {
        detail.insert("type".to_owned(), (*kind).into());
    }
    if !detail.contains_key("name")
        && let Some(key) = detail.get("fromConnectionSecretKey").cloned()
    {
        detail.insert("name".to_owned(), key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(resources: Value) -> Value {
        let Value::Array(resources) = resources else { panic!("templates are a list") };
        let spec = CompositionSpec { resources, ..CompositionSpec::default() };
        pipeline(&spec).unwrap().remove(0).input.unwrap()
    }

    #[test]
    fn what_was_implied_is_written_out() {
        let input = input(json!([{
            "base": {"apiVersion": "v1", "kind": "A", "metadata": {"name": "n"}},
            "patches": [
                {"fromFieldPath": "a", "policy": {"mergeOptions": {"appendSlice": true}},
                 "transforms": [{"string": {"fmt": "%s"}}, {"type": "map", "map": {}}]},
                {"policy": {"mergeOptions": {"keepMapValues": true}}},
                {"policy": {"fromFieldPath": "Required"}},
            ],
            "connectionDetails": [{"fromConnectionSecretKey": "k"}, {"name": "v", "value": "x"}],
        }]));
        assert_eq!(
            input["resources"][0],
            json!({
                "name": "0",
                "base": {"apiVersion": "v1", "kind": "A", "metadata": {}},
                "patches": [
                    {"fromFieldPath": "a", "policy": {"toFieldPath": "ForceMergeObjectsAppendArrays"},
                     "transforms": [{"type": "string", "string": {"type": "Format", "fmt": "%s"}}, {"type": "map", "map": {}}]},
                    {"policy": {"toFieldPath": "MergeObjects"}},
                    {"policy": {"fromFieldPath": "Required"}},
                ],
                "connectionDetails": [
                    {"type": "FromConnectionSecretKey", "name": "k", "fromConnectionSecretKey": "k"},
                    {"type": "FromValue", "name": "v", "value": "x"},
                ],
            })
        );
    }

    #[test]
    fn all_templates_have_names_or_none() {
        let spec = CompositionSpec {
            resources: vec![json!({"name": "a"}), json!({})],
            ..CompositionSpec::default()
        };
        assert!(pipeline(&spec).is_err());
    }
}
