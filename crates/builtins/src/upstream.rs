//! The tables of the original functions' unit tests, which lie beside the repository, if at all.

use serde_json::Value;

/// The cases of a table such as `function-auto-ready/pod/TestCheckPodHealth`; none when the data is not there.
pub fn cases(table: &str) -> Vec<Value> {
    transom_testkit::tables::cases(&format!("functions/{table}.json"))
}
