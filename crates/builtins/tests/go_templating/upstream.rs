//! The original's own tables, and calls recorded from it. Compared is the whole answer, but for what we add below the
//! first line of a fatal message.

use serde::Deserialize;
use serde_json::Value;
use transom_builtins::GoTemplating;
use transom_function::{RunFunctionRequest, RunFunctionResponse};

/// `case<TAB>reason` of every case in which we differ.
const KNOWN: &str = include_str!("known_differences.txt");

/// Tables of a folder, each with its name; none when the folder is not there.
fn tables(folder: &str) -> Vec<(String, Value)> {
    let folder = transom_testkit::tables::find(&format!("functions/{folder}"));
    let mut files: Vec<_> = folder
        .into_iter()
        .flat_map(|folder| folder.read_dir().expect("a folder").flatten())
        .map(|file| file.path())
        .collect();
    files.sort();
    let table = |file: &std::path::PathBuf| {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, serde_json::from_slice(&std::fs::read(file).expect("a file")).expect("JSON"))
    };
    files.iter().map(table).collect()
}

fn expected(response: &Value) -> Value {
    super::to_json(&RunFunctionResponse::deserialize(response).expect("a response"))
}

/// Cuts what we add to a message.
fn first_lines(mut response: Value) -> Value {
    for result in response["results"].as_array_mut().into_iter().flatten() {
        if result["severity"] == "SEVERITY_FATAL"
            && let Some(first) = result["message"].as_str().and_then(|message| message.lines().next())
        {
            result["message"] = first.into();
        }
    }
    response
}

fn differs(function: &GoTemplating, request: &Value, response: &Value) -> Option<String> {
    let request = RunFunctionRequest::deserialize(request).expect("a request");
    let ours = first_lines(super::to_json(&super::call(function, request)));
    let theirs = first_lines(expected(response));
    (ours != theirs).then(|| format!("theirs {theirs}\nours   {ours}"))
}

/// Holds the failures to the list of known ones.
fn judge(table: &str, passed: usize, failures: &[(String, String)]) {
    let known: Vec<&str> = KNOWN
        .lines()
        .filter_map(|line| line.split_once('\t')?.0.strip_prefix(table)?.strip_prefix('/'))
        .collect();
    let unknown: Vec<_> = failures.iter().filter(|(name, _)| !known.contains(&name.as_str())).collect();
    let shown: Vec<_> =
        unknown.iter().take(5).map(|(name, problem)| format!("{table}/{name}\n{problem}")).collect();
    assert!(unknown.is_empty(), "{} of {}: {}", unknown.len(), passed + failures.len(), shown.join("\n\n"));
    for name in known {
        assert!(
            failures.iter().any(|(failed, _)| failed == name),
            "{table}/{name} passes: take it off the list"
        );
    }
}

#[test]
fn recorded_calls_are_answered_alike() {
    let function = GoTemplating::default();
    let (mut passed, mut failures) = (0, Vec::new());
    for (_, table) in tables("recorded/function-go-templating") {
        for case in table["cases"].as_array().unwrap() {
            let name = case["name"].as_str().unwrap().to_owned();
            match differs(&function, &case["request"], &case["response"]) {
                Some(problem) => failures.push((name, problem)),
                None => passed += 1,
            }
        }
    }
    if transom_testkit::tables::find("functions").is_some() {
        judge("recorded", passed, &failures);
        assert!(passed > 0);
    }
}

#[test]
fn the_originals_table_of_calls_holds() {
    let templates = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/go_templating");
    let (mut passed, mut failures) = (0, Vec::new());
    for (_, table) in tables("function-go-templating/fn") {
        for case in table["cases"].as_array().unwrap() {
            let name = case["name"].as_str().unwrap().to_owned();
            let inputs = &case["inputs"];
            let mut function = GoTemplating::default().with_files_below(templates);
            if let Some(folder) = inputs["defaultSource"].as_str() {
                function = function.with_default_source(folder);
            }
            if let Some(options) = inputs["defaultOptions"].as_str() {
                function = function.with_default_options(options);
            }
            match differs(&function, &inputs["req"], &case["expected"]["rsp"]) {
                Some(problem) => failures.push((name, problem)),
                None => passed += 1,
            }
        }
    }
    if transom_testkit::tables::find("functions").is_some() {
        judge("fn", passed, &failures);
        assert!(passed > 0);
    }
}
