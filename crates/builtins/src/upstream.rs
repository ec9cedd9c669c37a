//! The tables of the original functions' unit tests, which lie beside the repository, if at all.

use serde_json::Value;

/// The cases of a table such as `function-auto-ready/pod/TestCheckPodHealth`; none when there is no such data.
pub fn cases(table: &str) -> Vec<Value> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/functions");
    let path = std::path::Path::new(root);
    if !path.exists() {
        return Vec::new();
    }
    let text = std::fs::read(path.join(format!("{table}.json"))).unwrap();
    let mut table: Value = serde_json::from_slice(&text).unwrap();
    let Value::Array(cases) = table["cases"].take() else { return Vec::new() };
    assert!(!cases.is_empty());
    cases
}
