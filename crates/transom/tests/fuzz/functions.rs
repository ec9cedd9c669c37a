//! Targets that are inputs of built-in functions: no input ends one, none keeps it busy, and the answer to the same
//! question is the same to the byte.

use crate::fuzz::{fuzz_text, fuzz_values};
use serde_json::{Value, json};
use transom_function::testing::RequestBuilder;
use transom_function::{Function, RunFunctionRequest, answer};

/// A question to patch-and-transform: a resource that exists and one that does not, an environment.
fn question(input: &Value) -> RunFunctionRequest {
    let xr = json!({
        "apiVersion": "example.org/v1", "kind": "X", "metadata": {"name": "n", "uid": "u"},
        "a": {"b": [1, {"c": "x"}]}, "items": [{"name": "one", "n": 1}, {"name": "two", "n": 2.5}], "text": "aGVsbG8=",
    });
    let observed = json!({
        "apiVersion": "example.org/v1", "kind": "Bucket", "metadata": {"name": "thing-1"},
        "status": {"id": "x", "n": 3, "ok": true, "conditions": [{"type": "Ready", "status": "True"}]},
    });
    let environment =
        json!({"apiVersion": "internal.crossplane.io/v1alpha1", "kind": "Environment", "region": "eu"});
    RequestBuilder::new(xr)
        .observed("thing", observed)
        .context(transom_function::ENVIRONMENT, environment)
        .input(input.clone())
        .build()
}

fn ask(function: &dyn Function, request: &RunFunctionRequest) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let response = runtime.block_on(answer(function, request.clone()));
    serde_json::to_value(response.expect("the function answers")).expect("responses are JSON")
}

#[test]
fn patch_and_transform() {
    let function = transom_builtins::find("function-patch-and-transform").expect("it is built in");
    let templates = transom_builtins::templates();
    fuzz_values("patch_and_transform", |input| {
        // Only objects can be inputs.
        if input.is_object() {
            let request = question(input);
            assert_eq!(ask(&*function, &request), ask(&*function, &request));
            ask(&*templates, &request);
        }
    });
}

#[test]
fn formats() {
    let function = transom_builtins::find("function-patch-and-transform").expect("it is built in");
    fuzz_text("formats", |input| {
        let paths = ["metadata.name", "a", "items", "items[0].n", "items[1].n"];
        let patch = |path: &str| {
            let transform = json!({"type": "string", "string": {"type": "Format", "fmt": input}});
            json!({"fromFieldPath": path, "toFieldPath": "spec.text", "transforms": [transform]})
        };
        let variables: Value = paths.iter().map(|path| json!({"fromFieldPath": path})).collect();
        let combine = json!({"type": "CombineFromComposite", "toFieldPath": "spec.text",
            "combine": {"variables": variables, "strategy": "string", "string": {"fmt": input}}});
        let patches: Value = paths.into_iter().map(patch).chain([combine]).collect();
        let base = json!({"apiVersion": "v1", "kind": "Thing"});
        ask(
            &*function,
            &question(&json!({"resources": [{"name": "new", "base": base, "patches": patches}]})),
        );
    });
}
