//! Metadata of resources, embedded and at the root.

use super::normalize::schema;
use super::tables::{equal, json_text, run};
use super::validate::wanted;
use serde_json::{Value, json};
use transom_object::field::Path;
use transom_schema::normalize::{MalformedFields, coerce_metadata};
use transom_schema::validate;

fn malformed(drop: &Value) -> MalformedFields {
    if *drop == true { MalformedFields::Drop } else { MalformedFields::Refuse }
}

#[test]
fn coercion() {
    run("embedded-objectmeta/algorithm/TestCoerce.tests.json", |case| {
        let mut value = json_text(&case.inputs["json"]);
        let is_root = case.inputs["includeRoot"] == true;
        let malformed = malformed(&case.inputs["dropInvalidFields"]);
        let result = coerce_metadata(&mut value, &schema(&case.inputs["schema"]), is_root, malformed);
        equal(&result.is_err(), &(!case.want_err.is_null()))?;
        equal(&value, &json_text(&case.expected["expected"]))
    });
}

#[test]
fn reading_object_meta() {
    run("embedded-objectmeta/coerce/TestGetObjectMetaWithOptions.testcases.json", |case| {
        let mut object = case.inputs["obj"].clone();
        let malformed = malformed(&case.inputs["dropMalformedFields"]);
        match coerce_metadata(&mut object, &schema(&json!({})), true, malformed) {
            Err(e) => equal(&e.detail, &case.want_err.as_str().unwrap_or("no error").to_owned()),
            Ok(unknown) => {
                equal(&object["metadata"], &case.expected["expectedObject"])?;
                if case.inputs["returnUnknownFieldPaths"] != true {
                    return Ok(());
                }
                let want = case.expected["expectedUnknownPaths"].as_array().cloned().unwrap_or_default();
                equal(&unknown, &want.iter().map(|v| v.as_str().unwrap().to_owned()).collect())
            }
        }
    });
}

#[test]
fn embedded_resources() {
    run("embedded-objectmeta/validation/TestValidateEmbeddedResource.tests.json", |case| {
        let found = validate::embedded(&case.inputs["object"], &schema(&json!({})), true, &Path::root());
        let mut got: Vec<_> = found.iter().map(|e| (e.field.clone(), e.kind.reason().to_owned())).collect();
        let mut want = wanted(case);
        got.sort();
        want.sort();
        equal(&got, &want)
    });
}

/// The schema stands in upstream's test function, not in its table.
#[test]
fn resources_throughout_a_value() {
    let resource = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true});
    let schema = schema(&json!({"type": "object", "properties": {
        "embedded": resource,
        "nested": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"embedded": resource}},
        "items": {"type": "array", "items": resource},
        "additionalProperties": {"type": "object", "additionalProperties": resource},
    }}));
    run("embedded-objectmeta/validation/TestValidate.tests.json", |case| {
        let object = json_text(&case.inputs["object"]);
        let found = validate::embedded(&object, &schema, case.inputs["includeRoot"] == true, &Path::root());
        let mut got: Vec<_> = found.iter().map(|e| (e.field.clone(), e.kind.reason().to_owned())).collect();
        let mut want = wanted(case);
        got.sort();
        want.sort();
        equal(&got, &want)
    });
}
