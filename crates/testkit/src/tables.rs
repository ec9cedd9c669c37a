//! Tables of cases from upstream projects, in `../shared/conformance` beside the repository.
//!
//! They are other people's work and not part of the repository, so a test that finds none passes. It says so on
//! standard error, which a passing test's captured output does not hide, and fails where `TRANSOM_TABLES=required`.

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file or folder at this path below the folder of tables.
pub fn find(below: &str) -> Option<PathBuf> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance")).join(below);
    if path.exists() {
        return Some(path);
    }
    let required = std::env::var_os("TRANSOM_TABLES").is_some_and(|v| v == "required");
    assert!(!required, "TRANSOM_TABLES=required, but there is no {}", path.display());
    // Not `eprintln!`: the test harness captures that and shows it for failing tests only.
    let _ = writeln!(std::io::stderr(), "not run: there are no tables at ../shared/conformance/{below}");
    None
}

/// The content of a table; `None` where there are no tables at all. A table that cannot be read fails the test.
pub fn read(below: &str) -> Option<Value> {
    // Looking for the folder first: a single missing table is a mistake in the test.
    let folder = below.split('/').next().unwrap_or_default();
    find(folder)?;
    let path = find(below).unwrap_or_else(|| fail(below, &"no such table"));
    let text = std::fs::read(&path).unwrap_or_else(|e| fail(below, &e));
    Some(serde_json::from_slice(&text).unwrap_or_else(|e| fail(below, &e)))
}

/// The cases of a table; none where there are no tables at all.
pub fn cases(below: &str) -> Vec<Value> {
    let Some(mut table) = read(below) else { return Vec::new() };
    match table["cases"].take() {
        Value::Array(cases) if !cases.is_empty() => cases,
        _ => fail(below, &"has no cases"),
    }
}

#[expect(clippy::panic, reason = "fails the test that calls it")]
fn fail(table: &str, why: &dyn std::fmt::Display) -> ! {
    panic!("{table}: {why}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tables_are_found_or_reported() {
        assert!(super::find("no such folder").is_none() || std::env::var_os("TRANSOM_TABLES").is_none());
    }
}
