//! Our own table: templates with the answers Go gave, so that no Go is needed to check them.
//! `conformance/gotemplate/run --record` rewrites it.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use transom_gotemplate::{Functions, Limits, Options, Template, Value, native_names};

fn table() -> Json {
    serde_json::from_str(include_str!("../recorded.json")).unwrap_or_default()
}

fn render(case: &Json, data: &Json) -> Result<String, String> {
    let mut options = Options::default();
    if let Some(option) = case["option"].as_str() {
        options.set(option).map_err(|error| error.to_string())?;
    }
    let text = case["template"].as_str().unwrap_or_default();
    let template = Template::parse("manifests", text, &options).map_err(|error| error.to_string())?;
    template
        .execute(&Value::from(data), &Functions::default(), &Limits::default())
        .map_err(|error| error.to_string())
}

#[test]
fn renders_what_go_renders() {
    let table = table();
    let mut wrong = Vec::new();
    for case in table["cases"].as_array().unwrap() {
        let outcome = render(case, &table["data"]);
        let fails = case["error"].is_string();
        match &outcome {
            Err(_) if fails => {}
            Ok(text) if !fails && text == case["output"].as_str().unwrap_or_default() => {}
            _ => wrong.push(format!("{case}\n  got {outcome:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn words_nearly_every_error_as_go_does() {
    let table = table();
    let failing: Vec<&Json> =
        table["cases"].as_array().unwrap().iter().filter(|case| case["error"].is_string()).collect();
    let same = failing.iter().filter(|case| {
        render(case, &table["data"]).is_err_and(|problem| Some(problem.as_str()) == case["error"].as_str())
    });
    let same = same.count();
    assert!(same * 100 >= failing.len() * 97, "{same} of {} errors are worded the same", failing.len());
}

#[test]
fn every_function_has_a_case() {
    let table = table();
    let used: BTreeSet<String> = table["cases"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|case| {
            case["template"].as_str().unwrap().split(|rune: char| !rune.is_alphanumeric() && rune != '_')
        })
        .map(str::to_owned)
        .collect();
    // Ours alone, tested beside the engine.
    let missing: Vec<&str> =
        native_names().filter(|name| !used.contains(*name) && *name != "randomChoice").collect();
    assert!(missing.is_empty(), "no recorded case calls {missing:?}");
}

/// What the language consists of, as it stands in a template.
const FEATURES: [&str; 42] = [
    "{{if ",
    "{{else}}",
    "{{else if ",
    "{{range ",
    "range $k, $v := ",
    "range $v := ",
    "{{range 3",
    "{{break}}",
    "{{continue}}",
    "{{with ",
    "{{else with ",
    "{{define ",
    "{{template ",
    "{{block ",
    "{{/*",
    "{{- ",
    " -}}",
    ":= ",
    " = ",
    "$.",
    "| ",
    ".spec.image",
    "(index .ports 1).port",
    ".Weekday",
    "'a'",
    "`raw",
    "0x10",
    "0b11",
    "0o17",
    "1_000",
    "1e6",
    "nil",
    "and ",
    "or ",
    "not ",
    "eq ",
    "lt ",
    "index ",
    "slice ",
    "len ",
    "printf ",
    "urlquery ",
];

#[test]
fn every_feature_of_the_language_has_a_case_that_renders() {
    let table = table();
    let cases = table["cases"].as_array().unwrap();
    let rendered = cases.iter().filter(|case| case.get("error").is_none());
    let rendered: Vec<&str> = rendered.filter_map(|case| case["template"].as_str()).collect();
    let missing: Vec<&&str> =
        FEATURES.iter().filter(|feature| !rendered.iter().any(|text| text.contains(**feature))).collect();
    assert!(missing.is_empty(), "no recorded case that renders has {missing:?}");
    for option in ["missingkey=zero", "missingkey=error"] {
        assert!(cases.iter().any(|case| case["option"] == option), "{option}");
    }
}
