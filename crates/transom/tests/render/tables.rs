//! Tables of the real command line's own unit tests, when they are at hand: how `render` is called wrongly, and the
//! defaults that a definition gives a composite resource.

use super::fixtures::Files;
use serde_json::{Value, json};

/// The cases of a table; none when the tables are not at hand.
fn cases(table: &str) -> Vec<Value> {
    transom_testkit::tables::cases(&format!("crossplane/{table}"))
}

/// The fixture that a Go variable such as `xrWithSelectorYAML` holds.
fn fixture(variable: &str) -> String {
    let stem = variable.trim_end_matches("YAML");
    stem.chars().fold(String::new(), |name, c| match c.is_uppercase() {
        true => name + "-" + &c.to_lowercase().to_string(),
        false => name + &c.to_string(),
    })
}

/// What a literal in a table says: a text, the items of a list.
fn texts(literal: &Value) -> Vec<&str> {
    match literal {
        Value::String(text) => vec![text],
        other => other["items"].as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
    }
}

#[test]
fn wrong_calls_are_refused() {
    let flags = [
        ("FunctionAnnotations", "--function-annotations"),
        ("XRD", "--xrd"),
        ("FunctionCredentials", "--function-credentials"),
        ("ObservedResources", "--observed-resources"),
        ("RequiredResources", "--required-resources"),
        ("ExtraResources", "--extra-resources"),
    ];
    let fixtures = "render/crossplane+cli-fixtures/render/xr/testdata/cmd";
    let Some(given) = transom_testkit::tables::find(fixtures) else { return };
    let read = |name: &str| std::fs::read_to_string(given.join(format!("{name}.yaml"))).expect("a fixture");
    for case in cases("cli-literals/render-xr-cmd.TestCmdRun.json") {
        // The older mode is run here.
        if case["name"] == "NotPipelineMode" {
            continue;
        }
        let call = &case["value"]["fields"]["args"]["fields"]["cmd"]["fields"];
        let files = Files::new();
        for name in ["xr", "composition", "functions"] {
            files.write(&format!("{name}.yaml"), &read(name));
        }
        for (name, text) in call["fs"]["args"][0]["fields"].as_object().into_iter().flatten() {
            match text["$id"].as_str() {
                Some(variable) => files.write(name, &read(&fixture(variable))),
                None => files.write(name, text.as_str().expect("a text")),
            };
        }
        let mut arguments: Vec<&str> =
            ["CompositeResource", "Composition", "Functions"].map(|field| texts(&call[field])[0]).into();
        for (field, flag) in flags {
            for value in texts(&call[field]) {
                arguments.extend([flag, value]);
            }
        }
        let (said, code) = files.fail(&arguments);
        let wanted = match case["name"].as_str() {
            Some("MatchLabelMissing") => "is missing required label",
            Some("InvalidAnnotationOverride") => "not-a-key-value",
            _ => "missing.yaml",
        };
        assert!(code != 0 && said.contains(wanted), "{}: {said}", case["name"]);
    }
}

#[test]
fn defaults_are_those_of_the_definition() {
    for case in cases("cli/pkg_xr/xrd/TestApplyCRDDefaults.json") {
        // Versions that are not there are an error of `render`, which `mistakes` shows.
        if !case["wantErr"].is_null() {
            continue;
        }
        let schema = case["inputs"]["crd"].pointer("/spec/versions/0/schema/openAPIV3Schema");
        let schema = transom_schema::structural::parse(schema.expect("a schema")).expect("it is structural");
        let mut xr = case["inputs"]["xr"].clone();
        transom_schema::normalize::default(&mut xr, &schema);
        assert_eq!(xr, case["expected"], "{}", case["name"]);
    }
}

#[test]
fn variables_name_fixtures() {
    assert_eq!(fixture("xrWithSelectorYAML"), "xr-with-selector");
    assert_eq!(texts(&json!({"items": ["a", "b"]})), ["a", "b"]);
}
