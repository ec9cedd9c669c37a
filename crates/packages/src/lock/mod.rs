//! The Lock: every active package with its version and dependencies, and what follows for each of them.
//!
//! | module | what it answers |
//! |---|---|
//! | here | what an entry is, and how entries come and go |
//! | [`graph`] | which entries a dependency leads to, and which entries stand in each other's way |
//! | [`resolve`] | whether all that one revision depends on is there |

pub mod graph;
pub mod resolve;

use crate::kind::PackageKind;
use crate::meta::{Dependency, Meta, Target, nullable};
use crate::reference::Reference;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use transom_xapi::constants::kind::PKG_V1;

/// The name of the only Lock.
pub const NAME: &str = "lock";
/// Its `apiVersion`.
pub const API_VERSION: &str = "pkg.crossplane.io/v1beta1";
/// Its kind.
pub const KIND: &str = "Lock";

/// An entry of the Lock: an active revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockPackage {
    /// The name of the revision.
    #[serde(default)]
    pub name: String,
    /// Group and version of the package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// The kind of the package, not of the revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The same in the deprecated form, which old entries have.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub package_type: Option<String>,
    /// The reference without tag and digest, as the user wrote it: before any rewriting.
    #[serde(default)]
    pub source: String,
    /// The tag or digest.
    #[serde(default)]
    pub version: String,
    /// What it depends on directly.
    #[serde(default, deserialize_with = "nullable")]
    pub dependencies: Vec<LockDependency>,
}

/// A dependency of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockDependency {
    /// The source of the package.
    #[serde(default)]
    pub package: String,
    /// Group and version of the package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// The kind of the package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The same in the deprecated form.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub package_type: Option<String>,
    /// A range of versions, or a digest.
    #[serde(default)]
    pub constraints: String,
}

impl LockPackage {
    /// The entry of a revision: its name, the kind of its package, its original image and its meta object.
    pub fn of(revision: &str, kind: PackageKind, image: &Reference, meta: &Meta) -> Self {
        Self {
            name: revision.to_owned(),
            api_version: Some(PKG_V1.to_owned()),
            kind: Some(kind.as_str().to_owned()),
            package_type: None,
            source: image.source(),
            version: image.identifier().to_owned(),
            dependencies: meta.dependencies.iter().map(LockDependency::of).collect(),
        }
    }
}

impl LockDependency {
    fn of(dependency: &Dependency) -> Self {
        let plain = Self {
            package: dependency.package.clone(),
            constraints: dependency.version.clone(),
            ..Self::default()
        };
        match &dependency.target {
            Target::Object { api_version, kind } => {
                Self { api_version: Some(api_version.clone()), kind: Some(kind.clone()), ..plain }
            }
            Target::Type(kind) => Self { package_type: Some(kind.as_str().to_owned()), ..plain },
        }
    }

    /// `apiVersion` and kind of the object that installs it; `None` when it names neither a kind nor a known type.
    pub fn target(&self) -> Option<(String, String)> {
        if let (Some(api_version), Some(kind)) = (&self.api_version, &self.kind) {
            return Some((api_version.clone(), kind.clone()));
        }
        let kind = PackageKind::named(self.package_type.as_deref()?)?;
        Some((PKG_V1.to_owned(), kind.as_str().to_owned()))
    }
}

/// The Lock cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the packages of Lock {NAME:?} cannot be read: {problem}")]
pub struct LockError {
    /// What is wrong.
    pub problem: String,
}

/// The entries of the Lock.
pub fn packages(lock: &Value) -> Result<Vec<LockPackage>, LockError> {
    match lock.get("packages") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(list) => Vec::deserialize(list).map_err(|error| LockError { problem: error.to_string() }),
    }
}

/// Writes the entries of the Lock.
pub fn set_packages(lock: &mut Value, packages: &[LockPackage]) -> Result<(), LockError> {
    let list = serde_json::to_value(packages).map_err(|error| LockError { problem: error.to_string() })?;
    if let Some(lock) = lock.as_object_mut() {
        lock.insert("packages".to_owned(), list);
    }
    Ok(())
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
        LockPackage::of("c-1", PackageKind::Configuration, &Reference::parse(image).unwrap(), &meta())
    }

    #[test]
    fn fields_are_crossplanes() {
        let mut lock = json!({"metadata": {"name": "lock"}});
        assert_eq!(packages(&lock), Ok(Vec::new()));
        set_packages(&mut lock, &[entry("a.b/c:v1")]).unwrap();
        let expected = json!([{
            "name": "c-1", "apiVersion": "pkg.crossplane.io/v1", "kind": "Configuration", "source": "a.b/c",
            "version": "v1",
            "dependencies": [
                {"package": "a.b/f", "apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "constraints": ">=v1"},
                {"package": "a.b/p", "type": "Provider", "constraints": "v2"},
            ],
        }]);
        assert_eq!(lock["packages"], expected);
        assert_eq!(packages(&lock), Ok(vec![entry("a.b/c:v1")]));
        let old = json!({"packages": [{"name": "x", "type": "Provider", "source": "a.b/x", "version": "v1",
            "dependencies": null}]});
        assert_eq!(packages(&old).unwrap()[0].package_type.as_deref(), Some("Provider"));
        assert!(packages(&json!({"packages": {}})).is_err());
    }

    #[test]
    fn dependencies_name_the_object_that_installs_them() {
        let targets: Vec<_> = entry("a.b/c:v1").dependencies.iter().map(LockDependency::target).collect();
        let target = |kind: &str| Some(("pkg.crossplane.io/v1".to_owned(), kind.to_owned()));
        assert_eq!(targets, [target("Function"), target("Provider")]);
        assert_eq!(LockDependency::default().target(), None);
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
