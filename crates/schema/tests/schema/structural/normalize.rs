//! Pruning, defaulting, dropping nulls.

use super::tables::{equal, json_text, run};
use serde_json::{Value, json};
use transom_schema::{Schema, normalize, structural};

pub(crate) fn schema(doc: &Value) -> Schema {
    let doc = if doc.is_null() { &json!({}) } else { doc };
    structural::parse(doc).unwrap_or_else(|e| panic!("{e:?} in {doc}"))
}

#[test]
fn pruning() {
    run("pruning/algorithm/TestPrune.tests.json", |case| {
        let mut value = json_text(&case.inputs["json"]);
        // Without a schema nothing at all is specified; an empty schema says the same.
        let is_root = case.inputs["isResourceRoot"] == true;
        let unknown = normalize::prune(&mut value, &schema(&case.inputs["schema"]), is_root);
        equal(&value, &json_text(&case.expected["expectedObject"]))?;
        let want = case.expected["expectedPruned"].as_array().cloned().unwrap_or_default();
        equal(&unknown, &want.iter().map(|v| v.as_str().unwrap().to_owned()).collect())
    });
}

#[test]
fn defaulting() {
    run("defaulting/algorithm/TestDefault.tests.json", |case| {
        let mut value = json_text(&case.inputs["json"]);
        normalize::default(&mut value, &schema(&case.inputs["schema"]));
        equal(&value, &json_text(&case.expected["expected"]))
    });
}

#[test]
fn dropping_nulls() {
    run("defaulting/prunenulls/TestPruneNonNullableNullsWithoutDefaults.tests.json", |case| {
        let mut value = json_text(&case.inputs["json"]);
        normalize::drop_nulls(&mut value, &schema(&case.inputs["schema"]));
        equal(&value, &json_text(&case.expected["expected"]))
    });
}
