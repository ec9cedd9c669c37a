//! The Lock: every active package with its version and dependencies, and what follows for each of them.
//!
//! | module | what it answers |
//! |---|---|
//! | here | what an entry is, and how entries come and go |
//! | [`graph`] | which entries a dependency leads to, and which entries stand in each other's way |
//! | [`resolve`] | whether all that one revision depends on is there |

pub mod graph;
pub mod resolve;

use crate::meta::{Dependency, Meta, Target};
use crate::reference::Reference;
use graph::Mirrors;
use std::collections::{BTreeMap, BTreeSet};
use transom_xapi::PackageKind;

pub use transom_xapi::lock::{Dependency as LockDependency, LockPackage};

/// The entry of a revision: its name, the kind of its package, its original image and its meta object.
pub fn entry_for(revision: &str, kind: PackageKind, image: &Reference, meta: &Meta) -> LockPackage {
    LockPackage {
        name: revision.to_owned(),
        api_version: Some(kind.api_version().to_owned()),
        kind: Some(kind.kind().to_owned()),
        package_type: None,
        source: image.source(),
        version: image.identifier().to_owned(),
        dependencies: meta.dependencies.iter().map(locked).collect(),
    }
}

fn locked(dependency: &Dependency) -> LockDependency {
    let plain = LockDependency {
        package: dependency.package.clone(),
        constraints: dependency.version.clone(),
        ..LockDependency::default()
    };
    match &dependency.target {
        Target::Object { api_version, kind } => {
            LockDependency { api_version: Some(api_version.clone()), kind: Some(kind.clone()), ..plain }
        }
        Target::Type(kind) => LockDependency { package_type: Some(*kind), ..plain },
    }
}

/// The entries with that of one revision brought up to date; `None` when it is. Entries of the package's other revisions
/// (`siblings`) leave in the same write: a new revision must not meet its predecessor as another package of its source.
pub fn with_entry(
    packages: &[LockPackage],
    entry: &LockPackage,
    siblings: &[&str],
) -> Option<Vec<LockPackage>> {
    let mut kept = Vec::with_capacity(packages.len() + 1);
    let mut found = false;
    for package in packages {
        if package.name == entry.name {
            // A name that is there twice keeps its first place only.
            if !found {
                kept.push(entry.clone());
            }
            found = true;
        } else if !siblings.contains(&package.name.as_str()) {
            kept.push(package.clone());
        }
    }
    if !found {
        kept.push(entry.clone());
    }
    (kept != packages).then_some(kept)
}

/// The entries without that of a revision; `None` when it has none.
pub fn without(packages: &[LockPackage], revision: &str) -> Option<Vec<LockPackage>> {
    let kept: Vec<LockPackage> =
        packages.iter().filter(|package| package.name != revision).cloned().collect();
    (kept.len() < packages.len()).then_some(kept)
}

/// The names of the entries that a change of the Lock concerns: those that changed, those of a source that an entry
/// came to, left or changed, and all that depend on one of these, directly or not.
pub fn concerned<'l>(
    before: &[LockPackage],
    after: &'l [LockPackage],
    mirrors: &Mirrors,
) -> BTreeSet<&'l str> {
    let place = |source: &str| mirrors.get(source).map_or(source, String::as_str).to_owned();
    let mut dependents: BTreeMap<String, Vec<&LockPackage>> = BTreeMap::new();
    let mut at: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for package in after {
        at.entry(place(&package.source)).or_default().push(&package.name);
        for dependency in &package.dependencies {
            dependents.entry(place(&dependency.package)).or_default().push(package);
        }
    }
    let only_in = |some: &[LockPackage], others: &[LockPackage]| -> Vec<String> {
        let known: BTreeMap<&str, &LockPackage> = others.iter().map(|p| (p.name.as_str(), p)).collect();
        let changed = some.iter().filter(|p| known.get(p.name.as_str()) != Some(p));
        changed.map(|p| place(&p.source)).collect()
    };
    let mut places = [only_in(before, after), only_in(after, before)].concat();
    let (mut seen, mut concerned) = (BTreeSet::new(), BTreeSet::new());
    while let Some(here) = places.pop() {
        concerned.extend(at.get(&here).into_iter().flatten().copied());
        for dependent in dependents.get(&here).into_iter().flatten() {
            concerned.insert(&dependent.name);
            if seen.insert(place(&dependent.source)) {
                places.push(place(&dependent.source));
            }
        }
    }
    concerned
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn meta() -> Meta {
        let object = json!({
            "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Configuration", "metadata": {"name": "c"},
            "spec": {"dependsOn": [
                {"apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "package": "a.b/f", "version": ">=v1"},
                {"provider": "a.b/p", "version": "v2"},
            ]},
        });
        Meta::read(&object).unwrap().unwrap()
    }

    fn entry(image: &str) -> LockPackage {
        entry_for("c-1", PackageKind::Configuration, &Reference::parse(image).unwrap(), &meta())
    }

    #[test]
    fn an_entry_has_crossplanes_fields() {
        let expected = json!({
            "name": "c-1", "apiVersion": "pkg.crossplane.io/v1", "kind": "Configuration", "source": "a.b/c",
            "version": "v1",
            "dependencies": [
                {"package": "a.b/f", "apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "constraints": ">=v1"},
                {"package": "a.b/p", "type": "Provider", "constraints": "v2"},
            ],
        });
        assert_eq!(json!(entry("a.b/c:v1")), expected);
        let digest = format!("sha256:{}", "a".repeat(64));
        assert_eq!(entry(&format!("a.b/c:v1@{digest}")).version, digest);
    }

    #[test]
    fn entries_are_written_once() {
        let other = LockPackage { name: "d-1".to_owned(), ..LockPackage::default() };
        let first = with_entry(std::slice::from_ref(&other), &entry("a.b/c:v1"), &[]).unwrap();
        assert_eq!(first, [other.clone(), entry("a.b/c:v1")]);
        assert_eq!(with_entry(&first, &entry("a.b/c:v1"), &[]), None);
        // Another tag of the same bytes, and the same bytes in another registry.
        for image in ["a.b/c:v2", "m.n/c:v1"] {
            assert_eq!(with_entry(&first, &entry(image), &[]).unwrap(), [other.clone(), entry(image)]);
        }
        let next = LockPackage { name: "c-2".to_owned(), ..entry("a.b/c:v2") };
        assert_eq!(with_entry(&first, &next, &["c-1"]).unwrap(), [other.clone(), next]);
        assert_eq!(without(&first, "c-1").unwrap(), [other]);
        assert_eq!(without(&first, "c-9"), None);
        let twice = [entry("a.b/c:v1"), entry("a.b/c:v1")];
        assert_eq!(with_entry(&twice, &entry("a.b/c:v1"), &[]).unwrap(), [entry("a.b/c:v1")]);
    }

    #[test]
    fn a_change_concerns_those_that_depend_on_it() {
        let entry = |name: &str, source: &str, version: &str, on: &[&str]| LockPackage {
            name: name.to_owned(),
            source: source.to_owned(),
            version: version.to_owned(),
            dependencies: on
                .iter()
                .map(|on| LockDependency { package: (*on).to_owned(), ..LockDependency::default() })
                .collect(),
            ..LockPackage::default()
        };
        let all = [
            entry("top-1", "r.io/top", "v1", &["r.io/middle"]),
            entry("middle-1", "r.io/middle", "v1", &["r.io/f"]),
            entry("f-1", "r.io/f", "v1", &[]),
            entry("mirrored-1", "r.io/mirrored", "v1", &["mirror.io/f"]),
            entry("other-1", "r.io/other", "v1", &["r.io/g"]),
        ];
        let mirrors = Mirrors::from([("r.io/f".to_owned(), "mirror.io/f".to_owned())]);
        let names = |after: &[LockPackage]| -> Vec<String> {
            concerned(&all, after, &mirrors).into_iter().map(str::to_owned).collect()
        };
        let with = |changed: LockPackage| -> Vec<LockPackage> {
            all.iter().map(|p| if p.source == changed.source { changed.clone() } else { p.clone() }).collect()
        };
        assert_eq!(names(&all), [""; 0]);
        let upgraded = with(entry("f-2", "r.io/f", "v2", &[]));
        assert_eq!(names(&upgraded), ["f-2", "middle-1", "mirrored-1", "top-1"]);
        let retagged = with(entry("f-1", "r.io/f", "v1.1", &[]));
        assert_eq!(names(&retagged), ["f-1", "middle-1", "mirrored-1", "top-1"]);
        let removed: Vec<_> = all.iter().filter(|p| p.name != "f-1").cloned().collect();
        assert_eq!(names(&removed), ["middle-1", "mirrored-1", "top-1"]);
        let twice = [&all[..], &[entry("again-1", "r.io/other", "v2", &[])]].concat();
        assert_eq!(names(&twice), ["again-1", "other-1"]);
        let cycle = with(entry("f-1", "r.io/f", "v1", &["r.io/top"]));
        assert_eq!(names(&cycle), ["f-1", "middle-1", "mirrored-1", "top-1"]);
    }
}
