//! The original's tables of its parts, if `../shared/conformance` is available, and rows of our own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use transom_gotemplate::Value as Go;
use transom_object::field::Path;

use super::document::{Document, Numbers, to_go, to_json};
use super::input::{Convert, Patch, Resources, SecretRef, Transform};
use super::patches::{Patcher, inlined};
use super::transforms::{self, Join};
use super::{connection, readiness, validate};
use crate::strict;

/// What a row yields: a value, or the words of an error.
type Outcome = Result<Value, String>;

fn typed<T: DeserializeOwned>(json: &Value) -> T {
    strict::value(json).unwrap_or_else(|e| panic!("{json}: {e}"))
}

/// A value whose numbers are integers unless they have a point; `{"$go": "int"}` is one of Go's other integers.
fn go(json: &Value) -> Go {
    match json.get("$go").and_then(Value::as_str) {
        Some("int") => Go::int(json["value"].as_i64().unwrap()),
        _ => to_go(json, Numbers::Integers),
    }
}

fn document(json: &Value) -> Document<'static> {
    Document::new(json.clone(), Numbers::Integers)
}

fn outcome_as_json(result: Result<Go, String>) -> Outcome {
    to_json(&result?)
}

fn one_transform(transform: &Value, input: &Value) -> Outcome {
    let words =
        |e: String| e.split_once(" transform could not resolve: ").map_or(e.clone(), |(_, e)| e.to_owned());
    outcome_as_json(transforms::resolve(&[typed(transform)], go(input), Join::Function)).map_err(words)
}

fn checked(outcome: validate::Checked) -> Outcome {
    outcome.map(|()| Value::Null).map_err(|e| e.to_string())
}

fn renamed(input: &Value, names: &[(&str, &str)]) -> Value {
    let present = names.iter().filter(|(name, _)| !input[*name].is_null());
    present.map(|(name, field)| ((*field).to_owned(), input[*name].clone())).collect()
}

fn patched(input: &Value) -> Outcome {
    let (from, mut to) = (document(&input["from"]), document(&input["to"]));
    let applied = Patcher::new(Join::Function).apply(&typed::<Patch>(&input["p"]), &from, &mut to);
    applied.map_err(|e| e.to_string())?;
    Ok(json!({"to": to.into_value()}))
}

fn conversion(input: &Value) -> Outcome {
    let sample = match input["from"].as_str().unwrap() {
        "string" => Go::str("1"),
        "bool" => Go::Bool(true),
        "int" => Go::int(1),
        "int64" => Go::int64(1),
        _ => Go::Float(1.0),
    };
    match transforms::converted(&typed::<Convert>(&input["ct"]), sample) {
        Err(words) if words.contains("not supported") => Err(words),
        _ => Ok(Value::Null),
    }
}

fn templates(input: &Value) -> Outcome {
    let resources = renamed(input, &[("cts", "resources"), ("pss", "patchSets")]);
    let inlined = inlined(&typed::<Resources>(&resources)).map_err(|e| e.to_string()).map(|templates| {
        templates
            .into_iter()
            .map(|patches| patches.into_iter().cloned().collect())
            .collect::<Vec<Vec<Patch>>>()
    })?;
    // Told by where they read, which is what the rows differ in.
    let paths =
        |patches: &Vec<Patch>| patches.iter().map(|patch| patch.source_path().to_owned()).collect::<Value>();
    Ok(inlined.iter().map(paths).collect())
}

fn secret_place(input: &Value) -> Outcome {
    let to = (!input["input"].is_null()).then(|| typed::<SecretRef>(&input["input"]));
    let mut patcher = Patcher::new(Join::Function);
    let (name, namespace) =
        connection::place(&document(&input["xr"]["Resource"]), to.as_ref(), &mut patcher)?;
    Ok(json!({"ref": {"name": name, "namespace": namespace}}))
}

fn details(input: &Value) -> Outcome {
    let secret: BTreeMap<String, String> = typed(&input["data"]);
    let secret = secret.into_iter().map(|(key, value)| (key, value.into_bytes())).collect();
    let found = connection::extract(&document(&input["cd"]), &secret, &typed::<Vec<_>>(&input["cfg"]))?;
    let text = |value: Vec<u8>| Value::String(String::from_utf8(value).unwrap());
    Ok(
        json!({"conn": found.into_iter().map(|(key, value)| (key, text(value))).collect::<serde_json::Map<_, _>>()}),
    )
}

/// What a row of a table yields here, in the shape of what it expects.
fn outcome(table: &str, input: &Value) -> Outcome {
    let output = |outcome: Outcome| outcome.map(|value| json!({"o": value}));
    match table {
        "TestMathResolve" => {
            let names = [
                ("mathType", "type"),
                ("multiplier", "multiply"),
                ("clampMin", "clampMin"),
                ("clampMax", "clampMax"),
            ];
            output(one_transform(&json!({"type": "math", "math": renamed(input, &names)}), &input["i"]))
        }
        "TestMapResolve" => {
            let pairs = if input["t"].is_null() { json!({}) } else { input["t"].clone() };
            output(one_transform(&json!({"type": "map", "map": pairs}), &input["i"]))
        }
        "TestMatchResolve" => {
            output(one_transform(&json!({"type": "match", "match": input["t"]}), &input["i"]))
        }
        "TestStringResolve" => {
            let names = ["convert", "trim", "join", "regexp", "replace"].map(|name| (name, name));
            let mut string = renamed(input, &names);
            string["type"] = input["stype"].clone();
            string["fmt"] = input["fmts"].clone();
            output(one_transform(&json!({"type": "string", "string": string}), &input["i"]))
        }
        "TestConvertResolve" => {
            let convert = renamed(input, &[("to", "toType"), ("format", "format")]);
            output(one_transform(&json!({"type": "convert", "convert": convert}), &input["i"]))
        }
        "TestConvertTransformGetConversionFunc" => conversion(input),
        "TestResolveTransforms" => {
            let transforms: Vec<Transform> = typed(&input["ts"]);
            let resolved = transforms::resolve(&transforms, go(&input["input"]), Join::Function);
            outcome_as_json(resolved).map(|value| json!({"output": value}))
        }
        "TestApplyFromFieldPathPatch" | "TestApplyCombineFromVariablesPatch" => patched(input),
        "TestComposedTemplates" => templates(input),
        "TestIsReady" => {
            let ready = readiness::is_ready(&document(&input["o"]), &typed::<Vec<_>>(&input["rc"]))?;
            Ok(if ready { json!({"ready": true}) } else { Value::Null })
        }
        "TestExtractConnectionDetails" => details(input),
        "TestGetConnectionSecretRef" => secret_place(input),
        "TestSupportsConnectionDetails" => {
            let supported = connection::is_supported(&document(&input["xr"]["Resource"]));
            Ok(if supported { json!({"supportsConnectionDetails": true}) } else { Value::Null })
        }
        "TestValidateCombine" => checked(validate::combine(&typed(&input["combine"]), &Path::root())),
        "TestValidateConnectionDetail" => {
            checked(validate::connection_detail(&typed(&input["cd"]), &Path::root()))
        }
        "TestValidatePatch" => {
            checked(validate::patch(&typed(&input["patch"]), &Path::root(), validate::PatchOwner::Resource))
        }
        "TestValidateReadinessCheck" => {
            checked(validate::readiness_check(&typed(&input["r"]), &Path::root()))
        }
        "TestValidateTransform" => checked(validate::transform(&typed(&input["transform"]), &Path::root())),
        other => panic!("no test runs the table {other}"),
    }
}

/// Fails unless an outcome is the one expected. Of field errors only what and where is compared, as upstream does.
fn judge(case: &Value, outcome: Outcome) -> Result<(), String> {
    let expected = &case["expected"];
    let wanted = if case["wantErr"].is_null() { &expected["output"] } else { &case["wantErr"] };
    match (wanted["$error"].as_str(), outcome) {
        (Some("*"), Err(_)) => Ok(()),
        (Some(_), Err(words)) if wanted["field"].is_string() => {
            let (field, kind) = (wanted["field"].as_str().unwrap(), wanted["type"].as_str().unwrap());
            let found = words.starts_with(&format!("{field}: {kind}"));
            if found { Ok(()) } else { Err(format!("{words:?}, not {wanted}")) }
        }
        (Some(text), Err(words)) if text == words => Ok(()),
        (None, Ok(value)) => {
            let mut expected =
                if expected["ct"].is_array() { paths(&expected["ct"]) } else { expected.clone() };
            if expected["o"]["$go"].is_string() {
                expected["o"] = expected["o"]["value"].take();
            }
            if value == expected { Ok(()) } else { Err(format!("{value}, not {expected}")) }
        }
        (_, outcome) => Err(format!("{outcome:?}, not {wanted} or {expected}")),
    }
}

fn paths(templates: &Value) -> Value {
    let patches = |template: &Value| {
        template["patches"].as_array().unwrap().iter().map(|p| p["fromFieldPath"].clone()).collect()
    };
    templates.as_array().unwrap().iter().map(patches).collect::<Vec<Value>>().into()
}

#[test]
fn the_originals_tables() {
    let Some(root) = transom_testkit::tables::find("patch-and-transform") else { return };
    let folders = ["connection", "patches", "ready", "transforms", "validate"];
    let (mut rows, mut failures) = (0, Vec::new());
    for folder in folders.map(|folder| root.join(folder)) {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let table: Value = serde_json::from_slice(&std::fs::read(entry.path()).unwrap()).unwrap();
            let name = table["table"].as_str().unwrap();
            for case in table["cases"].as_array().unwrap() {
                rows += 1;
                if let Err(why) = judge(case, outcome(name, &case["inputs"])) {
                    failures.push(format!("{name}/{}: {why}", case["name"]));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} of {rows} rows:\n{}", failures.len(), failures.join("\n"));
    assert!(rows > 0);
}
