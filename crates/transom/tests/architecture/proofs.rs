//! Lists of what must be proved: every part of the design documents (`tests/designs.txt`) and every fault that was found
//! (`tests/faults.txt`) has a test, or a page that says why it has none. The tests and pages must exist.

use super::root;
use std::collections::BTreeMap;

/// A list: how many rows each of its chapters has. A row that is removed fails the test.
type Chapters = &'static [(&'static str, usize)];

const DESIGNS: Chapters = &[("000", 53), ("001", 32), ("002", 78), ("003", 22), ("004", 68)];
const FAULTS: Chapters = &[("designs", 20), ("operation", 25), ("messages", 15), ("code", 37), ("go", 8)];

/// What shows that a row is true.
#[derive(Debug, PartialEq)]
enum Proof<'a> {
    Test { path: &'a str, name: &'a str },
    Page { path: &'a str, words: &'a str },
}

impl Proof<'_> {
    fn exists(&self) -> bool {
        let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap_or_default();
        match self {
            Self::Test { path, name } => is_test(&read(path), name),
            Self::Page { path, words } => read(path).contains(words),
        }
    }
}

/// Tests and pages, or what cannot be read.
fn proofs(mut text: &str) -> Result<Vec<Proof<'_>>, &str> {
    let mut found = Vec::new();
    while !text.is_empty() {
        let end = text.find(' ').unwrap_or(text.len());
        let (path, rest) = (&text[..end], text[end..].trim_start());
        if let Some((path, name)) = path.rsplit_once("::") {
            found.push(Proof::Test { path, name });
            text = rest;
        } else {
            let (words, after) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')).ok_or(text)?;
            found.push(Proof::Page { path, words });
            text = after.trim_start();
        }
    }
    if found.is_empty() { Err("nothing shows it") } else { Ok(found) }
}

/// Whether a source has a test of this name.
pub(super) fn is_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let declares = |line: &&str| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("fn ").and_then(|line| line.split('(').next()) == Some(name)
    };
    let marks = |line: &&str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
    let at = lines.iter().position(declares);
    at.is_some_and(|at| lines[at.saturating_sub(4)..at].iter().any(marks))
}

#[test]
fn proofs_are_read() {
    let read = proofs("a/b.rs::c docs/d.md \"some words\" e.rs::f");
    let test = |path, name| Proof::Test { path, name };
    let page = Proof::Page { path: "docs/d.md", words: "some words" };
    assert_eq!(read, Ok(vec![test("a/b.rs", "c"), page, test("e.rs", "f")]));
    assert!(proofs("").is_err() && proofs("docs/d.md").is_err() && proofs("docs/d.md \"open").is_err());
    let source = "#[test]\n#[cfg(unix)]\nfn a() {}\nfn b() {}\n\n\n#[tokio::test(x)]\nasync fn c() {}\n";
    assert!(is_test(source, "a") && is_test(source, "c") && !is_test(source, "d"));
    assert!(!is_test("fn a() {}\n", "a"), "a function is not a test");
}

/// What is wrong with a list of rows: chapter, number, what is to be proved, and its proofs.
fn problems(list: &str, chapters: Chapters) -> Vec<String> {
    let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [chapter, number, what, shown] = cells[..] else {
            wrong.push(format!("not four cells: {line}"));
            continue;
        };
        let count = counted.entry(chapter).or_default();
        *count += 1;
        if number.parse() != Ok(*count) || what.is_empty() {
            wrong.push(format!("{chapter} {number}: rows are numbered from 1 on, and say what is proved"));
        }
        match proofs(shown) {
            Ok(proofs) => {
                let missing = proofs.iter().filter(|proof| !proof.exists());
                wrong.extend(missing.map(|proof| format!("{chapter} {number}: there is no {proof:?}")));
            }
            Err(why) => wrong.push(format!("{chapter} {number}: {why}")),
        }
    }
    if counted != chapters.iter().copied().collect() {
        wrong.push(format!("the chapters have {counted:?} rows, not {chapters:?}"));
    }
    wrong
}

#[test]
fn incomplete_lists_are_noticed() {
    let here = "crates/transom/tests/architecture/proofs.rs";
    let row = |number: usize, test: &str| format!("a\t{number}\twhat\t{here}::{test}\n");
    let good = format!("# a comment\n{}", row(1, "incomplete_lists_are_noticed"));
    assert_eq!(problems(&good, &[("a", 1)]), Vec::<String>::new());
    assert_eq!(problems(&good, &[("a", 2)]).len(), 1, "a row is missing");
    assert_eq!(problems(&row(1, "problems"), &[("a", 1)]).len(), 1, "it is not a test");
    assert_eq!(
        problems(&row(2, "incomplete_lists_are_noticed"), &[("a", 1)]).len(),
        1,
        "a number is missing"
    );
    assert_eq!(problems("a\t1\twhat\tREADME.md \"no such words\"\n", &[("a", 1)]).len(), 1);
}

#[test]
fn every_part_of_the_designs_has_a_test_or_a_reason() {
    let wrong = problems(include_str!("../designs.txt"), DESIGNS);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_fault_has_a_test_or_a_reason() {
    let wrong = problems(include_str!("../faults.txt"), FAULTS);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
