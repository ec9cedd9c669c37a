//! Tables of cases from upstream projects, in `../shared/conformance` beside the repository.
//!
//! They are other people's work and not part of the repository, so a test that finds none passes. It reports it on
//! standard error, which a passing test's captured output does not hide, and fails where `TRANSOM_TABLES=required`.

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file or folder at this path below the folder of tables.
pub fn find(below: &str) -> Option<PathBuf> {
    let required = std::env::var_os("TRANSOM_TABLES").is_some_and(|v| v == "required");
    match look(below, required) {
        Ok(found) => found,
        Err(why) => fail(below, &why),
    }
}

/// The path, if it exists; an error if it does not and the tables are required.
fn look(below: &str, required: bool) -> Result<Option<PathBuf>, String> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance")).join(below);
    if path.exists() {
        return Ok(Some(path));
    }
    if required {
        return Err(format!("TRANSOM_TABLES=required, but there is no {}", path.display()));
    }
    // Not `eprintln!`: the test harness captures that and shows it for failing tests only.
    let _ = writeln!(std::io::stderr(), "not run: there are no tables at ../shared/conformance/{below}");
    Ok(None)
}

/// The content of a table; `None` where it is not there, which fails the test where tables are required. A table that
/// cannot be read fails the test in any case.
pub fn read(below: &str) -> Option<Value> {
    let path = find(below)?;
    let text = std::fs::read(&path).unwrap_or_else(|e| fail(below, &e));
    Some(serde_json::from_slice(&text).unwrap_or_else(|e| fail(below, &e)))
}

/// The cases of a table; none where the table is missing.
pub fn cases(below: &str) -> Vec<Value> {
    let Some(mut table) = read(below) else { return Vec::new() };
    match table["cases"].take() {
        Value::Array(cases) if !cases.is_empty() => cases,
        _ => fail(below, &"has no cases"),
    }
}

/// One row of a table of Kubernetes' tests.
pub struct Case {
    /// `table name`: the path of the table and the name of the case in it.
    pub id: String,
    /// What the code under test gets.
    pub inputs: Value,
    /// What it returns.
    pub expected: Value,
    /// The errors that it returns.
    pub want_err: Value,
}

/// Runs every case of a table. All must pass except those listed in `known_differences` (`id<TAB>reason`), which must
/// fail.
pub fn run(below: &str, known_differences: &str, check: impl Fn(&Case) -> Result<(), String>) {
    let known = |id: &str| {
        known_differences.lines().filter_map(|line| line.split_once('\t')).any(|(listed, _)| listed == id)
    };
    let mut problems = Vec::new();
    for mut case in cases(below) {
        let case = Case {
            id: format!("{below} {}", case["name"].as_str().unwrap_or_default()),
            inputs: case["inputs"].take(),
            expected: case["expected"].take(),
            want_err: case["wantErr"].take(),
        };
        match (check(&case), known(&case.id)) {
            (Ok(()), false) | (Err(_), true) => {}
            (Ok(()), true) => problems.push(format!("{}: passes, but is listed as different", case.id)),
            (Err(why), false) => problems.push(format!("{}: {why}", case.id)),
        }
    }
    if !problems.is_empty() {
        fail(below, &format!("{} problems:\n{}", problems.len(), problems.join("\n")));
    }
}

#[expect(clippy::panic, reason = "fails the test that calls it")]
fn fail(table: &str, why: &dyn std::fmt::Display) -> ! {
    panic!("{table}: {why}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn missing_tables_are_an_error_only_where_they_are_required() {
        assert_eq!(super::look("no such folder", false), Ok(None));
        for missing in ["no such folder", "kubernetes/no such table.json"] {
            let why = super::look(missing, true).unwrap_err();
            assert!(why.contains(missing), "{why}");
        }
    }
}
