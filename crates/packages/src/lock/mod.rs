//! The Lock: every active package with its version and dependencies, and what follows for each of them.
//!
//! | module | what it answers |
//! |---|---|
//! | here | what an entry is, and how entries come and go |
//! | [`graph`] | which entries a dependency leads to, and which entries stand in each other's way |
//! | [`resolve`] | whether all that one revision depends on is there |
//! | [`affected`] | which revisions a change concerns |

pub mod affected;
pub mod graph;
pub mod resolve;

use crate::meta::{Dependency, Meta, Target};
use crate::reference::Reference;
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

/// The entries with the entry of one revision updated; `None` if it is up to date already. Entries of the package's other
/// revisions (`siblings`) are removed in the same write, because two entries with one source are an error.
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
}
