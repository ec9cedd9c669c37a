//! Calls recorded from genuine functions keep their meaning through our JSON form and over the wire.

use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use transom_function::{RunFunctionRequest, RunFunctionResponse};

/// JSON → message → bytes → message → JSON changes nothing but the spelling of integral numbers.
fn survives<M: Message + Default + DeserializeOwned + Serialize>(json: &Value) -> Result<(), String> {
    let message = M::deserialize(json).map_err(|e| format!("{e} in {json}"))?;
    let decoded = M::decode(&message.encode_to_vec()[..]).map_err(|e| e.to_string())?;
    let back = serde_json::to_value(&decoded).map_err(|e| e.to_string())?;
    if back == normalized(json) { Ok(()) } else { Err(format!("{json}\nbecame\n{back}")) }
}

fn normalized(json: &Value) -> Value {
    match json {
        Value::Number(n) => match n.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 9.2e18 => json!(float as i64),
            _ => json.clone(),
        },
        Value::Array(items) => items.iter().map(normalized).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), normalized(value))).collect(),
        other => other.clone(),
    }
}

#[test]
fn our_own_call_survives() {
    let request = json!({
        "meta": {"tag": "t", "capabilities": ["CAPABILITY_CAPABILITIES", "CAPABILITY_CONDITIONS"]},
        "observed": {
            "composite": {"resource": {"kind": "XR", "spec": {"n": 1, "f": 1.5}}, "connectionDetails": {"k": "dg=="}},
            "resources": {"a": {"resource": {}, "ready": "READY_FALSE"}},
        },
        "desired": {},
        "input": {"list": [null, true, "x", {"y": []}]},
        "context": {},
        "extraResources": {"e": {}},
        "credentials": {"c": {"credentialData": {"data": {"k": "dg=="}}}},
        "requiredResources": {"r": {"items": [{"resource": {"kind": "R"}}]}},
        "requiredSchemas": {"s": {"openapiV3": {"type": "object"}}, "t": {}},
    });
    survives::<RunFunctionRequest>(&request).unwrap();
    let response = json!({
        "meta": {"tag": "t", "ttl": "60s"},
        "results": [{"severity": "SEVERITY_FATAL", "message": "m", "reason": "R", "target": "TARGET_COMPOSITE"}],
        "conditions": [{"type": "T", "status": "STATUS_CONDITION_TRUE", "reason": "R"}],
        "requirements": {
            "extraResources": {"a": {"apiVersion": "v1", "kind": "Pod", "matchName": ""}},
            "resources": {"b": {"apiVersion": "v1", "kind": "Pod", "matchLabels": {"labels": {"a": "b"}}}},
            "schemas": {"c": {"apiVersion": "v1", "kind": "Pod"}},
        },
        "output": {"x": 1},
    });
    survives::<RunFunctionResponse>(&response).unwrap();
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn recorded_calls_survive() {
    let Some(root) = transom_testkit::tables::find("functions/recorded") else { return };
    let (mut found, mut calls, mut problems) = (Vec::new(), 0, Vec::new());
    files(&root, &mut found);
    for file in found.iter().filter(|file| file.extension().is_some_and(|e| e == "json")) {
        let table: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        for case in table["cases"].as_array().into_iter().flatten() {
            calls += 1;
            problems.extend(survives::<RunFunctionRequest>(&case["request"]).err());
            if case["response"].is_object() {
                problems.extend(survives::<RunFunctionResponse>(&case["response"]).err());
            }
        }
    }
    assert!(problems.is_empty(), "{} of {calls} calls: {}", problems.len(), problems[0]);
    assert!(calls > 0);
}
