//! The meta object of a package, from `crossplane.yaml`.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use transom_object::meta;
use transom_xapi::PackageKind;
use transom_xapi::function::CAPABILITY_COMPOSITION;

/// What a package says about itself, in the terms of version v1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The kind of the package.
    pub kind: PackageKind,
    /// Its name.
    pub name: String,
    /// Labels, which its revisions get.
    pub labels: BTreeMap<String, String>,
    /// Annotations, which its revisions get.
    pub annotations: BTreeMap<String, String>,
    /// The versions of Crossplane that it works with.
    pub crossplane: Option<String>,
    /// The packages that it depends on.
    pub dependencies: Vec<Dependency>,
    /// What it can do: opaque words, compared without case and punctuation. A Function that names none can compose:
    /// functions are older than capabilities.
    pub capabilities: Vec<String>,
}

/// A package that another one depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// What is to be installed.
    pub target: Target,
    /// The source: registry and repository, as written.
    pub package: String,
    /// A range of versions, or a digest.
    pub version: String,
}

/// The object that installs a dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Any kind with a field `spec.package`.
    Object {
        /// Its group and version.
        api_version: String,
        /// Its kind.
        kind: String,
    },
    /// The deprecated form, which names the kind of package only.
    Type(PackageKind),
}

/// The most dependencies of a package. All of them are in the Lock, which is one object for all packages.
const DEPENDENCIES_MAX: usize = 500;
/// The longest package or version of a dependency, in bytes.
const DEPENDENCY_BYTES_MAX: usize = 1024;

/// Why a meta object cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetaError {
    /// A dependency without a package.
    #[error(
        "spec.dependsOn[{index}]: encountered an invalid dependency: package dependencies must specify either a valid \
         type, or an explicit apiVersion, kind, and package"
    )]
    Dependency {
        /// Its place in the list.
        index: usize,
    },
    /// More dependencies than a package may have.
    #[error("spec.dependsOn: it has {count} dependencies; at most {DEPENDENCIES_MAX} are allowed")]
    TooManyDependencies {
        /// How many.
        count: usize,
    },
    /// A dependency that is longer than any that can be meant.
    #[error("spec.dependsOn[{index}]: its package and version may have {DEPENDENCY_BYTES_MAX} bytes each")]
    DependencyTooLong {
        /// Its place in the list.
        index: usize,
    },
    /// A field of another type than it must have.
    #[error("the fields of {} cannot be read: {problem}", kind.kind())]
    Malformed {
        /// The kind of the package.
        kind: PackageKind,
        /// What is wrong.
        problem: String,
    },
}

#[derive(Deserialize)]
struct Fields {
    #[serde(default, deserialize_with = "nullable")]
    metadata: Metadata,
    #[serde(default, deserialize_with = "nullable")]
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    annotations: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    crossplane: Option<Crossplane>,
    #[serde(deserialize_with = "nullable")]
    depends_on: Vec<DependsOn>,
    capabilities: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Crossplane {
    #[serde(default, deserialize_with = "nullable")]
    version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DependsOn {
    api_version: Option<String>,
    kind: Option<String>,
    package: Option<String>,
    provider: Option<String>,
    configuration: Option<String>,
    function: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    version: String,
}

/// Reads `null` as nothing, as Go does.
pub(crate) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl Meta {
    /// Reads a meta object of any version. `None` when it is an object of another kind.
    pub fn read(object: &Value) -> Option<Result<Self, MetaError>> {
        let kind = PackageKind::of_meta(meta::api_version(object), meta::kind(object))?;
        Some(Self::of_kind(kind, object))
    }

    /// The versions differ in fields that had an effect in old versions of Crossplane only, such as the image of the
    /// controller: reading what they share is the conversion to v1.
    fn of_kind(kind: PackageKind, object: &Value) -> Result<Self, MetaError> {
        let fields = Fields::deserialize(object)
            .map_err(|error| MetaError::Malformed { kind, problem: error.to_string() })?;
        let count = fields.spec.depends_on.len();
        if count > DEPENDENCIES_MAX {
            return Err(MetaError::TooManyDependencies { count });
        }
        let dependencies = fields.spec.depends_on.into_iter().enumerate();
        let dependencies =
            dependencies.map(|(index, depends)| depends.read(index)).collect::<Result<_, _>>()?;
        let capabilities = fields.spec.capabilities.unwrap_or_else(|| default_capabilities(kind));
        Ok(Self {
            kind,
            name: fields.metadata.name,
            labels: fields.metadata.labels,
            annotations: fields.metadata.annotations,
            crossplane: fields.spec.crossplane.map(|crossplane| crossplane.version),
            dependencies,
            capabilities,
        })
    }

    /// What a package without content says about itself.
    pub fn empty(kind: PackageKind) -> Self {
        Self {
            kind,
            name: String::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            crossplane: None,
            dependencies: Vec::new(),
            capabilities: default_capabilities(kind),
        }
    }
}

fn default_capabilities(kind: PackageKind) -> Vec<String> {
    match kind {
        PackageKind::Function => vec![CAPABILITY_COMPOSITION.to_owned()],
        PackageKind::Provider | PackageKind::Configuration => Vec::new(),
    }
}

impl DependsOn {
    /// The complete form wins; of several deprecated fields the first in Crossplane's order does.
    fn read(self, index: usize) -> Result<Dependency, MetaError> {
        let dependency = self.target(index)?;
        if dependency.package.len().max(dependency.version.len()) > DEPENDENCY_BYTES_MAX {
            return Err(MetaError::DependencyTooLong { index });
        }
        Ok(dependency)
    }

    fn target(self, index: usize) -> Result<Dependency, MetaError> {
        let version = self.version;
        if let (Some(api_version), Some(kind), Some(package)) = (self.api_version, self.kind, self.package) {
            return Ok(Dependency { target: Target::Object { api_version, kind }, package, version });
        }
        let of = |kind: PackageKind, package: Option<String>| package.map(|package| (kind, package));
        let (kind, package) = of(PackageKind::Configuration, self.configuration)
            .or(of(PackageKind::Provider, self.provider))
            .or(of(PackageKind::Function, self.function))
            .ok_or(MetaError::Dependency { index })?;
        Ok(Dependency { target: Target::Type(kind), package, version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(version: &str, kind: &str, spec: &Value) -> Option<Result<Meta, MetaError>> {
        Meta::read(&json!({
            "apiVersion": format!("meta.pkg.crossplane.io/{version}"), "kind": kind,
            "metadata": {"name": "p", "labels": {"a": "b"}, "annotations": null}, "spec": spec,
        }))
    }

    #[test]
    fn all_versions_are_read_as_v1() {
        for (version, kind, known) in [
            ("v1", "Provider", true),
            ("v1alpha1", "Provider", true),
            ("v1beta1", "Provider", false),
            ("v1", "Configuration", true),
            ("v1alpha1", "Configuration", true),
            ("v1", "Function", true),
            ("v1beta1", "Function", true),
            ("v1alpha1", "Function", false),
            ("v1", "Lock", false),
        ] {
            let spec = json!({"controller": {"image": "x"}, "crossplane": {"version": ">=v1.0.0"}});
            let meta = read(version, kind, &spec);
            assert_eq!(meta.is_some(), known, "{kind} {version}");
            if let Some(meta) = meta {
                let meta = meta.unwrap();
                assert_eq!((meta.kind.kind(), meta.name.as_str()), (kind, "p"));
                assert_eq!(meta.crossplane.as_deref(), Some(">=v1.0.0"));
                assert_eq!(meta.labels["a"], "b");
            }
        }
        let other = json!({"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider"});
        assert!(Meta::read(&other).is_none());
    }

    #[test]
    fn the_complete_form_of_a_dependency_wins() {
        let spec = json!({"capabilities": null, "dependsOn": [
            {"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "package": "a.b/c", "provider": "d.e/f",
             "version": ">=v1"},
            {"apiVersion": "pkg.crossplane.io/v1", "package": "a.b/c", "function": "d.e/f", "version": "v1"},
            {"provider": "d.e/f", "configuration": "g.h/i"},
        ]});
        let dependencies = read("v1", "Configuration", &spec).unwrap().unwrap().dependencies;
        let target =
            Target::Object { api_version: "pkg.crossplane.io/v1".to_owned(), kind: "Provider".to_owned() };
        assert_eq!(
            dependencies[0],
            Dependency { target, package: "a.b/c".to_owned(), version: ">=v1".to_owned() }
        );
        let short = |i: usize| (dependencies[i].target.clone(), dependencies[i].package.as_str());
        assert_eq!(short(1), (Target::Type(PackageKind::Function), "d.e/f"));
        assert_eq!(short(2), (Target::Type(PackageKind::Configuration), "g.h/i"));
        assert_eq!(dependencies[2].version, "");
    }

    #[test]
    fn a_function_that_names_no_capability_can_compose() {
        for (kind, spec, expected) in [
            ("Function", json!({}), &["composition"][..]),
            ("Function", json!({"capabilities": null}), &["composition"]),
            ("Function", json!({"capabilities": []}), &[]),
            ("Function", json!({"capabilities": ["operation"]}), &["operation"]),
            ("Provider", json!({}), &[]),
        ] {
            assert_eq!(read("v1", kind, &spec).unwrap().unwrap().capabilities, expected, "{kind} {spec}");
        }
        assert_eq!(Meta::empty(PackageKind::Function).capabilities, ["composition"]);
    }

    #[test]
    fn a_dependency_that_names_nothing_is_an_error() {
        let spec = json!({"dependsOn": [{"provider": "a.b/c"}, {"kind": "Provider", "package": "a.b/c"}]});
        let error = read("v1", "Provider", &spec).unwrap().unwrap_err();
        assert_eq!(error, MetaError::Dependency { index: 1 });
        assert!(error.to_string().starts_with("spec.dependsOn[1]: encountered an invalid dependency"));
        let many = json!({"dependsOn": vec![json!({"provider": "a.b/c"}); 501]});
        let error = read("v1", "Provider", &many).unwrap().unwrap_err();
        assert_eq!(error, MetaError::TooManyDependencies { count: 501 });
        let long = json!({"dependsOn": [{"provider": "a.b/c", "version": "1".repeat(1025)}]});
        let error = read("v1", "Provider", &long).unwrap().unwrap_err();
        assert_eq!(error, MetaError::DependencyTooLong { index: 0 });
        let malformed = read("v1", "Provider", &json!({"dependsOn": "x"})).unwrap().unwrap_err();
        assert!(matches!(malformed, MetaError::Malformed { .. }), "{malformed}");
    }
}
