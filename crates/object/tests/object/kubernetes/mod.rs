//! Kubernetes' own test tables, where they are at hand, run against this crate.
//!
//! A table is a JSON file of cases. Every table of the folders below is either run by a check or named with the
//! reason why it cannot be. Cases known to differ are listed in `known_differences.txt` as `table#case<TAB>reason`;
//! the test fails when a listed case passes, too.
#![expect(clippy::unwrap_used, reason = "a malformed table must fail the test")]
#![expect(
    clippy::needless_pass_by_value,
    clippy::too_many_lines,
    reason = "plans are tables of small checks"
)]

mod fields_and_labels;
mod identities;
mod json_paths;
mod metadata;
mod names;
mod quantities;
mod times;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// One row of a table.
struct Case<'a> {
    row: &'a Value,
}

static NULL: Value = Value::Null;

impl<'a> Case<'a> {
    fn at(&self, part: &str, name: &str) -> &'a Value {
        self.row.get(part).and_then(|v| v.get(name)).unwrap_or(&NULL)
    }

    fn input(&self, name: &str) -> &'a Value {
        self.at("inputs", name)
    }

    /// A text input; Go's zero value when it is absent.
    fn text(&self, name: &str) -> &'a str {
        self.input(name).as_str().unwrap_or_default()
    }

    fn expected(&self, name: &str) -> &'a Value {
        self.at("expected", name)
    }

    fn expects(&self, name: &str) -> bool {
        self.expected(name).as_bool().unwrap_or_default()
    }

    /// The value of a row that is a bare value.
    fn value(&self) -> &'a Value {
        self.row.get("value").unwrap_or(&NULL)
    }

    fn want_err(&self) -> &'a Value {
        self.row.get("wantErr").unwrap_or(&NULL)
    }
}

type Outcome = Result<(), String>;
type Check = fn(&Case<'_>) -> Outcome;

fn same<T: PartialEq + std::fmt::Debug>(got: T, want: T) -> Outcome {
    if got == want { Ok(()) } else { Err(format!("got {got:?}, want {want:?}")) }
}

fn is(condition: bool, why: impl std::fmt::Debug) -> Outcome {
    if condition { Ok(()) } else { Err(format!("{why:?}")) }
}

/// What to do with a table: its name ends with the text.
enum Plan {
    Run(Check),
    Skip(&'static str),
}

/// The tables of a folder, each with its path below the folder of all Kubernetes tables.
fn tables(folder: &str) -> Vec<(String, PathBuf)> {
    let Some(root) = transom_testkit::tables::find("kubernetes") else { return Vec::new() };
    let mut found = Vec::new();
    let mut todo = vec![root.join(folder)];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "json") {
                let name = path.strip_prefix(&root).unwrap().with_extension("").display().to_string();
                found.push((name, path));
            }
        }
    }
    found.sort();
    found
}

/// Runs all tables of a folder by the first entry of the plan whose text is part of the table's path.
fn run(folder: &str, plan: &[(&str, Plan)]) {
    let known: BTreeMap<&str, &str> = include_str!("known_differences.txt")
        .lines()
        .filter(|l| !l.starts_with('#'))
        .filter_map(|l| l.split_once('\t'))
        .collect();
    let (mut passed, mut problems) = (0, Vec::new());
    let mut skipped = BTreeSet::new();
    for (name, path) in tables(folder) {
        let check = match plan.iter().find(|(part, _)| name.contains(part)) {
            None => {
                problems.push(format!("{name}: no check runs this table"));
                continue;
            }
            Some((_, Plan::Skip(why))) => {
                skipped.insert(format!("{name}: {why}"));
                continue;
            }
            Some((_, Plan::Run(check))) => check,
        };
        let table: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for row in table["cases"].as_array().unwrap() {
            let id = format!("{name}#{}", row["name"].as_str().unwrap_or_default());
            match (check(&Case { row }), known.get(id.as_str())) {
                (Ok(()), None) => passed += 1,
                (Err(_), Some(_)) => {}
                (Ok(()), Some(why)) => {
                    problems.push(format!("{id} passes, but is listed as different: {why}"));
                }
                (Err(e), None) => problems.push(format!("{id}: {e}")),
            }
        }
    }
    let report = format!("{folder}: {passed} passed, {} tables skipped", skipped.len());
    assert!(problems.is_empty(), "{report}; {} problems:\n{}", problems.len(), problems.join("\n"));
    if std::env::var_os("TABLES_VERBOSE").is_some() {
        #[expect(clippy::print_stderr, reason = "asked for")]
        {
            eprintln!("{report}\n  {}", skipped.into_iter().collect::<Vec<_>>().join("\n  "));
        }
    }
}
