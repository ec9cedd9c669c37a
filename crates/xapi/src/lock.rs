//! The Lock: which packages are installed, and what they depend on.

#![expect(missing_docs, reason = "names and fields are Crossplane's, which its CRDs describe")]

use crate::composition::{ConditionedStatus, nullable};
use crate::metadata::Metadata;
use crate::package::PackageKind;
use serde::{Deserialize, Serialize};

/// There is one, named [`crate::constants::LOCK_NAME`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Lock {
    pub metadata: Metadata,
    #[serde(deserialize_with = "nullable")]
    pub packages: Vec<LockPackage>,
    pub status: ConditionedStatus,
}

/// An installed package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LockPackage {
    /// Name of the package revision.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Of the package, not of its revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Deprecated in favour of `apiVersion` and `kind`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub package_type: Option<PackageKind>,
    /// The image without tag and digest.
    pub source: String,
    /// The tag or digest of the image.
    pub version: String,
    /// Written even if it is empty: the schema requires it.
    #[serde(deserialize_with = "nullable")]
    pub dependencies: Vec<Dependency>,
}

/// A package that another one needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Dependency {
    /// The image without tag and digest.
    pub package: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Deprecated in favour of `apiVersion` and `kind`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub package_type: Option<PackageKind>,
    /// A range of semantic versions, or a digest.
    pub constraints: String,
}

/// `apiVersion` and `kind` of a package, which may be given by its deprecated type alone.
fn identity<'a>(
    api_version: Option<&'a str>,
    kind: Option<&'a str>,
    package_type: Option<PackageKind>,
) -> Option<(&'a str, &'a str)> {
    match (api_version, kind) {
        (Some(api_version), Some(kind)) => Some((api_version, kind)),
        _ => package_type.map(|of| (of.api_version(), of.kind())),
    }
}

impl LockPackage {
    /// `apiVersion` and `kind` of the package.
    pub fn identity(&self) -> Option<(&str, &str)> {
        identity(self.api_version.as_deref(), self.kind.as_deref(), self.package_type)
    }
}

impl Dependency {
    /// `apiVersion` and `kind` of the package to install.
    pub fn identity(&self) -> Option<(&str, &str)> {
        identity(self.api_version.as_deref(), self.kind.as_deref(), self.package_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn entries_are_read_and_written_in_full() {
        let entry = json!({
            "name": "p-1", "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "source": "r.io/p", "version": "v1",
            "dependencies": [{"package": "r.io/q", "type": "Function", "constraints": ">=v1"}],
        });
        let lock: Lock =
            serde_json::from_value(json!({"metadata": {"name": "lock"}, "packages": [entry]})).unwrap();
        assert_eq!(json!(lock.packages), json!([entry]));
        assert_eq!(lock.packages[0].identity(), Some(("pkg.crossplane.io/v1", "Provider")));
        assert_eq!(lock.packages[0].dependencies[0].identity(), Some(("pkg.crossplane.io/v1", "Function")));
        let empty = LockPackage::default();
        assert_eq!(json!(empty)["dependencies"], json!([]), "the schema requires the list");
        assert_eq!(empty.identity(), None);
    }

    #[test]
    fn null_is_nothing() {
        let written_by_go = json!({"packages": [{"name": "p-1", "type": null, "dependencies": null}]});
        let lock: Lock = serde_json::from_value(written_by_go).unwrap();
        assert_eq!(lock.packages[0].package_type, None);
        assert!(lock.packages[0].dependencies.is_empty());
        assert_eq!(serde_json::from_value::<Lock>(json!({"packages": null})).unwrap(), Lock::default());
    }
}
