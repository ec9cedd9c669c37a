//! Dependencies on crates of others: licences, bans, sources, versions, and whether they are used. The rules are
//! those of `deny.toml`, in a test that needs no tool and no network.

use super::budgets::code_only;
use super::{Package, metadata, packages, root, sources, text};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A table of `deny.toml`, without its comments.
fn rules(table: &str) -> String {
    let file = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let lines = file.lines().filter(|line| !line.trim_start().starts_with('#'));
    let file = lines.collect::<Vec<_>>().join("\n");
    let rest = file.split_once(&format!("[{table}]")).unwrap_or_else(|| panic!("no table {table}")).1;
    rest.split("\n[").next().unwrap_or_default().to_owned()
}

/// The texts in quotes.
fn quoted(text: &str) -> BTreeSet<&str> {
    text.split('"').skip(1).step_by(2).collect()
}

/// The names of the crates that `deny.toml` bans.
fn banned(rules: &str) -> BTreeSet<&str> {
    rules.split("crate = \"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// Dependencies that no source file names, each with its reason.
const UNNAMED: &[(&str, &str, &str)] = &[
    ("transom-engine", "k8s-openapi", "chooses the version of the API for kube"),
    ("transom-deploy", "rustls-webpki", "its library is named webpki"),
    ("transom-oci", "rustls-webpki", "its library is named webpki"),
];

#[test]
fn every_dependency_is_used() {
    let metadata = metadata();
    let mut unused = BTreeSet::new();
    for package in packages(&metadata) {
        let folder = Path::new(text(&package["manifest_path"])).parent().unwrap();
        let (mut all, mut shipped) = (Vec::new(), Vec::new());
        sources(folder, &mut all);
        sources(&folder.join("src"), &mut shipped);
        let read = |files: Vec<_>| -> Vec<String> {
            files.into_iter().map(|file| code_only(&std::fs::read_to_string(file).unwrap())).collect()
        };
        let (all, shipped) = (read(all), read(shipped));
        for dependency in package["dependencies"].as_array().unwrap() {
            let (user, name) = (text(&package["name"]), text(&dependency["name"]));
            let path = name.replace('-', "_");
            let code = if dependency["kind"].is_null() { &shipped } else { &all };
            if !code.iter().any(|file| names(file, &path)) {
                unused.insert((user, name));
            }
        }
    }
    let expected: BTreeSet<_> = UNNAMED.iter().map(|(user, name, _)| (*user, *name)).collect();
    assert_eq!(unused, expected, "dependencies that no source uses, and those listed in UNNAMED");
}

/// Whether this code uses a crate: the crate's identifier starts a path, or is imported.
fn names(code: &str, path: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(path).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + path.len()..]);
        let starts = !before.ends_with(part_of_word) && (!before.ends_with("::") || before.ends_with(" ::"));
        starts && (after.starts_with("::") || before.ends_with("use ") && !after.starts_with(part_of_word))
    })
}

#[test]
fn a_crate_is_used_by_paths_and_imports_only() {
    for code in ["use one;", "pub use one as two;", "one::run()", "#[one::main]", "fn f(x: &one::T) {}"] {
        assert!(names(code, "one"), "{code}");
    }
    let others = ["let one = 1;", "two::one::run()", "use someone;", "someone::run()", "use one_more::x;"];
    for code in others.into_iter().chain([&*code_only("// one::run()\nlet x = \"one::run()\";")]) {
        assert!(!names(code, "one"), "{code}");
    }
}

#[test]
fn a_dependency_is_not_listed_for_tests_again() {
    let metadata = metadata();
    let mut again = Vec::new();
    for package in packages(&metadata) {
        let all = package["dependencies"].as_array().unwrap();
        let optional = |d: &Package| d["optional"] == true;
        for shipped in all.iter().filter(|d| d["kind"].is_null() && !optional(d)) {
            let same = |d: &&Package| d["kind"] == "dev" && d["name"] == shipped["name"];
            let adds_nothing = |d: &&Package| d["features"] == shipped["features"];
            again
                .extend(all.iter().filter(same).filter(adds_nothing).map(|d| (&package["name"], &d["name"])));
        }
    }
    assert!(again.is_empty(), "tests can use the dependencies of their crate: {again:?}");
}

#[test]
fn every_dependency_of_the_workspace_has_a_user() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let section = manifest.split("[workspace.dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let declared: BTreeSet<&str> =
        section.lines().filter_map(|line| line.split_once([' ', '.'])).map(|(name, _)| name.trim()).collect();
    let metadata = metadata();
    let used: BTreeSet<&str> = packages(&metadata)
        .flat_map(|package| package["dependencies"].as_array().unwrap())
        .map(|dependency| text(&dependency["name"]))
        .collect();
    let unused: Vec<&&str> = declared
        .iter()
        .filter(|name| !name.is_empty() && !name.starts_with('#') && !used.contains(**name))
        .collect();
    assert!(unused.is_empty(), "no crate uses {unused:?} of [workspace.dependencies]");
}

#[test]
fn dependencies_are_licensed_and_not_banned() {
    let metadata = metadata();
    let (licences, bans) = (rules("licenses"), rules("bans"));
    let (licences, banned) = (quoted(&licences), banned(&bans));
    assert!(licences.contains("MIT") && banned.contains("openssl"), "deny.toml: {licences:?} {banned:?}");
    let mut problems = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let (name, licence) = (text(&package["name"]), text(&package["license"]));
        if banned.contains(name) {
            problems.push(format!("{name} is banned"));
        }
        let acceptable = licence.split(" OR ").flat_map(|l| l.split('/')).any(|choice| {
            choice.split(" AND ").all(|l| {
                let l = l.trim_matches(['(', ')', ' ']);
                licences.contains(l.split(" WITH ").next().unwrap_or(l).trim_end_matches('+'))
            })
        });
        if !acceptable && package["license_file"].is_null() {
            problems.push(format!("{name} has licence {licence:?}"));
        }
        let source = text(&package["source"]);
        if !source.is_empty() && !source.starts_with("registry+") && !source.starts_with("sparse+") {
            problems.push(format!("{name} comes from {source}, not from a registry"));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

/// Crates that are built in several versions, because crates of others need them. A new one is a decision: it costs build
/// time and size.
const SEVERAL_VERSIONS: &[&str] = &[
    "base64",
    "bit-vec",
    "bitflags",
    "cpufeatures",
    "getrandom",
    "hashbrown",
    "r-efi",
    "rand",
    "rand_chacha",
    "rand_core",
    "syn",
    "wasi",
];

#[test]
fn crates_of_others_are_built_in_one_version() {
    let metadata = metadata();
    let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
    let all: &Vec<Package> = metadata["packages"].as_array().unwrap();
    for package in all {
        *versions.entry(text(&package["name"])).or_default() += 1;
    }
    // Crates for Windows are not built on the systems that are supported.
    let several: BTreeSet<&str> = versions
        .into_iter()
        .filter(|(name, count)| *count > 1 && !name.starts_with("windows"))
        .map(|(name, _)| name)
        .collect();
    let expected: BTreeSet<&str> = SEVERAL_VERSIONS.iter().copied().collect();
    assert_eq!(several, expected, "crates with several versions, and those listed in SEVERAL_VERSIONS");
}
