//! The example in each function's documentation, run through the function: a step of a pipeline, what it is given and
//! what it answers.

use serde::Deserialize;
use serde_json::{Value, json};
use transom_builtins::find;
use transom_function::{RunFunctionRequest, answer};
use transom_object::yaml;

const DOCUMENTED: [&str; 11] = [
    "auto-ready",
    "cel-filter",
    "cidr",
    "dummy",
    "environment-configs",
    "extra-resources",
    "go-templating",
    "patch-and-transform",
    "sequencer",
    "status-transformer",
    "tag-manager",
];

/// The blocks of YAML in a page.
fn blocks(page: &str) -> Vec<Value> {
    let fenced = page.split("```yaml\n").skip(1);
    fenced.map(|rest| yaml::read(rest.split("```").next().unwrap()).unwrap()).collect()
}

#[tokio::test]
async fn examples_are_answered_as_documented() {
    for name in DOCUMENTED {
        let path = format!("{}/../../docs/functions/{name}.md", env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let [step, given, expected] = &blocks(&page)[..] else { panic!("{path} does not have three blocks") };
        let function = step[0]["functionRef"]["name"].as_str().unwrap();
        assert_eq!(function, format!("function-{name}"));
        let mut request = given.clone();
        request["input"] = step[0]["input"].clone();
        let request = RunFunctionRequest::deserialize(&request).unwrap();
        let response = answer(&*find(function).unwrap(), request).await.unwrap();
        let mut response = serde_json::to_value(response).unwrap();
        response.as_object_mut().unwrap().remove("meta");
        // What a function has nothing to say about is left out of the example.
        let said = |part: &Value| part.as_object().is_none_or(|part| !part.is_empty());
        response.as_object_mut().unwrap().retain(|_, part| said(part));
        assert_eq!(response, *expected, "{name}");
    }
}

#[test]
fn blocks_are_found() {
    assert_eq!(blocks("a\n```yaml\nx: 1\n```\nb\n```yaml\n- z\n```\n"), [json!({"x": 1}), json!(["z"])]);
}
