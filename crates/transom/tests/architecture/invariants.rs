//! ARCHITECTURE.md's invariants are held by tests: the table below the list names at least one for each, and these exist.

use super::proofs::is_test;
use super::root;
use std::collections::BTreeMap;

/// What is wrong with the invariants of a page: those without a test, and tests that do not exist.
fn problems(page: &str, exists: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let section = page.split_once("\n## Invariants\n").map_or("", |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or_default();
    let number = |line: &str, end: &str| line.split_once(end)?.0.trim().parse::<usize>().ok();
    let mut tests: BTreeMap<usize, usize> =
        section.lines().filter_map(|l| Some((number(l, ". ")?, 0))).collect();
    let mut wrong = Vec::new();
    if tests.keys().copied().ne(1..=tests.len()) || tests.is_empty() {
        wrong.push(format!("invariants are numbered from 1 on, not {:?}", tests.keys()));
    }
    for row in section.lines().filter_map(|line| line.strip_prefix("| ")) {
        let Some(invariant) = number(row, " |") else { continue };
        let Some(count) = tests.get_mut(&invariant) else {
            wrong.push(format!("there is no invariant {invariant}"));
            continue;
        };
        for test in row.split('`').skip(1).step_by(2) {
            match test.rsplit_once("::") {
                Some((path, name)) if exists(path, name) => *count += 1,
                _ => wrong.push(format!("invariant {invariant}: there is no test {test}")),
            }
        }
    }
    let bare = tests.into_iter().filter(|(_, count)| *count == 0);
    wrong.extend(bare.map(|(invariant, _)| format!("invariant {invariant} names no test")));
    wrong
}

#[test]
fn invariants_without_tests_are_noticed() {
    let page = |rows: &str| {
        format!(
            "# A\n\n## Invariants\n\n1. One.\n   More.\n2. Two.\n\n| a | b |\n|---|---|\n{rows}\n## B\n\n3. C\n"
        )
    };
    let exists = |path: &str, name: &str| (path, name) == ("a.rs", "b");
    let wrong = |rows: &str| problems(&page(rows), exists);
    assert_eq!(wrong("| 1 | `a.rs::b` |\n| 2 | `a.rs::b`, `a.rs::b` |\n"), Vec::<String>::new());
    assert_eq!(wrong("| 1 | `a.rs::b` |\n"), ["invariant 2 names no test"]);
    assert_eq!(
        wrong("| 1 | `a.rs::b` |\n| 2 | `a.rs::b` `a.rs::c` |\n"),
        ["invariant 2: there is no test a.rs::c"]
    );
    assert_eq!(
        wrong("| 1 | `a.rs::b` |\n| 2 | `a.rs::b` |\n| 3 | `a.rs::b` |\n"),
        ["there is no invariant 3"]
    );
    assert_eq!(problems("# A\n", exists).len(), 1, "there is no list");
}

#[test]
fn every_invariant_names_tests_that_exist() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page");
    let exists = |path: &str, name: &str| {
        let source = std::fs::read_to_string(root().join("crates").join(path));
        source.is_ok_and(|source| is_test(&source, name))
    };
    let wrong = problems(&page, exists);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
