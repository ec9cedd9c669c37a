//! Targets that read values: ownership, patches, schemas.

use crate::fuzz::fuzz_values;
use serde_json::{Value, json};
use std::sync::Arc;
use transom_object::field::Path;
use transom_schema::own::{self, Context};
use transom_schema::rules::Rules;
use transom_schema::{Schema, normalize, patch, structural, validate};

/// A schema with every way of merging.
fn schema() -> Schema {
    let document = json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {
                "n": {"type": "integer"},
                "list": {
                    "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "required": ["name"], "properties": {
                        "name": {"type": "string"}, "value": {"type": "integer", "default": 1},
                    }},
                },
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "atomic": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "integer"}},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
                "either": {"x-kubernetes-int-or-string": true},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }},
        },
    });
    structural::parse(&document).expect("the schema is structural")
}

#[test]
fn ownership() {
    let schema = Arc::new(schema());
    let served = |version: &str| (version == "example.org/v1").then(|| Arc::clone(&schema));
    let context = Context {
        api_version: "example.org/v1",
        subresource: "",
        schema: &served,
        convert: &|object, version| {
            let mut object = object.clone();
            object.as_object_mut()?.insert("apiVersion".to_owned(), version.into());
            Some(object)
        },
        reset_fields: &|_| None,
        blank: None,
        now: "2026-01-01T00:00:00Z",
    };
    fuzz_values("ownership", |input| {
        let live = Some(&input["live"]).filter(|v| v.is_object());
        let (config, force) = (&input["config"], input["force"] == true);
        let manager = input["manager"].as_str().unwrap_or("m");
        // The server completes the metadata of what it is given; owners are kept there.
        if !config["metadata"].is_object() {
            return;
        }
        if let Ok(merged) = own::apply(&context, live, config, manager, force) {
            let again = own::apply(&context, Some(&merged), config, manager, force);
            assert_eq!(again.ok().as_ref(), Some(&merged), "applying again changes something");
        }
        let mut updated = config.clone();
        own::update(&context, live, &mut updated, manager);
        drop(own::extract(own::Type::object(&schema), &updated, manager, ""));
    });
}

#[test]
fn patches() {
    let schema = schema();
    fuzz_values("patches", |input| {
        let (document, change) = (&input["document"], &input["patch"]);
        drop(patch::json_patch(document, change));
        // A list that replaces an object keeps its nulls, as upstream's does, and loses them only the second time.
        if let Ok(merged) = patch::merge_patch(document, change).and_then(|m| patch::merge_patch(&m, change))
        {
            assert_eq!(patch::merge_patch(&merged, change).as_ref(), Ok(&merged), "merging once more");
        }
        drop(patch::strategic_merge_patch(document, change, &schema));
        let computed = patch::three_way(document, change, document);
        if let (Value::Object(_), Ok(merged)) = (change, patch::merge_patch(document, &computed)) {
            assert!(merged.is_object(), "{merged}");
        }
    });
}

#[test]
fn schemas() {
    fuzz_values("schemas", |input| {
        let (document, value) = (&input["schema"], &input["value"]);
        let path = Path::new("schema");
        let problems = structural::check(document, &path);
        let Ok(schema) = structural::parse(document) else { return };
        if !problems.is_empty() {
            return;
        }
        let mut pruned = value.clone();
        normalize::prune(&mut pruned, &schema, true);
        let mut again = pruned.clone();
        assert!(normalize::prune(&mut again, &schema, true).is_empty(), "pruning twice");
        assert_eq!(again, pruned);
        normalize::default(&mut again, &schema);
        let mut filled = again.clone();
        normalize::default(&mut filled, &schema);
        assert_eq!(filled, again, "defaulting twice");
        drop(validate::validate(&filled, None, &schema, &Path::root()));
        drop(validate::validate(&filled, Some(value), &schema, &Path::root()));
        let rules = Rules::build(&schema, true);
        if rules.errors().is_empty() {
            drop(rules.validate(&filled, Some(value), &Path::root()));
        }
    });
}
