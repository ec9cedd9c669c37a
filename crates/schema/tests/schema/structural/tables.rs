//! Reading tables, and comparing the cases that fail with those that are known to.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The folder with upstream's Kubernetes tables, unless the repository stands alone.
pub(crate) fn folder() -> Option<PathBuf> {
    transom_testkit::tables::find("kubernetes")
}

/// One row of a table.
pub(crate) struct Case {
    pub(crate) inputs: Value,
    pub(crate) expected: Value,
    pub(crate) want_err: Value,
}

/// Runs `judge` on every case of a table. It answers `Err` with what went wrong.
pub(crate) fn run(table: &str, judge: impl Fn(&Case) -> Result<(), String>) {
    let Some(folder) = folder() else { return };
    let text = std::fs::read_to_string(folder.join(table)).unwrap_or_else(|e| panic!("{table}: {e}"));
    let doc: Value = serde_json::from_str(&text).unwrap();
    let mut failed = BTreeMap::new();
    let cases = doc["cases"].as_array().unwrap();
    for case in cases {
        let name = format!("{table} {}", case["name"].as_str().unwrap());
        let case = Case {
            inputs: case["inputs"].clone(),
            expected: case["expected"].clone(),
            want_err: case["wantErr"].clone(),
        };
        if let Err(problem) = judge(&case) {
            failed.insert(name, problem);
        }
    }
    compare(table, cases.len(), &failed);
}

/// Fails unless the failed cases are exactly the known differences whose name starts with `prefix`.
pub(crate) fn compare(prefix: &str, total: usize, failed: &BTreeMap<String, String>) {
    let listed: Vec<&str> = include_str!("known_differences.txt")
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, _)| name)
        .filter(|name| name.starts_with(prefix))
        .collect();
    println!("{prefix}: {} of {total} pass", total - failed.len());
    let unexpected: Vec<String> = failed
        .iter()
        .filter(|(name, _)| !listed.contains(&name.as_str()))
        .map(|(name, problem)| format!("{name}\n    {problem}"))
        .collect();
    assert!(unexpected.is_empty(), "{} unexpected failures:\n{}", unexpected.len(), unexpected.join("\n"));
    let fixed: Vec<&&str> = listed.iter().filter(|name| !failed.contains_key(**name)).collect();
    assert!(fixed.is_empty(), "known differences that now pass: {fixed:?}");
}

/// A text field of a case, read as JSON.
pub(crate) fn json_text(value: &Value) -> Value {
    serde_json::from_str(value.as_str().unwrap_or("null")).unwrap()
}

pub(crate) fn equal<T: PartialEq + std::fmt::Debug>(got: &T, want: &T) -> Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("got  {got:?}\n    want {want:?}")) }
}
