//! The built-ins against calls of the genuine functions: what they were asked and what they answered.
//!
//! Three kinds of data: `generated`, answers to questions of `examples/differential`, in this repository; and, beside it
//! and optional, `recorded`, calls observed while whole compositions were rendered, and `tables`, the originals' own
//! unit tests. Every function is replayed that [`transom_builtins::find`]
//! finds. A case that differs must be in `known_differences.txt` with its reason, and one that is listed must differ.

mod compare;
mod known;
pub(crate) mod normal;

use compare::compare;
use known::Known;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use transom_builtins::{find, names};
use transom_function::{RunFunctionRequest, answer};
use transom_testkit::tables;

/// One call of a function.
struct Call {
    function: String,
    name: String,
    request: Value,
    response: Value,
}

fn read(file: &Path) -> Value {
    let bytes = std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// The calls recorded of a function.
fn recorded(function: &str) -> Vec<Call> {
    let Some(folder) = tables::find("functions/recorded") else { return Vec::new() };
    calls_in(function, &files(&folder.join(function)))
}

/// The generated questions with the genuine answers.
fn generated(function: &str) -> Vec<Call> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/recorded/{function}.json"));
    calls_in(function, &[file].into_iter().filter(|file| file.exists()).collect::<Vec<_>>())
}

fn calls_in(function: &str, files: &[PathBuf]) -> Vec<Call> {
    let mut calls = Vec::new();
    for file in files {
        for case in read(file)["cases"].as_array().into_iter().flatten() {
            calls.push(Call {
                function: function.to_owned(),
                name: format!("{}/{}", file.file_stem().unwrap().display(), case["name"].as_str().unwrap()),
                request: case["request"].clone(),
                response: case["response"].clone(),
            });
        }
    }
    calls
}

/// The calls in a function's own unit tests.
fn tables(function: &str) -> Vec<Call> {
    let Some(root) = tables::find("") else { return Vec::new() };
    let mut found = vec![root.join("functions").join(function).join("fn/TestRunFunction.json")];
    if function == "function-patch-and-transform" {
        found.push(root.join("patch-and-transform/fn/TestRunFunction.json"));
    }
    let mut calls = Vec::new();
    for file in found.iter().filter(|file| file.exists()) {
        for case in read(file)["cases"].as_array().into_iter().flatten() {
            // Rows that expect a failed call have no response.
            if case["expected"]["rsp"].is_object() {
                calls.push(Call {
                    function: function.to_owned(),
                    name: format!("table/{}", case["name"].as_str().unwrap()),
                    request: case["inputs"]["req"].clone(),
                    response: case["expected"]["rsp"].clone(),
                });
            }
        }
    }
    calls
}

/// Calls a built-in as a server would, and says how its answer differs.
fn replay(call: &Call) -> Result<(), String> {
    let function = find(&call.function).ok_or("there is no such built-in")?;
    let request = if call.request.is_null() { json!({}) } else { call.request.clone() };
    let request: RunFunctionRequest = serde_json::from_value(request).map_err(|e| e.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| e.to_string())?;
    let response = runtime.block_on(answer(&*function, request)).map_err(|e| e.to_string())?;
    compare(&call.response, &serde_json::to_value(response).map_err(|e| e.to_string())?)
}

fn hold(calls: &[Call], known: &mut Known) {
    for call in calls {
        known.judge(&format!("{}/{}", call.function, call.name), replay(call));
    }
}

#[test]
fn answers_are_those_of_the_genuine_functions() {
    let mut known = Known::read(include_str!("known_differences.txt"));
    let mut total = 0;
    for function in names() {
        let calls: Vec<Call> = recorded(function).into_iter().chain(tables(function)).collect();
        total += calls.len();
        hold(&calls, &mut known);
    }
    known.verdict(total > 0);
    assert!(total > 0 || tables::find("functions").is_none());
}

#[test]
fn generated_questions_are_answered_alike() {
    let mut known = Known::read("");
    for function in names() {
        hold(&generated(function), &mut known);
    }
    known.verdict(true);
    assert!(!generated("function-patch-and-transform").is_empty());
}

#[test]
fn differences_are_noticed() {
    let call = |response: Value| Call {
        function: "function-patch-and-transform".to_owned(),
        name: String::new(),
        request: json!({"meta": {"tag": "t"}, "input": {"nonsense": 1}}),
        response,
    };
    let result = |message: &str| json!({"severity": "SEVERITY_FATAL", "message": message, "target": "TARGET_COMPOSITE"});
    let response = |result: Value| json!({"meta": {"tag": "t", "ttl": "60s"}, "results": [result]});
    assert_eq!(replay(&call(response(result("cannot get Function input: why ever")))), Ok(()));
    assert!(replay(&call(response(result("cannot get input: why ever")))).is_err());
    assert!(replay(&call(json!({"meta": {"tag": "t", "ttl": "60s"}}))).is_err());
}
