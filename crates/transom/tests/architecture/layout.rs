//! What every crate has alike: one binary of integration tests, and a documentation of each public item.

use super::{metadata, packages, text};
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
