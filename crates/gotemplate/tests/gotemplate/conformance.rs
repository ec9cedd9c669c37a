//! The conformance tables, where they are present: every case passes, or is listed with its reason.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use transom_gotemplate::{Functions, Limits, Options, Template, Type, Value};

const KNOWN: &str = include_str!("../known_differences.txt");

fn functions() -> Functions {
    let mut functions = Functions::default();
    functions.register("setResourceNameAnnotation", &[Type::Str], |_, args| {
        let name = args[0].as_str().map(|name| name.lossy().into_owned()).unwrap_or_default();
        Ok(Value::from(format!("gotemplating.fn.crossplane.io/composition-resource-name: {name}")))
    });
    functions
}

fn render(case: &Json, table: &Json) -> Result<String, String> {
    let functions = functions();
    let mut options =
        Options { functions: functions.names().map(str::to_owned).collect(), ..Options::default() };
    if let Some(option) = case["option"].as_str() {
        options.set(option).map_err(|error| error.to_string())?;
    }
    if let Some(delims) = case["delims"].as_array() {
        options.left_delimiter = delims[0].as_str().unwrap_or_default().to_owned();
        options.right_delimiter = delims[1].as_str().unwrap_or_default().to_owned();
    }
    let data = match &case["data"] {
        Json::Object(reference) if reference.contains_key("$shared") => {
            table["sharedData"][reference["$shared"].as_str().unwrap_or_default()].clone()
        }
        Json::Null if case.get("data").is_none() => table["data"].clone(),
        data => data.clone(),
    };
    let text = case["template"].as_str().unwrap_or_default();
    let template = Template::parse("manifests", text, &options).map_err(|error| error.to_string())?;
    template.execute(&Value::from(data), &functions, &Limits::default()).map_err(|error| error.to_string())
}

fn passes(case: &Json, table: &Json) -> Result<(), String> {
    let outcome = render(case, table);
    match (case["expected"].as_str(), case["wantErr"].as_str(), &outcome) {
        (Some(expected), None, Ok(text)) if expected == text => Ok(()),
        (_, Some(wanted), Err(problem)) if tail(wanted) == tail(problem) => Ok(()),
        (expected, wanted, _) => Err(format!("want {:?}, got {outcome:?}", expected.or(wanted))),
    }
}

/// The message without the place it happened at, which names the template.
fn tail(message: &str) -> &str {
    message.split_once(">: ").map_or(message, |(_, tail)| tail)
}

#[test]
fn every_case_passes_or_is_listed() {
    let Some(folder) = transom_testkit::tables::find("go-template") else { return };
    let mut known: BTreeMap<&str, &str> = KNOWN
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('\t'))
        .collect();
    let mut problems = Vec::new();
    for file in ["text-template.json", "sprig.json", "differential.json"] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let table: Json = serde_json::from_str(&text).unwrap();
        let cases = table["cases"].as_array().unwrap();
        let mut passed = 0;
        for case in cases {
            let name = case["name"].as_str().unwrap();
            match (passes(case, &table), known.remove(name)) {
                (Ok(()), None) => passed += 1,
                (Ok(()), Some(_)) => {
                    problems.push(format!("{file}: {name}: listed as different, but passes"));
                }
                (Err(_), Some(_)) => {}
                (Err(problem), None) => problems.push(format!("{file}: {name}: {problem}")),
            }
        }
        println!("{file}: {passed} of {}", cases.len());
    }
    problems.extend(known.keys().map(|name| format!("listed, but there is no such case: {name}")));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
