//! No table of upstream's test data is forgotten: every file of the folders below is claimed by a test
//! (`conformance/claims.txt`) or named with the reason why no test runs it (`conformance/unclaimed.txt`).
//!
//! The data lies beside the repository, if at all. Without it, the lists themselves are still checked.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const FOLDERS: [&str; 5] = ["crossplane/cli", "crossplane/cli-literals", "functions", "kubernetes", "smd"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The start of a path and what is said about all files that have it.
type Entry = (&'static str, &'static str);

fn entries(list: &'static str) -> Vec<Entry> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let entry = line.split_once('\t');
            assert!(entry.is_some_and(|(start, text)| !start.is_empty() && !text.is_empty()), "{line:?}");
            entry.unwrap_or_default()
        })
        .collect()
}

fn claims() -> Vec<Entry> {
    entries(include_str!("../conformance/claims.txt"))
}

fn unclaimed() -> Vec<Entry> {
    entries(include_str!("../conformance/unclaimed.txt"))
}

/// Whether a source file has a test of this name.
fn has_test(file: &str, name: &str) -> bool {
    let Ok(text) = std::fs::read_to_string(repository().join(file)) else { return false };
    [("#[test]", "fn"), ("#[tokio::test]", "async fn")].iter().any(|(attribute, keyword)| {
        let start = format!("{keyword} {name}()");
        text.split(attribute).skip(1).any(|rest| rest.trim_start().starts_with(&start))
    })
}

#[test]
fn lists_are_well_formed_and_name_tests_that_exist() {
    let mut seen = BTreeSet::new();
    for (start, _) in claims().into_iter().chain(unclaimed()) {
        assert!(FOLDERS.iter().any(|f| start.starts_with(&format!("{f}/"))), "{start} is in no folder");
        assert!(seen.insert(start), "{start} is listed twice");
    }
    let missing: Vec<&str> = claims()
        .into_iter()
        .map(|(_, test)| test)
        .filter(|test| !test.split_once("::").is_some_and(|(file, name)| has_test(file, name)))
        .collect();
    assert!(missing.is_empty(), "no such test: {missing:#?}");
}

/// The files below a folder, by their paths from `root`.
fn files(root: &Path, folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(root.join(&folder)).into_iter().flatten().flatten() {
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                todo.push(path);
            } else if !path.ends_with(".md") {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn every_table_is_claimed_or_named_with_a_reason() {
    let Some(root) = transom_testkit::tables::find("") else { return };
    let found: Vec<String> = FOLDERS.iter().flat_map(|folder| files(&root, folder)).collect();
    let (claims, unclaimed) = (claims(), unclaimed());
    let covers = |list: &[Entry], file: &str| list.iter().any(|(start, _)| file.starts_with(start));
    let mut wrong = Vec::new();
    for file in &found {
        match (covers(&claims, file), covers(&unclaimed, file)) {
            (false, false) => wrong.push(format!("{file}: neither claimed nor named with a reason")),
            (true, true) => wrong.push(format!("{file}: in both lists")),
            _ => {}
        }
    }
    for (start, _) in claims.iter().chain(&unclaimed) {
        if !found.iter().any(|file| file.starts_with(start)) {
            wrong.push(format!("{start}: there is no such table"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
