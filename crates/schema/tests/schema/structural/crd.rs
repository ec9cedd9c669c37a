//! Schemas as CustomResourceDefinitions may write them.

use super::normalize::schema;
use super::tables::{equal, run};
use super::validate::wanted;
use serde_json::Value;
use transom_object::field::{self, Path};
use transom_schema::structural::field_path::{Brackets, resolve};
use transom_schema::structural::{self, Requirements};

const FOLDER: &str = "crd-validation/validation";

/// Errors as field and reason, without those that only compiling the rules can find.
fn without_compilation(errors: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    let compiled = |(field, reason): &(String, String)| {
        let rule = field.ends_with("].rule") && reason != "FieldValueRequired";
        let expression = field.ends_with("].messageExpression") && reason != "FieldValueRequired";
        let total_cost = field.ends_with("openAPIV3Schema") && reason == "FieldValueForbidden";
        rule || expression || total_cost || field.ends_with("].optionalOldSelf")
    };
    let mut kept: Vec<_> = errors.into_iter().filter(|e| !compiled(e)).collect();
    kept.sort();
    kept
}

fn found(errors: &[field::Error]) -> Vec<(String, String)> {
    without_compilation(errors.iter().map(|e| (e.field.clone(), e.kind.reason().to_owned())))
}

fn requirements(opts: &Value) -> Requirements {
    let says = |name: &str| opts[name] == true;
    Requirements {
        structural: says("requireStructuralSchema"),
        known_types: says("requireValidPropertyType"),
        pruned_defaults: says("requirePrunedDefaults"),
        atomic_set_items: says("requireAtomicSetType"),
        keyed_items: says("requireMapListKeysMapSetValidation"),
        no_defaults: (!says("allowDefaults")).then(String::new),
    }
}

fn check(doc: &Value, status: bool, path: &Path, required: &Requirements) -> Vec<field::Error> {
    let mut errors = structural::check_against(doc, path, required);
    if status {
        errors.extend(structural::check_status_root(doc, path));
    }
    errors
}

/// Some rows keep names of Go fields inside schemas; as a document they read otherwise.
fn document(go: &Value) -> Value {
    match go {
        Value::Object(fields) => match fields.get("JSONSchemas") {
            Some(several) => document(several),
            None => fields.iter().map(|(name, value)| (keyword(name), document(value))).collect(),
        },
        Value::Array(items) => items.iter().map(document).collect(),
        scalar => scalar.clone(),
    }
}

fn keyword(go: &str) -> String {
    match go {
        "XMapType" => "x-kubernetes-map-type".to_owned(),
        "XListType" => "x-kubernetes-list-type".to_owned(),
        "XListMapKeys" => "x-kubernetes-list-map-keys".to_owned(),
        "Type" => "type".to_owned(),
        other => other.to_owned(),
    }
}

#[test]
fn schemas_of_definitions() {
    run(&format!("{FOLDER}/TestValidateCustomResourceDefinitionValidation.tests.json"), |case| {
        let doc = &document(&case.inputs["input"]["OpenAPIV3Schema"]);
        if doc.is_null() {
            return equal(&wanted(case), &Vec::new());
        }
        let path = Path::new("spec.validation.openAPIV3Schema");
        let status = case.inputs["statusEnabled"] == true;
        let errors = check(doc, status, &path, &requirements(&case.inputs["opts"]));
        equal(&found(&errors), &without_compilation(wanted(case)))
    });
}

/// Only what these tables say about schemas; the rest of a definition is not the schema's business.
#[test]
fn definitions() {
    run(&format!("{FOLDER}/TestValidateCustomResourceDefinition.tests.json"), |case| {
        let spec = &case.inputs["resource"]["Spec"];
        let top = &spec["Validation"]["OpenAPIV3Schema"];
        let status = |of: &Value| of["Subresources"]["Status"].is_object();
        let required = Requirements::default();
        let mut errors = Vec::new();
        if !top.is_null() {
            let path = Path::new("spec.validation.openAPIV3Schema");
            errors.extend(check(top, status(spec), &path, &required));
        }
        for (i, version) in spec["Versions"].as_array().into_iter().flatten().enumerate() {
            let doc = &version["Schema"]["OpenAPIV3Schema"];
            if !doc.is_null() {
                let path = Path::new("spec.versions").index(i).child("schema.openAPIV3Schema");
                errors.extend(check(doc, status(spec) || status(version), &path, &required));
            }
        }
        let about_schemas = |(field, reason): &(String, String)| {
            field.contains("openAPIV3Schema")
                && !(field.ends_with("openAPIV3Schema") && reason == "FieldValueRequired")
        };
        let want = wanted(case).into_iter().filter(about_schemas);
        equal(&found(&errors), &without_compilation(want))
    });
}

#[test]
fn field_paths() {
    run(&format!("{FOLDER}/TestValidateFieldPath.tests.json"), |case| {
        let path = case.inputs["fieldPath"].as_str().unwrap();
        let problem = resolve(path, &schema(&case.inputs["schema"]), Brackets::Allowed).err();
        let problem = problem.map(|problem| problem.to_string());
        equal(&problem.as_deref(), &case.inputs["errMsg"].as_str())
    });
}

/// Keys of maps are written in brackets, and escape sequences are those of single-quoted strings.
#[test]
fn field_paths_below_maps() {
    let doc = serde_json::json!({"type": "object", "properties": {
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"in": {"type": "string"}}}},
        "any": {"type": "object", "additionalProperties": true},
    }});
    let found = |path: &str| {
        let found = resolve(path, &schema(&doc), Brackets::Allowed).map(|(path, _)| path.to_string());
        found.map_err(|problem| problem.to_string())
    };
    assert_eq!(found(".map.a").as_deref(), Ok("map[a]"));
    assert_eq!(found(".map['a.b'].in").as_deref(), Ok("map[a.b].in"));
    assert_eq!(found(".any['a']").as_deref(), Ok("any[a]"));
    assert_eq!(found(".any.a.b"), Err("does not refer to a valid field".to_owned()));
    assert_eq!(found(r#".map['a\"']"#), Err(r#"invalid string literal: invalid escape char \""#.to_owned()));
    assert_eq!(found(r".map['\'']").as_deref(), Ok("map[']"));
    // The last wrong escape is reported, and a backslash before a line break or at the end is none.
    assert_eq!(found(r".map['\x\y']"), Err(r"invalid string literal: invalid escape char \y".to_owned()));
    assert_eq!(found(".map['a\\\nb']").as_deref(), Ok("map[a\\\nb]"));
    assert_eq!(found(r".map['a\'"), Err("unexpected end of JSON path".to_owned()));
}

/// The path as the innermost name and its parents.
fn names(path: &Value) -> String {
    let parent = path.get("parent").map(names).unwrap_or_default();
    let text = |field: &str| path[field].as_str().filter(|text| !text.is_empty());
    match (text("name"), text("index")) {
        (Some(name), _) if parent.is_empty() => name.to_owned(),
        (Some(name), _) => format!("{parent}.{name}"),
        (None, Some(key)) => format!("{parent}[{key}]"),
        (None, None) => parent,
    }
}

/// Rules name fields in the same way; errors differ in their words only. Where the row gives neither a path nor
/// an error, only the verdict of the original test function is known: such a path is accepted.
#[test]
fn field_paths_of_rules() {
    run("cel/crd-validation/validation/TestValidateFieldPath.tests.json", |case| {
        let path = case.inputs["fieldPath"].as_str().unwrap();
        let schema = schema(&case.inputs["schema"]);
        match (resolve(path, &schema, Brackets::Allowed), case.inputs["errDetail"].as_str()) {
            (Err(problem), Some(wanted)) if problem.to_string().contains(wanted) => Ok(()),
            (Ok((found, _)), None) if case.inputs["validFieldPath"].is_object() => {
                equal(&found.to_string(), &names(&case.inputs["validFieldPath"]))
            }
            (Ok(_), None) => Ok(()),
            (other, wanted) => Err(format!("{path}: {other:?}, wanted {wanted:?}")),
        }
    });
}

#[test]
fn completeness() {
    run("structural-schema/validation/TestValidateStructuralCompleteness.testCases.json", |case| {
        // An option that custom resource definitions never set.
        if case.inputs["options"].is_object() {
            return Ok(());
        }
        let found = structural::incomplete(&case.inputs["schema"], &Path::root());
        let got: Vec<String> = found.iter().map(ToString::to_string).collect();
        equal(&got, &case.want_err.as_str().map(str::to_owned).into_iter().collect())
    });
}
