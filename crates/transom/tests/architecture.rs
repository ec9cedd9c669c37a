//! The crate graph is the architecture: this test holds it to the table below, and dependencies to `deny.toml`'s
//! spirit — one TLS provider, permissive licences. It also keeps files and names in shape.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which of our crates each crate may use. A new crate or edge is an architectural decision: say why in
/// ARCHITECTURE.md.
const EDGES: &[(&str, &[&str])] = &[
    ("transom-testkit", &[]),
    ("transom-go", &[]),
    ("transom-object", &["transom-go"]),
    ("transom-gotemplate", &["transom-go"]),
    ("transom-cel", &["transom-go", "transom-object"]),
    ("transom-schema", &["transom-cel", "transom-go", "transom-object"]),
    ("transom-store", &["transom-object"]),
    ("transom-function", &["transom-object"]),
    (
        "transom-apiserver",
        &["transom-cel", "transom-go", "transom-object", "transom-schema", "transom-store"],
    ),
    ("transom-xapi", &["transom-object"]),
    (
        "transom-builtins",
        &["transom-cel", "transom-function", "transom-go", "transom-gotemplate", "transom-object"],
    ),
    ("transom-compose", &["transom-function", "transom-object", "transom-xapi"]),
    ("transom-runner", &["transom-compose", "transom-function", "transom-object", "transom-xapi"]),
    ("transom-engine", &["transom-object"]),
    (
        "transom-controllers",
        &["transom-compose", "transom-engine", "transom-object", "transom-runner", "transom-xapi"],
    ),
    (
        "transom-bench",
        &["transom-builtins", "transom-compose", "transom-function", "transom-object", "transom-runner"],
    ),
    (
        "transom",
        &[
            "transom-apiserver",
            "transom-builtins",
            "transom-compose",
            "transom-controllers",
            "transom-engine",
            "transom-function",
            "transom-object",
            "transom-runner",
            "transom-schema",
            "transom-store",
            "transom-xapi",
        ],
    ),
];

const LICENCES: &[&str] = &[
    "Apache-2.0",
    "MIT",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "0BSD",
    "Unlicense",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "BSL-1.0",
    "MPL-2.0",
];
const BANNED: &[&str] = &["openssl", "openssl-sys", "native-tls", "aws-lc-sys", "serde_yaml"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn text(v: &Value) -> &str {
    v.as_str().unwrap_or_default()
}

#[test]
fn crates_use_only_what_the_table_allows() {
    let metadata = metadata();
    let members: BTreeSet<&str> =
        metadata["workspace_members"].as_array().unwrap().iter().map(text).collect();
    let ours: Vec<&Value> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|p| members.contains(text(&p["id"])))
        .collect();
    let names: BTreeSet<&str> = ours.iter().map(|p| text(&p["name"])).collect();
    let allowed: BTreeMap<&str, &[&str]> = EDGES.iter().copied().collect();
    assert_eq!(names, allowed.keys().copied().collect(), "the crates and the table of edges differ");
    for package in ours {
        let name = text(&package["name"]);
        for dependency in package["dependencies"].as_array().unwrap() {
            let on = text(&dependency["name"]);
            let test_only = dependency["kind"] == "dev";
            assert!(
                !names.contains(on) || test_only || allowed[name].contains(&on),
                "{name} may not depend on {on}; see the table in this file"
            );
        }
    }
}

/// Dependencies that no source file names, each with its reason.
const UNNAMED: &[(&str, &str, &str)] =
    &[("transom-engine", "k8s-openapi", "chooses the version of the API for kube")];

#[test]
fn every_dependency_is_used() {
    let metadata = metadata();
    let members: BTreeSet<&str> =
        metadata["workspace_members"].as_array().unwrap().iter().map(text).collect();
    let mut unused = BTreeSet::new();
    for package in metadata["packages"].as_array().unwrap() {
        if !members.contains(text(&package["id"])) {
            continue;
        }
        let mut files = Vec::new();
        sources(Path::new(text(&package["manifest_path"])).parent().unwrap(), &mut files);
        let code: Vec<String> = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
        for dependency in package["dependencies"].as_array().unwrap() {
            let (user, name) = (text(&package["name"]), text(&dependency["name"]));
            let path = name.replace('-', "_");
            if !code.iter().any(|file| names(file, &path)) {
                unused.insert((user, name));
            }
        }
    }
    let expected: BTreeSet<_> = UNNAMED.iter().map(|(user, name, _)| (*user, *name)).collect();
    assert_eq!(unused, expected, "dependencies that nothing uses, and those listed in UNNAMED");
}

/// Whether a crate is named in this file: its identifier as a whole word.
fn names(file: &str, path: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    file.match_indices(path).any(|(at, _)| {
        !file[..at].ends_with(part_of_word) && !file[at + path.len()..].starts_with(part_of_word)
    })
}

#[test]
fn dependencies_are_licensed_and_not_banned() {
    let metadata = metadata();
    let mut problems = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let (name, licence) = (text(&package["name"]), text(&package["license"]));
        if BANNED.contains(&name) {
            problems.push(format!("{name} is banned"));
        }
        let acceptable = licence.split(" OR ").flat_map(|l| l.split('/')).any(|choice| {
            choice.split(" AND ").all(|l| {
                let l = l.trim_matches(['(', ')', ' ']);
                LICENCES.contains(&l.split(" WITH ").next().unwrap_or(l).trim_end_matches('+'))
            })
        });
        if !acceptable && package["license_file"].is_null() {
            problems.push(format!("{name} has licence {licence:?}"));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_some_and(|n| n != "target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn files_are_named_sized_and_described() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    assert!(files.len() > 20, "the sources were not found");
    let mut problems = Vec::new();
    for file in files {
        let shown = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
        let content = std::fs::read_to_string(&file).unwrap();
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if ["util", "utils", "common", "helper", "helpers", "misc"].contains(&stem.as_str()) {
            problems.push(format!("{shown}: name it by its domain"));
        }
        if content.lines().count() > 800 {
            problems.push(format!("{shown}: {} lines; split it", content.lines().count()));
        }
        if !content.starts_with("//!") {
            problems.push(format!("{shown}: starts without a //! line that says what it holds"));
        }
        let ignored = concat!("#[", "ignore");
        if content.contains(ignored) {
            problems.push(format!("{shown}: an ignored test proves nothing"));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}
