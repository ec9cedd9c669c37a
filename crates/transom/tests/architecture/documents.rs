//! Plain English: comments, documents, messages, names, and what scripts and suites say avoid phrases that make code a
//! person.

use super::budgets::{code_only, skipped, without_tests};
use super::{root, sources};
use std::path::{Path, PathBuf};

pub(super) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
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

/// Below `conformance`: what other programs print.
const TRANSCRIPTS: &[&str] = &["/kubectl/"];

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
    let before = before.trim_end_matches(|c: char| !c.is_alphanumeric());
    let before = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
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

/// The files below a folder with one of these extensions, without what was installed or built there.
fn files_with(extensions: &[&str], folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && !["target", "node_modules", "__pycache__"].contains(&&*name) {
                files_with(extensions, &path, found);
            }
        } else if path.extension().is_some_and(|extension| extensions.iter().any(|one| extension == *one)) {
            found.push(path);
        }
    }
}

/// Every document of the repository.
pub(super) fn all_pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["docs", "conformance", "crates", "deploy", "examples", "fuzz"] {
        files_with(&["md"], &root().join(folder), &mut found);
    }
    // Templates of projects belong to their authors.
    found.retain(|file| !file.to_string_lossy().contains("/authoring/templates/"));
    found.extend(
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|page| root().join(page)),
    );
    assert!(found.len() > 30, "the documents were not found");
    found
}

/// Whether code begins or ends with this line of a document.
pub(super) fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```")
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
    for file in all_pages() {
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
        "fails(\"there is no list\")",
        "is no more than",
    ] {
        assert_eq!(phrase(text), None, "{text}");
    }
}

/// The words of a line that people read: of sources in Rust the comment, of other files all.
fn words_of<'a>(file: &Path, line: &'a str) -> &'a str {
    if file.extension().is_some_and(|extension| extension == "rs") {
        return line.split_once("//").map_or("", |(_, words)| words);
    }
    line
}

#[test]
fn comments_and_documents_are_in_plain_english() {
    let mut files = all_pages();
    sources(&root().join("crates"), &mut files);
    files.extend([".ci/run", ".ci/long", "conformance/run"].map(|script| root().join(script)));
    // Suites say what differs and why; what they compare is data of others.
    let mut of_suites = Vec::new();
    files_with(&["py", "txt", "go", "rs", "ts", "mjs"], &root().join("conformance"), &mut of_suites);
    assert!(of_suites.len() > 100, "the suites were not found: {}", of_suites.len());
    of_suites.retain(|file| !TRANSCRIPTS.iter().any(|part| file.to_string_lossy().contains(part)));
    files.extend(of_suites);
    let mut problems = Vec::new();
    for file in files {
        let content = std::fs::read_to_string(&file).unwrap();
        for (n, line) in (1..).zip(content.lines()) {
            if let Some(phrase) = phrase(words_of(&file, line)) {
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
