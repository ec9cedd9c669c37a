//! function-go-templating through its public interface: tables of inputs and responses, hostile templates, and the recorded
//! responses of the original.

mod errors;
mod fuzz;
mod hostile;
mod table;
mod upstream;

use serde_json::{Value, json};
use transom_builtins::GoTemplating;
use transom_function::testing::RequestBuilder;
use transom_function::{RunFunctionRequest, RunFunctionResponse, answer};

/// Runs the function as a server would.
fn call(function: &GoTemplating, request: RunFunctionRequest) -> RunFunctionResponse {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(answer(function, request)).expect("an answer")
}

/// A message in JSON, with integral numbers as integers: they are the same on the wire.
fn to_json(response: &RunFunctionResponse) -> Value {
    with_integers(serde_json::to_value(response).expect("JSON"))
}

fn with_integers(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 9.2e18 => json!(float as i64),
            _ => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(with_integers).collect(),
        Value::Object(fields) => fields.into_iter().map(|(key, value)| (key, with_integers(value))).collect(),
        other => other,
    }
}

/// A request for an inline template over a small composite resource.
fn inline(template: &str) -> RequestBuilder {
    let xr = json!({"apiVersion": "example.org/v1", "kind": "XR", "metadata": {"name": "cool"}, "spec": {"size": 3}});
    RequestBuilder::new(xr).input(json!({"source": "Inline", "inline": {"template": template}}))
}
