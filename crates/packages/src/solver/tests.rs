//! Tests of what is installed or changed so that dependencies are satisfied.

use super::*;
use crate::lock::graph::Mirrors;
use crate::lock::{LockDependency, LockPackage};
use transom_xapi::PackageKind;

const PROVIDER: &str = "Provider";

fn entry(name: &str, version: &str, dependencies: &[(&str, &str)]) -> LockPackage {
    let dependency = |(package, constraints): &(&str, &str)| LockDependency {
        package: format!("r.io/{package}"),
        package_type: Some(PackageKind::Provider),
        constraints: (*constraints).to_owned(),
        ..LockDependency::default()
    };
    LockPackage {
        name: name.to_owned(),
        source: format!("r.io/{}", name.split('#').next().unwrap()),
        version: version.to_owned(),
        dependencies: dependencies.iter().map(dependency).collect(),
        ..LockPackage::default()
    }
}

fn installed(name: &str, package: &str) -> InstalledPackage {
    InstalledPackage {
        api_version: "pkg.crossplane.io/v1".to_owned(),
        kind: PROVIDER.to_owned(),
        name: name.to_owned(),
        package: package.to_owned(),
        resolved: None,
    }
}

fn tags(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn needs(lock: &[LockPackage], objects: &[InstalledPackage], mode: Mode) -> Vec<String> {
    let needs = next_step(lock, objects, mode, &Mirrors::new());
    needs.iter().map(|need| format!("{} {}", need.source, need.parents.len())).collect()
}

fn chosen(
    lock: &[LockPackage],
    objects: &[InstalledPackage],
    mode: Mode,
    available: &str,
) -> Result<String, String> {
    let needs = next_step(lock, objects, mode, &Mirrors::new());
    let choice = choose(&needs[0], &tags(available), mode).map_err(|error| error.to_string())?;
    let unsatisfied: Vec<&str> = choice.unsatisfied.iter().map(|parent| parent.name.as_str()).collect();
    let action = match choice.action {
        Action::Create { name, package, kind, .. } => format!("create {kind} {name} {package}"),
        Action::Update { name, package, .. } => format!("update {name} {package}"),
        Action::Keep => "keep".to_owned(),
    };
    Ok(format!("{action} {}", unsatisfied.join(",")).trim_end().to_owned())
}

#[test]
fn all_that_is_missing_is_needed_once() {
    let lock = [
        entry("a", "v1.0.0", &[("x", ">=v1"), ("y", "*")]),
        entry("b", "v1.0.0", &[("x", "<v2"), ("a", "v9.0.0")]),
    ];
    assert_eq!(needs(&lock, &[], Mode::Default), ["r.io/x 2", "r.io/y 1"]);
    // Installed under another name, though not in the Lock yet.
    assert_eq!(needs(&lock, &[installed("other", "r.io/x:v0.1.0")], Mode::Default), ["r.io/y 1"]);
}

#[test]
fn culprits_need_nothing() {
    let lock = [
        entry("a#1", "v1.0.0", &[("x", "v9.9.9")]),
        entry("a#2", "v1.0.0", &[("x", "v9.9.9")]),
        entry("c", "v1.0.0", &[("d", "*"), ("y", "*")]),
        entry("d", "v1.0.0", &[("c", "*")]),
        entry("e", "v1.0.0", &[("x", "*")]),
    ];
    assert_eq!(needs(&lock, &[], Mode::Default), ["r.io/x 1"]);
}

#[test]
fn a_mirrored_package_satisfies_a_dependency() {
    let lock = [entry("a", "v1.0.0", &[("x", "*")])];
    let objects = [installed("x", "m.io/x:v1.0.0")];
    let mirrors = Mirrors::from([("r.io/x".to_owned(), "m.io/x".to_owned())]);
    assert!(next_step(&lock, &objects, Mode::Default, &mirrors).is_empty());
    assert_eq!(next_step(&lock, &objects, Mode::Default, &Mirrors::new()).len(), 1);
    let lock = [entry("a", "v1.0.0", &[("x", ">=v2.0.0")])];
    let need = next_step(&lock, &objects, Mode::Upgrade, &mirrors).remove(0);
    let choice = choose(&need, &tags("v1.0.0 v2.0.0"), Mode::Upgrade).unwrap();
    assert!(matches!(choice.action, Action::Update { package, .. } if package == "m.io/x:v2.0.0"));
}

#[test]
fn the_first_installation_is_the_highest_that_all_accept() {
    let lock = [entry("a", "v1.0.0", &[("x/y", ">=v1.0.0")]), entry("b", "v1.0.0", &[("x/y", "<v3.0.0")])];
    let create =
        |objects: &[InstalledPackage], available: &str| chosen(&lock, objects, Mode::Default, available);
    let created = "create Provider x-y r.io/x/y:v2.5.0";
    assert_eq!(create(&[], "v1.0.0 v2.5.0 v2 v3.0.0 latest").as_deref(), Ok(created));
    // No version satisfies b: a is served, and b is named.
    assert_eq!(create(&[], "v3.0.0 v4.0.0").as_deref(), Ok("create Provider x-y r.io/x/y:v4.0.0 b"));
    let none = create(&[], "v0.1.0-rc.1").unwrap_err();
    assert!(none.contains("dependency (r.io/x/y) does not have a valid version"), "{none}");
    assert!(none.ends_with("Constraints: [a requires >=v1.0.0, b requires <v3.0.0]"), "{none}");
    // The name is taken by a package of another source.
    let taken = create(&[installed("x-y", "other.io/x/y:v1.0.0")], "v2.5.0").unwrap();
    assert!(taken.starts_with("create Provider x-y-") && taken.len() > created.len(), "{taken}");
    // Two sources of the same path in one step.
    let mut twins = [entry("a", "v1.0.0", &[("x", "*")]), entry("b", "v1.0.0", &[("x", "*")])];
    twins[1].dependencies[0].package = "other.io/x".to_owned();
    let needs = next_step(&twins, &[], Mode::Default, &Mirrors::new());
    assert_eq!((needs.len(), needs[0].name.as_str()), (2, "x"));
    assert!(needs[1].name.starts_with("x-"), "{}", needs[1].name);
}

#[test]
fn two_parents_that_no_version_satisfies_together_are_both_named() {
    let lock = [entry("a", "v1.0.0", &[("x", "v1.0.0")]), entry("b", "v1.0.0", &[("x", "v2.0.0")])];
    let error = chosen(&lock, &[], Mode::Default, "v1.0.0 v2.0.0").unwrap_err();
    assert!(error.ends_with("Constraints: [a requires v1.0.0, b requires v2.0.0]"), "{error}");
}

#[test]
fn upgrades_take_the_lowest_and_downgrades_the_highest() {
    let lock =
        [entry("a", "v1.0.0", &[("x", ">=v1.2.0, <v2.0.0")]), entry("x", "v1.0.0", &[("z", "v7.0.0")])];
    let old = [installed("my-x", "r.io/x:v1.0.0")];
    assert!(needs(&lock, &old, Mode::Default).iter().all(|need| !need.starts_with("r.io/x")));
    // What the outdated x depends on does not count.
    assert_eq!(needs(&lock, &old, Mode::Upgrade), ["r.io/x 1"]);
    let upgrade = chosen(&lock, &old, Mode::Upgrade, "v1.0.0 v1.3.0 v1.2.0 v2.0.0");
    assert_eq!(upgrade.as_deref(), Ok("update my-x r.io/x:v1.2.0"));
    let new = [installed("my-x", "r.io/x:v2.0.0")];
    assert!(
        chosen(&lock, &new, Mode::Upgrade, "v1.2.0 v1.3.0 v2.0.0")
            .unwrap_err()
            .contains("manual intervention")
    );
    let downgrade = chosen(&lock, &new, Mode::Downgrade, "v1.2.0 v1.3.0 v2.0.0");
    assert_eq!(downgrade.as_deref(), Ok("update my-x r.io/x:v1.3.0"));
    // The object was changed already; the Lock will follow.
    assert!(
        needs(&lock, &[installed("my-x", "r.io/x:v1.2.0")], Mode::Upgrade).iter().all(|n| !n.contains("/x"))
    );
    let kept = [entry("a", "v1.0.0", &[("x", ">=v9.0.0")]), entry("b", "v1.0.0", &[("x", ">=v1.0.0")])];
    assert_eq!(chosen(&kept, &old, Mode::Upgrade, "v1.0.0 v1.3.0").as_deref(), Ok("keep a"));
}

#[test]
fn a_rewrite_may_change_the_installed_version() {
    let lock = [entry("a", "v1.0.0", &[("x", ">=v1.2.0")])];
    let object =
        InstalledPackage { resolved: Some("m.io/x:v1.2.0".to_owned()), ..installed("x", "r.io/x:v1.0.0") };
    assert!(needs(&lock, &[object], Mode::Upgrade).is_empty());
}

#[test]
fn digests_are_taken_as_they_are() {
    let (one, two) = (format!("sha256:{}", "1".repeat(64)), format!("sha256:{}", "2".repeat(64)));
    let lock = |a: &str, b: &str| [entry("a", "v1.0.0", &[("x", a)]), entry("b", "v1.0.0", &[("x", b)])];
    let need = next_step(&lock(&one, &one), &[], Mode::Default, &Mirrors::new()).remove(0);
    assert!(!need.needs_tags());
    let create = |a: &str, b: &str| chosen(&lock(a, b), &[], Mode::Default, "v1.0.0");
    assert_eq!(create(&one, &one), Ok(format!("create Provider x r.io/x@{one}")));
    assert!(create(&one, &two).unwrap_err().contains("different digests in parent constraints"));
    for (a, b) in [(one.as_str(), "*"), ("*", one.as_str())] {
        assert!(create(a, b).unwrap_err().contains("different types of parent constraints"));
        assert!(next_step(&lock(a, b), &[], Mode::Default, &Mirrors::new())[0].needs_tags());
    }
    let pinned = [installed("x", &format!("r.io/x@{one}"))];
    assert!(needs(&lock(&one, &one), &pinned, Mode::Upgrade).is_empty());
    let moved = chosen(&lock(&two, &two), &pinned, Mode::Upgrade, "v1.0.0");
    assert_eq!(moved, Ok(format!("update x r.io/x@{two}")));
    let range = chosen(&lock("*", "*"), &pinned, Mode::Upgrade, "v1.0.0").unwrap_err();
    assert!(range.contains("cannot be upgraded"), "{range}");
}

#[test]
fn what_cannot_be_installed_is_explained() {
    let nameless =
        LockDependency { package_type: None, ..entry("a", "", &[("x", "*")]).dependencies.remove(0) };
    let lock = [LockPackage { dependencies: vec![nameless], ..entry("a", "v1.0.0", &[]) }];
    assert!(
        chosen(&lock, &[], Mode::Default, "v1.0.0")
            .unwrap_err()
            .contains("encountered an invalid dependency")
    );
    let malformed = [entry("a", "v1.0.0", &[("x:v1", "*")])];
    assert!(chosen(&malformed, &[], Mode::Default, "v1.0.0").unwrap_err().contains("is not a reference"));
    let nonsense = [entry("a", "v1.0.0", &[("x", "?")]), entry("b", "v1.0.0", &[("x", "*")])];
    assert_eq!(
        chosen(&nonsense, &[], Mode::Default, "v1.0.0").as_deref(),
        Ok("create Provider x r.io/x:v1.0.0 a")
    );
}
