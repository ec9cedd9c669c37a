//! The tables of the original functions' unit tests, which are in `../shared/conformance` if available.

use serde_json::Value;

/// The cases of a table such as `function-auto-ready/pod/TestCheckPodHealth`; none if the table is not available.
pub(crate) fn cases(table: &str) -> Vec<Value> {
    transom_testkit::tables::cases(&format!("functions/{table}.json"))
}
