//! Documents say what is so: the budgets in CONTRIBUTING.md are those of the tests, and comments, documents and messages
//! avoid phrases that make code a person.

use super::budgets::{code_only, skipped, without_tests};
use super::{root, sources};
use std::path::{Path, PathBuf};

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The number that follows a text in the definition of a constant.
fn number(source: &str, constant: &str, field: &str) -> u64 {
    let definition = source.split_once(&format!("const {constant}:")).map(|(_, rest)| rest);
    let definition = definition.and_then(|rest| rest.split_once(';')).map(|(definition, _)| definition);
    let value = definition.and_then(|definition| definition.split_once(field)).map(|(_, value)| value.trim());
    let digits: String = value
        .unwrap_or_else(|| panic!("there is no constant {constant} with {field:?}"))
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '_')
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap_or_else(|e| panic!("{constant} {field}: {e}"))
}

/// 1600 as 1,600.
fn grouped(n: u64) -> String {
    if n < 1_000 { n.to_string() } else { format!("{},{:03}", n / 1_000, n % 1_000) }
}

fn every(stride: u64) -> String {
    match stride {
        1 => "every write".to_owned(),
        4 => "every fourth write".to_owned(),
        6 => "every sixth write".to_owned(),
        n => format!("every {n}th write"),
    }
}

#[test]
fn the_table_of_budgets_has_those_of_the_tests() {
    let page = read("CONTRIBUTING.md");
    let simulation = read("crates/controllers/tests/simulation/mod.rs");
    let matrix = read("crates/transom/tests/crash_matrix/main.rs");
    let schedules = number(&simulation, "ENOUGH", "=");
    let share = number(&simulation, "FUNCTIONS_SHARE", "=");
    let shares = |n: u64| (grouped(n), grouped(n / 2), grouped(n / share));
    let (all, packages, functions) = shares(schedules);
    let mut cells = vec![format!("{all} schedules, {packages} of packages and {functions} of functions")];
    for extent in ["QUICK", "SAMPLE", "FULL", "PACKAGES_QUICK", "PACKAGES_CI"] {
        let (stride, kills) = (number(&matrix, extent, "stride:"), number(&matrix, extent, "kills:"));
        cells.push(format!("{}, at least {} kills", every(stride), grouped(kills)));
    }
    let gate = read(".ci/run");
    let gate_schedules = gate.split_once("TRANSOM_SIMULATION_SCHEDULES=").map(|(_, rest)| rest);
    let gate_schedules = gate_schedules.and_then(|rest| rest.split(' ').next()).and_then(|n| n.parse().ok());
    let (all, packages, functions) = shares(gate_schedules.expect("the gate sets the number of schedules"));
    cells.push(format!("| {all}, {packages} and {functions} |"));
    let missing: Vec<&String> = cells.iter().filter(|cell| !page.contains(*cell)).collect();
    assert!(missing.is_empty(), "CONTRIBUTING.md does not say: {missing:#?}");
}

/// Phrases that make code a person, or that no reader of technical English expects.
const PHRASES: &[&str] = &[
    "nobody",
    "somebody",
    "anybody",
    "whoever",
    "those who",
    "is told",
    "are told",
    "was told",
    "were told",
    "be told",
    "tells",
    "for ever",
    "lest",
    "let go",
    "as good as",
    "for want of",
    "in the words of",
    "what is no",
];

/// What follows `is no` in plain English: "is no longer read", "is no more than". Otherwise it stands for `is not a`.
const AFTER_NO: &[&str] = &[
    "longer",
    "more",
    "less",
    "later",
    "earlier",
    "other",
    "older",
    "newer",
    "greater",
    "smaller",
    "larger",
    "further",
    "different",
    "such",
    "way",
    "need",
];

/// "X-is-no-Y", which means that X is not a Y. "There is no Y" is plain.
fn is_no(text: &str) -> Option<&'static str> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.windows(3).position(|three| {
        let [verb, "no", after] = three else { return false };
        let after = after.trim_end_matches(|c: char| !c.is_alphanumeric());
        ["is", "are", "was", "were"].contains(verb) && !AFTER_NO.contains(&after)
    })?;
    // At the start of a line the word before is not known.
    let before = at.checked_sub(1).and_then(|before| words.get(before))?;
    let before = before.trim_matches(|c: char| !c.is_alphanumeric());
    (!["", "there", "it"].contains(&before)).then_some("is no")
}

/// The phrase in a text, as whole words, that is not part of a name.
fn phrase(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase().replace("what is no longer", "");
    if let Some(found) = is_no(&text) {
        return Some(found);
    }
    let is_part = |c: char| c.is_alphanumeric() || "_-@\"`".contains(c);
    PHRASES.iter().copied().find(|phrase| {
        text.match_indices(phrase).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + phrase.len()..]);
            !before.ends_with(is_part) && !after.starts_with(is_part)
        })
    })
}

/// The string literals of a source, each with its line. Texts on several lines are joined as the compiler does it.
fn literals(source: &str) -> Vec<(usize, String)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(c) = source[at..].chars().next() {
        let rest = &source[at..];
        let length = skipped(rest).unwrap_or(0);
        let skipped = &rest[..length];
        if skipped.starts_with(['"', 'r']) {
            let mut parts = skipped.split("\\\n");
            let first = parts.next().unwrap_or_default().to_owned();
            let text = parts.fold(first, |text, part| text + part.trim_start());
            let text = text.trim_start_matches('r').trim_matches('#').trim_matches('"').to_owned();
            found.push((1 + source[..at].matches('\n').count(), text));
        }
        at += if length > 0 { length } else { c.len_utf8() };
    }
    found
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The lines at which a table begins without a head: the rest of one that an empty line or a text cut in two.
fn severed_rows(page: &str) -> Vec<usize> {
    let (mut in_code, mut before, mut found) = (false, "", Vec::new());
    let lines: Vec<&str> = page.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        in_code ^= line.starts_with("```");
        let is_rule =
            |line: &&str| line.starts_with("|-") || line.starts_with("| -") || line.starts_with("|:");
        if !in_code
            && line.starts_with('|')
            && !before.starts_with('|')
            && !lines.get(at + 1).is_some_and(is_rule)
        {
            found.push(at + 1);
        }
        before = line;
    }
    found
}

#[test]
fn tables_are_not_cut_in_two() {
    assert_eq!(severed_rows("| a |\n|---|\n| b |\n\n| c |\n\n```\n| d |\n```\n"), [5]);
    let mut files = Vec::new();
    for folder in ["docs", "conformance", "crates"] {
        pages(&root().join(folder), &mut files);
    }
    files.extend(
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|page| root().join(page)),
    );
    for file in files {
        let severed = severed_rows(&std::fs::read_to_string(&file).unwrap());
        assert!(severed.is_empty(), "{}: rows without a head in the lines {severed:?}", file.display());
    }
}

#[test]
fn phrases_are_found_as_whole_words() {
    for text in
        ["Nobody waits.", "kept for ever", "what is no list", "a text that is no list", "these are no texts."]
    {
        assert!(phrase(text).is_some(), "{text}");
    }
    for text in [
        "for every one",
        "what is not a list",
        "what is no longer there",
        "`nobody`",
        "there is no list",
        "is no more than",
    ] {
        assert_eq!(phrase(text), None, "{text}");
    }
}

#[test]
fn comments_and_documents_are_in_plain_english() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    for folder in ["docs", "conformance", "crates"] {
        pages(&root().join(folder), &mut files);
    }
    files.extend(["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].map(|page| root().join(page)));
    let mut problems = Vec::new();
    for file in files {
        let content = std::fs::read_to_string(&file).unwrap();
        let is_code = file.extension().is_some_and(|extension| extension == "rs");
        for (n, line) in (1..).zip(content.lines()) {
            let words = if is_code { line.split_once("//").map_or("", |(_, words)| words) } else { line };
            if let Some(phrase) = phrase(words) {
                let path = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
                problems.push(format!("{path}:{n}: {phrase:?}"));
            }
        }
    }
    assert!(problems.is_empty(), "say it in the terms of Kubernetes, Crossplane and Rust: {problems:#?}");
}

#[test]
fn literals_are_read_as_the_compiler_reads_them() {
    let source =
        "// \"none\"\nlet c = '\"';\nlet one = \"is \\\n           told\";\nlet two = r#\"a \"b\" c\"#;\n";
    assert_eq!(literals(source), [(3, "is told".to_owned()), (5, "a \"b\" c".to_owned())]);
}

/// Errors, conditions, events and help are literals of the sources; literals of tests are not read by users.
#[test]
fn messages_are_in_plain_english() {
    let crates = root().join("crates");
    let mut files = Vec::new();
    sources(&crates, &mut files);
    let (mut problems, mut count) = (Vec::new(), 0);
    for file in files {
        let path = file.strip_prefix(&crates).unwrap().to_string_lossy().into_owned();
        if !path.contains("/src/") || ["/tests", "_tests.rs"].iter().any(|part| path.contains(part)) {
            continue;
        }
        for (line, text) in literals(&without_tests(&std::fs::read_to_string(&file).unwrap())) {
            count += 1;
            problems.extend(phrase(&text).map(|phrase| format!("{path}:{line}: {phrase:?} in {text:?}")));
        }
    }
    assert!(count > 10_000, "the literals were not found");
    assert!(problems.is_empty(), "say it in the terms of Kubernetes, Crossplane and Rust: {problems:#?}");
}

/// Words that once had many meanings each: a function or type says what it is.
const VAGUE_NAMES: &[&str] = &["settle", "settled", "shown", "Settled", "Place"];

/// The identifiers of a source, in the order of their first use.
fn identifiers(code: &str) -> Vec<&str> {
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    let mut seen = std::collections::BTreeSet::new();
    words
        .filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_') && seen.insert(*word))
        .collect()
}

/// The functions and types of a source with a vague name.
fn vague(code: &str) -> Vec<&str> {
    let words: Vec<&str> =
        code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).collect();
    let definitions =
        words.windows(2).filter(|two| ["fn", "struct", "enum", "trait", "type"].contains(&two[0]));
    definitions.map(|two| two[1]).filter(|name| VAGUE_NAMES.contains(name)).collect()
}

#[test]
fn names_are_in_plain_english() {
    let found = |code| identifiers(code).into_iter().find_map(|name| phrase(&name.replace('_', " ")));
    assert_eq!(found("fn what_is_told() {}"), Some("is told"));
    assert_eq!(found("fn a_b_is_no_c() {}"), Some("is no"));
    assert_eq!(found("fn what_is_no_longer_told_apart() {}"), None);
    assert_eq!(vague("fn settle() { shown } struct Place;"), ["settle", "Place"]);
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let (mut problems, mut count) = (Vec::new(), 0);
    for file in files {
        let code = code_only(&std::fs::read_to_string(&file).unwrap());
        let path = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
        for name in identifiers(&code) {
            count += 1;
            problems.extend(
                phrase(&name.replace('_', " ")).map(|phrase| format!("{path}: {phrase:?} in {name}")),
            );
        }
        problems.extend(vague(&code).into_iter().map(|name| format!("{path}: {name} says too little")));
    }
    assert!(count > 50_000, "the identifiers were not found: {count}");
    assert!(problems.is_empty(), "say it in the terms of Kubernetes, Crossplane and Rust: {problems:#?}");
}
