//! Crossplane's own test tables, as far as they concern its kinds.
//!
//! The tables lie beside the repository, if at all. `known_differences.txt` names the cases that differ on purpose,
//! `elsewhere.txt` the tables that concern other crates or nothing that is built, `absent.txt` those that were not recorded.

#![expect(clippy::unwrap_used, reason = "a malformed table must fail the test")]

mod conditions;
mod managed;
mod metadata;
mod resources;
mod selection;
mod xcrd;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// One row of a table.
pub(crate) struct Case<'a>(&'a Value);

pub(crate) type Outcome = Result<(), String>;
type Check = fn(&Case<'_>) -> Outcome;

impl Case<'_> {
    pub(crate) fn name(&self) -> &str {
        self.0["name"].as_str().unwrap()
    }

    pub(crate) fn reason(&self) -> &str {
        self.0["reason"].as_str().unwrap_or_default()
    }

    pub(crate) fn input(&self, field: &str) -> &Value {
        &self.0["inputs"][field]
    }

    /// What is expected, or one field of it when there are several.
    pub(crate) fn expected(&self) -> &Value {
        &self.0["expected"]
    }

    /// The one value that is expected; absent means zero.
    pub(crate) fn want(&self) -> &Value {
        &self.0["expected"]["want"]
    }

    pub(crate) fn error(&self) -> Option<&str> {
        self.0["wantErr"]["$error"].as_str()
    }

    /// The object under test: some tables record it beside the expected value.
    pub(crate) fn object(&self) -> Value {
        let given = self.input("o");
        if given.is_null() { self.0["expected"]["o"].clone() } else { given.clone() }
    }
}

pub(crate) fn equal<T: PartialEq + std::fmt::Debug>(got: &T, want: &T) -> Outcome {
    if got == want { Ok(()) } else { Err(format!("got  {got:?}\nwant {want:?}")) }
}

/// Compares a flag with what is expected; an absent one is false.
pub(crate) fn flag(got: bool, want: &Value) -> Outcome {
    equal(&got, &want.as_bool().unwrap_or_default())
}

/// Every table this crate answers for.
fn tables() -> BTreeMap<&'static str, Check> {
    let lists: [&[(&str, Check)]; 6] = [
        conditions::TABLES,
        managed::TABLES,
        metadata::TABLES,
        resources::TABLES,
        selection::TABLES,
        xcrd::TABLES,
    ];
    lists.into_iter().flatten().copied().collect()
}

fn list(text: &'static str) -> BTreeMap<&'static str, &'static str> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once('\t').unwrap()).collect()
}

fn absent() -> BTreeSet<&'static str> {
    include_str!("absent.txt").lines().filter(|line| !line.starts_with('#')).collect()
}

fn files(folder: &Path, below: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(below).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(folder, &path, found);
        } else if path.extension().is_some_and(|e| e == "json") {
            let name = path.strip_prefix(folder).unwrap().with_extension("");
            found.push(name.to_str().unwrap().to_owned());
        }
    }
}

#[test]
fn crossplanes_tables_hold() {
    let (known, absent) = (list(include_str!("known_differences.txt")), absent());
    let mut problems = Vec::new();
    let (mut held, mut all) = (0, 0);
    for (table, check) in tables().into_iter().filter(|(table, _)| !absent.contains(table)) {
        for case in &transom_testkit::tables::cases(&format!("crossplane/{table}.json")) {
            let case = Case(case);
            let id = format!("{table}/{}", case.name());
            all += 1;
            match (check(&case), known.get(id.as_str())) {
                (Ok(()), None) => held += 1,
                (Err(_), Some(_)) => {}
                (Ok(()), Some(_)) => problems.push(format!("{id}: is listed as different but holds")),
                (Err(problem), None) => problems.push(format!("{id}:\n{problem}")),
            }
        }
    }
    if all > 0 {
        eprintln!("{held} of {all} cases hold");
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn no_table_is_forgotten() {
    let (tables, elsewhere) = (tables(), list(include_str!("elsewhere.txt")));
    let Some(folder) = transom_testkit::tables::find("crossplane") else { return };
    let mut found = Vec::new();
    for part in ["core", "runtime"] {
        files(&folder, &folder.join(part), &mut found);
    }
    let named = |name: &str| {
        let listed = elsewhere.keys().filter(|start| name.starts_with(**start)).count();
        listed + usize::from(tables.contains_key(name))
    };
    let wrong: Vec<&String> = found.iter().filter(|name| named(name) != 1).collect();
    assert!(wrong.is_empty(), "neither replayed nor named, or both: {wrong:#?}");
    let exist = |table: &&str| found.iter().any(|name| name == table) || !tables.contains_key(table);
    let stale: Vec<&str> = absent().into_iter().filter(exist).collect();
    assert!(stale.is_empty(), "recorded or not replayed, and listed as absent: {stale:#?}");
    assert!(elsewhere.values().all(|reason| !reason.is_empty()));
}
