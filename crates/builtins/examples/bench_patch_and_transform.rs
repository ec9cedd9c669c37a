//! How long patch-and-transform takes for ten resources of five patches each, in this process. Build it optimised:
//! `cargo run --profile fast -p transom-builtins --example bench_patch_and_transform`.

#![allow(clippy::print_stdout, reason = "a program that reports")]

use serde_json::{Value, json};
use std::time::Instant;
use transom_function::{Error, RunFunctionRequest, answer};

const ROUNDS: u32 = 20_000;

fn request() -> Result<RunFunctionRequest, serde_json::Error> {
    let patches = json!([
        {"fromFieldPath": "spec.region", "toFieldPath": "spec.forProvider.region"},
        {"fromFieldPath": "metadata.labels", "policy": {"toFieldPath": "MergeObjects"}},
        {"fromFieldPath": "spec.size", "toFieldPath": "spec.forProvider.size", "transforms": [{"type": "math", "math": {"type": "Multiply", "multiply": 2}}]},
        {"fromFieldPath": "metadata.name", "toFieldPath": "spec.forProvider.name", "transforms": [{"type": "string", "string": {"type": "Format", "fmt": "%s-x"}}]},
        {"type": "ToCompositeFieldPath", "fromFieldPath": "status.atProvider.id", "toFieldPath": "status.id"},
    ]);
    let base = json!({"apiVersion": "example.org/v1", "kind": "Thing", "spec": {"forProvider": {"tags": {"a": "b"}, "enabled": true}}});
    let templates: Vec<Value> =
        (0..10).map(|i| json!({"name": format!("r{i}"), "base": base, "patches": patches})).collect();
    let observed = json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "x"}, "status": {"atProvider": {"id": "i-1"},
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"}]}});
    let resources: serde_json::Map<String, Value> =
        (0..10).map(|i| (format!("r{i}"), json!({"resource": observed}))).collect();
    let xr = json!({"apiVersion": "example.org/v1", "kind": "X", "metadata": {"name": "demo", "labels": {"app": "web"}}, "spec": {"region": "eu", "size": 5}});
    let observed = json!({"composite": {"resource": xr}, "resources": resources});
    serde_json::from_value(json!({"observed": observed, "input": {"resources": templates}}))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let function = transom_builtins::find("function-patch-and-transform")
        .ok_or_else(|| Error::fatal("there is no such built-in"))?;
    let requests = vec![request()?; ROUNDS as usize];
    let began = Instant::now();
    for request in requests {
        let response = answer(&*function, request).await?;
        if response.desired.is_none_or(|desired| desired.resources.len() != 10) {
            return Err(Error::fatal("ten resources were not composed"));
        }
    }
    println!("{:.1} µs for ten resources", began.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS));
    Ok(())
}
