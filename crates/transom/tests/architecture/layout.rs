//! What every crate has alike: one binary of integration tests, a documentation of each public item, and a head that says what
//! the crate or module is for.

use super::{metadata, packages, root, sources, text};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Crates with more than one binary of integration tests, and why: each of them links the whole crate once more.
const MORE_TEST_BINARIES: &[(&str, &[&str], &str)] = &[
    ("transom-store", &["store", "kill"], "`kill` starts itself as a process and kills it"),
    (
        "transom",
        &["process", "crash", "crash_matrix", "architecture"],
        "`crash` and `crash_matrix` kill processes; `architecture` links nothing of the binary and is to be fast",
    ),
];

#[test]
fn each_crate_has_one_test_binary() {
    let metadata = metadata();
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages(&metadata) {
        let targets = package["targets"].as_array().unwrap().iter();
        let tests = targets.filter(|target| target["kind"][0] == "test").map(|target| text(&target["name"]));
        found.insert(text(&package["name"]), tests.collect());
    }
    for (name, listed, _) in MORE_TEST_BINARIES {
        assert_eq!(found.remove(name), Some(listed.iter().copied().collect()), "the test binaries of {name}");
    }
    found.retain(|_, tests| tests.len() > 1);
    assert!(found.is_empty(), "merge them, or list them with the reason: {found:#?}");
}

/// The rustc lint is off by default, and the lints of the workspace would apply it to tests and examples.
#[test]
fn public_items_are_documented() {
    let mut libraries = 0;
    for package in packages(&metadata()) {
        let manifest = Path::new(text(&package["manifest_path"]));
        let Ok(library) = std::fs::read_to_string(manifest.with_file_name("src").join("lib.rs")) else {
            continue;
        };
        libraries += 1;
        let attributes: Vec<&str> = library.lines().filter(|line| line.starts_with("#![")).collect();
        assert!(attributes.contains(&"#![warn(missing_docs)]"), "{}: {attributes:?}", manifest.display());
    }
    assert!(libraries > 20, "the libraries were not found");
}

/// The shortest text that can say what a crate or a module with parts is for, and what it guarantees. In characters.
const MIN_HEAD_CHARACTERS: usize = 100;
/// One of these says what a crate leaves to others.
const BOUNDARIES: &[&str] = &["must not know", "knows no", "Knows no", "Pure", "pure"];

/// The lines at the head of a file, without examples.
fn head(source: &str) -> Vec<&str> {
    let mut in_code = false;
    let lines = source.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    lines
        .filter(|line| {
            let fence = line.starts_with("```");
            in_code ^= fence;
            !fence && !in_code && !line.is_empty()
        })
        .collect()
}

/// What the head of a crate or of a module with parts lacks.
fn lacking(path: &Path, source: &str) -> Option<&'static str> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let has_parts = ["lib.rs", "main.rs", "mod.rs"].contains(&&*name) || path.with_extension("").is_dir();
    if !has_parts || source.contains("@generated") {
        return None;
    }
    let head = head(source);
    let sentences: Vec<&str> = head.iter().copied().filter(|line| !line.starts_with('|')).collect();
    let sentences = sentences.join(" ");
    if head.join(" ").chars().count() < MIN_HEAD_CHARACTERS || !sentences.ends_with(['.', ':']) {
        Some("say in sentences what it is for, and what it guarantees")
    } else if name == "lib.rs" && !BOUNDARIES.iter().any(|words| sentences.contains(words)) {
        Some("say what it must not know")
    } else {
        None
    }
}

#[test]
fn heads_are_read_without_examples() {
    let source = "//! A crate.\n//!\n//! | a | b |\n//! ```\n//! code\n//! ```\n//! `x` is Pure.\n\n//! not the head\n";
    assert_eq!(head(source), ["A crate.", "| a | b |", "`x` is Pure."]);
    let long = format!("//! {}word.\n", "word ".repeat(30));
    assert!(lacking(Path::new("a/mod.rs"), "//! Usages.\n").is_some());
    assert_eq!(lacking(Path::new("a/mod.rs"), &long), None);
    assert!(lacking(Path::new("a/lib.rs"), &long).is_some(), "it must not know anything");
    assert_eq!(lacking(Path::new("a/usage.rs"), "//! Usages.\n"), None);
}

#[test]
fn crates_and_modules_with_parts_say_what_they_are_for() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    // Templates of projects belong to their authors.
    files.retain(|file| !file.to_string_lossy().contains("/authoring/templates/"));
    let mut problems = Vec::new();
    for file in files {
        let source = std::fs::read_to_string(&file).unwrap();
        problems.extend(lacking(&file, &source).map(|what| format!("{}: {what}", file.display())));
    }
    assert!(problems.is_empty(), "{problems:#?}");
}
