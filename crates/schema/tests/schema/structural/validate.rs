//! Values against schemas: create, update with ratcheting, list types, formats.

use super::normalize::schema;
use super::tables::{Case, equal, run};
use serde_json::Value;
use transom_object::field::Path;
use transom_schema::validate::formats::Format;
use transom_schema::{structural, validate};

fn errors(new: &Value, old: Option<&Value>, doc: &Value) -> Vec<String> {
    let schema = schema(doc);
    validate::validate(new, old, &schema, &Path::root()).iter().map(ToString::to_string).collect()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|v| v.as_str().unwrap().to_owned()).collect()
}

/// Rows whose errors come from rules belong to CEL, not to value validation.
fn has_rules(doc: &Value) -> bool {
    doc.to_string().contains("x-kubernetes-validations")
}

#[test]
fn custom_resources() {
    run("schema-validation/validation/TestValidateCustomResource.tests.json", |case| {
        let doc = &case.inputs["schema"];
        let list = |name: &str| case.inputs[name].as_array().cloned().unwrap_or_default();
        let old_objects = list("oldObjects");
        for (i, object) in list("objects").iter().enumerate() {
            let found = errors(object, old_objects.get(i), doc);
            if !found.is_empty() {
                return Err(format!("{object} is valid, but: {found:?}"));
            }
        }
        for failing in list("failingObjects") {
            let old = failing.get("oldObject");
            let mut want = texts(&failing["expectErrs"]);
            if has_rules(doc) {
                want.retain(|e| !e.contains("rule"));
            }
            let mut got = errors(&failing["object"], old, doc);
            got.sort();
            want.sort();
            equal(&got, &want)?;
        }
        Ok(())
    });
}

#[test]
fn items_as_a_property() {
    run("schema-validation/validation/TestItemsProperty.tests.json", |case| {
        let found = errors(&case.inputs["object"], None, &case.inputs["schema"]);
        equal(&found.is_empty(), &case.want_err.is_null())
    });
}

#[test]
fn ratcheting_of_unchanged_objects() {
    run("schema-validation/metrics/TestMetrics.testCases.json", |case| {
        let unchanged = case.inputs["obj"] == case.inputs["old"];
        let found = errors(&case.inputs["obj"], Some(&case.inputs["old"]), &case.inputs["schema"]);
        equal(&found.is_empty(), &unchanged)
    });
}

#[test]
fn list_types() {
    run("listtype/validation/TestValidateListSetsAndMaps.tests.json", |case| {
        let found = validate::list_types(
            &case.inputs["obj"],
            None,
            &schema(&case.inputs["schema"]),
            &Path::new("root"),
        );
        let mut got: Vec<(String, String)> =
            found.iter().map(|e| (e.field.clone(), e.kind.reason().to_owned())).collect();
        let mut want = wanted(case);
        got.sort();
        want.sort();
        equal(&got, &want)
    });
}

/// The `{errorType, path}` rows of a case as field and reason.
pub(crate) fn wanted(case: &Case) -> Vec<(String, String)> {
    let rows = case.want_err.as_array().cloned().unwrap_or_default();
    rows.iter().map(|row| (path_text(&row["path"]), row["errorType"].as_str().unwrap().to_owned())).collect()
}

fn path_text(path: &Value) -> String {
    let parent = if path["parent"].is_object() { path_text(&path["parent"]) } else { String::new() };
    match (path["name"].as_str(), &path["index"]) {
        (Some(name), _) if parent.is_empty() => name.to_owned(),
        (Some(name), _) => format!("{parent}.{name}"),
        (None, index) => {
            format!("{parent}[{}]", index.as_str().map_or_else(|| index.to_string(), str::to_owned))
        }
    }
}

fn minor(version: &Value) -> u64 {
    version["components"][1].as_u64().unwrap()
}

#[test]
fn formats_and_the_version_that_introduced_them() {
    run("schema-validation/formats/TestRegistryFormats.supportedVersionedFormats.json", |case| {
        let introduced = minor(&case.inputs["introducedVersion"]);
        for name in case.inputs["formats"].as_object().unwrap().keys() {
            equal(&Format::introduced(name).map(u64::from), &Some(introduced))?;
        }
        Ok(())
    });
}

#[test]
fn unrecognized_formats() {
    run("schema-validation/formats/TestGetUnrecognizedFormats.testCases.json", |case| {
        let found = structural::unrecognized_formats(
            &case.inputs["schema"],
            minor(&case.inputs["compatibilityVersion"]) as u32,
        );
        equal(&found, &texts(&case.expected["expectedFormats"]))
    });
}

/// Until Kubernetes 1.35 unknown formats of strings are reported, from 1.36 on those of all types.
#[test]
fn unrecognized_formats_by_type() {
    let unknown = |schema: Value, minor| !structural::unrecognized_formats(&schema, minor).is_empty();
    let of = |ty: &str, format: &str| serde_json::json!({"type": ty, "format": format});
    for (schema, in_35, in_36) in [
        (of("string", "bogus"), true, true),
        (of("integer", "bogus"), false, true),
        (of("number", "int32"), false, true),
        (of("object", "date"), false, true),
        (serde_json::json!({"format": "bogus"}), false, true),
        (serde_json::json!({"format": "date"}), false, false),
        (of("integer", "int64"), false, false),
    ] {
        assert_eq!((unknown(schema.clone(), 35), unknown(schema.clone(), 36)), (in_35, in_36), "{schema}");
    }
}

/// The schema stands in upstream's test function, not in its table: `numArray` is a set.
#[test]
fn list_types_on_updates_of_the_status() {
    let doc = serde_json::json!({"type": "object", "properties": {"numArray":
        {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}}}});
    let table = "customresource-strategy/status_strategy/TestStatusStrategyValidateUpdate.tcs.json";
    run(table, |case| {
        let (new, old) = (&case.inputs["obj"], &case.inputs["old"]);
        let found = validate::list_types(new, Some(old), &schema(&doc), &Path::root());
        equal(&found.is_empty(), &(case.inputs["isValid"] == true))
    });
}

/// Formats of other types say nothing, and bounds must fit the format of their number.
#[test]
fn formats_of_numbers() {
    let wrong = |property: Value, value: Value| {
        let below = serde_json::json!({"type": "object", "additionalProperties": property});
        let doc = serde_json::json!({"type": "object", "properties": {"a": below}});
        errors(&serde_json::json!({"a": {"b": value}}), None, &doc)
    };
    let integer = |format: &str| serde_json::json!({"type": "integer", "format": format});
    for format in ["foo", "uint32", "date", "byte", "INT32", ""] {
        assert!(wrong(integer(format), i64::MAX.into()).is_empty(), "{format}");
        let found = wrong(integer(format), "x".into());
        assert_eq!(found, [r#"a.b: Invalid value: "string": a.b in body must be of type integer: "string""#]);
    }
    assert_eq!(
        wrong(integer("int32"), 2_147_483_648_u64.into()),
        [r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in a.b"#]
    );
    let bounded = serde_json::json!({"type": "integer", "format": "int32", "maximum": 2_147_483_648.0});
    let boundary = r#"<nil>: Invalid value: "": Maximum boundary value must be of type integer with format int32 in a.b"#;
    assert_eq!(wrong(bounded, 1.into()), [boundary]);
    let fraction = serde_json::json!({"type": "integer", "format": "int64", "minimum": 1.5});
    let found = wrong(fraction, (-3_000_000).into());
    assert_eq!(found[1], "a.b: Invalid value: -3e+06: a.b in body should be greater than or equal to 1.5");
    let number = serde_json::json!({"type": "number", "maximum": 2_147_483_647});
    let found = wrong(number, 3e9.into());
    assert_eq!(
        found,
        ["a.b: Invalid value: 3e+09: a.b in body should be less than or equal to 2.147483647e+09"]
    );
}
