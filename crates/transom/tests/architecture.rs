//! The crate graph is the architecture. These tests compare it with the tables below and with ARCHITECTURE.md, in both
//! directions: an edge that is not listed fails, and so does a listed edge that does not exist. The modules check
//! dependencies on crates of others, budgets for sizes, the types of errors, and the use of upstream's test tables.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

#[path = "architecture/bans.rs"]
mod bans;
#[path = "architecture/budgets.rs"]
mod budgets;
#[path = "architecture/conformance_coverage.rs"]
mod conformance_coverage;
#[path = "architecture/dependencies.rs"]
mod dependencies;
#[path = "architecture/documents.rs"]
mod documents;
#[path = "architecture/errors.rs"]
mod errors;
#[path = "architecture/invariants.rs"]
mod invariants;
#[path = "architecture/layout.rs"]
mod layout;
#[path = "architecture/paths.rs"]
mod paths;
#[path = "architecture/proofs.rs"]
mod proofs;
#[path = "architecture/stated_budgets.rs"]
mod stated_budgets;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which of our crates each crate may use. A new crate or edge is an architectural decision: say why in
/// ARCHITECTURE.md.
const EDGES: &[(&str, &[&str])] = &[
    ("transom-testkit", &["transom-apiserver", "transom-object", "transom-store"]),
    ("transom-go", &[]),
    ("transom-metrics", &[]),
    ("transom-object", &["transom-go"]),
    ("transom-gotemplate", &["transom-go"]),
    ("transom-cel", &["transom-go", "transom-object"]),
    ("transom-schema", &["transom-cel", "transom-go", "transom-object"]),
    ("transom-admission", &["transom-cel", "transom-go", "transom-object", "transom-schema"]),
    ("transom-kinds", &["transom-cel", "transom-go", "transom-object", "transom-schema"]),
    ("transom-crd", &["transom-cel", "transom-kinds", "transom-object", "transom-schema"]),
    ("transom-openapi", &["transom-kinds", "transom-object"]),
    ("transom-store", &["transom-object"]),
    ("transom-function", &["transom-metrics", "transom-object", "transom-telemetry"]),
    (
        "transom-apiserver",
        &[
            "transom-admission",
            "transom-audit",
            "transom-crd",
            "transom-kinds",
            "transom-metrics",
            "transom-object",
            "transom-openapi",
            "transom-rbac",
            "transom-schema",
            "transom-store",
        ],
    ),
    ("transom-conversion", &["transom-cel", "transom-object", "transom-schema"]),
    ("transom-rbac", &["transom-object"]),
    ("transom-audit", &["transom-object"]),
    ("transom-oidc", &["transom-cel", "transom-object"]),
    ("transom-xapi", &["transom-object"]),
    (
        "transom-builtins",
        &["transom-cel", "transom-function", "transom-go", "transom-gotemplate", "transom-object"],
    ),
    (
        "transom-compose",
        &["transom-function", "transom-go", "transom-object", "transom-telemetry", "transom-xapi"],
    ),
    (
        "transom-runner",
        &[
            "transom-compose",
            "transom-function",
            "transom-metrics",
            "transom-object",
            "transom-telemetry",
            "transom-xapi",
        ],
    ),
    ("transom-engine", &["transom-metrics", "transom-object", "transom-telemetry"]),
    ("transom-provider", &["transom-engine", "transom-object", "transom-xapi"]),
    (
        "transom-providers",
        &[
            "transom-cel",
            "transom-engine",
            "transom-hosting",
            "transom-https",
            "transom-object",
            "transom-provider",
        ],
    ),
    ("transom-hosting", &["transom-engine", "transom-object"]),
    ("transom-console", &["transom-engine", "transom-hosting", "transom-object"]),
    (
        "transom-rollout",
        &[
            "transom-builtins",
            "transom-compose",
            "transom-console",
            "transom-engine",
            "transom-object",
            "transom-runner",
            "transom-xapi",
        ],
    ),
    ("transom-chart", &["transom-gotemplate", "transom-object"]),
    ("transom-migrate", &["transom-engine", "transom-object", "transom-xapi"]),
    ("transom-packages", &["transom-go", "transom-object", "transom-xapi"]),
    ("transom-oci", &["transom-go", "transom-https", "transom-packages"]),
    ("transom-authoring", &[]),
    ("transom-https", &[]),
    ("transom-container", &[]),
    ("transom-telemetry", &[]),
    ("transom-deploy", &["transom-engine", "transom-object", "transom-runner", "transom-xapi"]),
    (
        "transom-xfn",
        &[
            "transom-container",
            "transom-function",
            "transom-https",
            "transom-object",
            "transom-packages",
            "transom-runner",
            "transom-xapi",
        ],
    ),
    (
        "transom-machine",
        &[
            "transom-container",
            "transom-deploy",
            "transom-engine",
            "transom-function",
            "transom-object",
            "transom-oci",
            "transom-packages",
            "transom-runner",
            "transom-xapi",
            "transom-xfn",
        ],
    ),
    (
        "transom-controllers",
        &[
            "transom-compose",
            "transom-conversion",
            "transom-engine",
            "transom-object",
            "transom-packages",
            "transom-runner",
            "transom-xapi",
        ],
    ),
    (
        "transom-bench",
        &[
            "transom-builtins",
            "transom-compose",
            "transom-function",
            "transom-object",
            "transom-packages",
            "transom-runner",
        ],
    ),
    (
        "transom",
        &[
            "transom-apiserver",
            "transom-audit",
            "transom-authoring",
            "transom-builtins",
            "transom-chart",
            "transom-compose",
            "transom-console",
            "transom-container",
            "transom-controllers",
            "transom-deploy",
            "transom-engine",
            "transom-function",
            "transom-go",
            "transom-gotemplate",
            "transom-hosting",
            "transom-https",
            "transom-machine",
            "transom-metrics",
            "transom-migrate",
            "transom-object",
            "transom-oci",
            "transom-oidc",
            "transom-packages",
            "transom-provider",
            "transom-providers",
            "transom-rollout",
            "transom-runner",
            "transom-schema",
            "transom-store",
            "transom-telemetry",
            "transom-xapi",
            "transom-xfn",
        ],
    ),
];

/// Which of our crates the tests of a crate use beyond that. The two halves meet here: controllers and CRDs are tested on
/// the real server. `transom-testkit` may be used by all.
const TEST_EDGES: &[(&str, &[&str])] = &[
    ("transom", &["transom-bench", "transom-cel"]),
    ("transom-authoring", &["transom-object"]),
    ("transom-builtins", &["transom-schema"]),
    ("transom-deploy", &["transom-apiserver", "transom-function"]),
    ("transom-rollout", &["transom-apiserver", "transom-store"]),
    (
        "transom-controllers",
        &[
            "transom-apiserver",
            "transom-builtins",
            "transom-deploy",
            "transom-function",
            "transom-provider",
            "transom-providers",
            "transom-store",
        ],
    ),
];

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

/// A package in the output of `cargo metadata`.
type Package = Value;

/// The packages of the workspace.
fn packages(metadata: &Value) -> impl Iterator<Item = &Package> {
    let members: BTreeSet<&str> =
        metadata["workspace_members"].as_array().unwrap().iter().map(text).collect();
    metadata["packages"].as_array().unwrap().iter().filter(move |p| members.contains(text(&p["id"])))
}

type Edges<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Which crates of the workspace each crate depends on: for its library or binary, or for its tests only.
fn edges(metadata: &Value, for_tests: bool) -> Edges<'_> {
    let names: BTreeSet<&str> = packages(metadata).map(|p| text(&p["name"])).collect();
    let mut edges = Edges::new();
    for package in packages(metadata) {
        let on = edges.entry(text(&package["name"])).or_default();
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let dependencies = dependencies.filter(|d| (d["kind"] == "dev") == for_tests);
        on.extend(dependencies.map(|d| text(&d["name"])).filter(|name| names.contains(name)));
    }
    edges
}

fn table(edges: &'static [(&str, &[&str])]) -> Edges<'static> {
    edges.iter().map(|(user, on)| (*user, on.iter().copied().collect())).collect()
}

#[test]
fn crates_use_exactly_what_the_table_allows() {
    let metadata = metadata();
    assert_eq!(edges(&metadata, false), table(EDGES), "left: Cargo.toml; right: the table EDGES");
}

#[test]
fn tests_use_exactly_what_the_table_allows() {
    let metadata = metadata();
    let mut found = edges(&metadata, true);
    found.values_mut().for_each(|on| on.retain(|name| *name != "transom-testkit"));
    found.retain(|_, on| !on.is_empty());
    assert_eq!(found, table(TEST_EDGES), "left: Cargo.toml; right: the table TEST_EDGES");
}

#[test]
fn a_plain_cargo_run_runs_transom() {
    // The README's first command is `cargo run --release -- up`, which cargo refuses if it has a choice of binaries.
    let metadata = metadata();
    let members = metadata["workspace_default_members"].as_array().unwrap();
    let is_default = |p: &&Package| members.contains(&p["id"]);
    let targets = packages(&metadata).filter(is_default).flat_map(|p| p["targets"].as_array().unwrap());
    let binaries = targets.filter(|target| target["kind"][0] == "bin").map(|target| text(&target["name"]));
    assert_eq!(binaries.collect::<Vec<_>>(), ["transom"]);
}

/// A line of the map in ARCHITECTURE.md: `2  name   what it is → a, b`.
#[test]
fn the_map_in_the_documentation_is_true() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let map = page.split("```").nth(1).unwrap();
    let mut documented: Edges<'_> = BTreeMap::new();
    let (mut levels, mut level) = (BTreeMap::new(), 0);
    let prefixed = |name: &str| if name == "transom" { name.to_owned() } else { format!("transom-{name}") };
    let metadata = metadata();
    let found = edges(&metadata, false);
    let known = |name: &str| found.keys().find(|known| **known == prefixed(name)).copied();
    for line in map.lines().filter(|line| !line.trim().is_empty()) {
        let words = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        let name = words.split_whitespace().next().unwrap_or_default();
        let name = known(name).unwrap_or_else(|| panic!("there is no crate {name}: {line}"));
        level = line.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(level);
        levels.insert(name, level);
        let on = words.rsplit_once('→').map_or("", |(_, on)| on);
        let each = on.split(',').map(str::trim).filter(|on| !on.is_empty());
        let on =
            each.map(|on| known(on).unwrap_or_else(|| panic!("there is no crate {on}: {line}"))).collect();
        documented.insert(name, on);
    }
    assert_eq!(documented, found, "left: the map in ARCHITECTURE.md; right: Cargo.toml");
    for (name, level) in &levels {
        let above = found[name].iter().map(|on| levels[on] + 1).max().unwrap_or(0);
        assert_eq!(*level, above, "the level of {name} in the map: one above the highest that it depends on");
    }
}

#[test]
fn all_crates_have_the_lints_of_the_workspace() {
    for package in packages(&metadata()) {
        let manifest = std::fs::read_to_string(text(&package["manifest_path"])).unwrap();
        let (_, lints) = manifest.split_once("[lints]\n").unwrap_or_default();
        assert!(lints.starts_with("workspace = true"), "{}", text(&package["manifest_path"]));
    }
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
