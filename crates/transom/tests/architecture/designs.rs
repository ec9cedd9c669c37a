//! Every part of the design documents has a test, or a page that says why it is not as designed: `tests/designs.txt`.

use super::root;
use std::collections::BTreeMap;

/// How many parts each design has.
const PARTS: [(&str, usize); 5] = [("000", 53), ("001", 32), ("002", 78), ("003", 22), ("004", 68)];

/// What shows a part.
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
fn is_test(source: &str, name: &str) -> bool {
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

#[test]
fn every_part_of_the_designs_has_a_test_or_a_reason() {
    let text = include_str!("../designs.txt");
    let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [design, number, part, shown] = cells[..] else {
            wrong.push(format!("not four cells: {line}"));
            continue;
        };
        let count = counted.entry(design).or_default();
        *count += 1;
        if number.parse() != Ok(*count) || part.is_empty() {
            wrong.push(format!("{design} {number}: parts are numbered from 1 on, and named"));
        }
        match proofs(shown) {
            Ok(proofs) => {
                let missing = proofs.iter().filter(|proof| !proof.exists());
                wrong.extend(missing.map(|proof| format!("{design} {number}: there is no {proof:?}")));
            }
            Err(why) => wrong.push(format!("{design} {number}: {why}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(counted, BTreeMap::from(PARTS));
}
