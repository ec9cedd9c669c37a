//! What distinguishes the kinds of packages.

use crate::constants::{group, kind, label};
use serde::{Deserialize, Serialize};
use transom_object::{GroupVersionKind, GroupVersionResource};

/// A kind of package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub enum PackageKind {
    /// Brings managed resources, and runs the controllers of them.
    Provider,
    /// Brings definitions and Compositions, and runs nothing.
    Configuration,
    /// Runs a function, and brings nothing.
    Function,
}

impl PackageKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Provider, Self::Configuration, Self::Function];

    /// The `kind` of the package, and of the metadata in it.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Provider => kind::PROVIDER,
            Self::Configuration => kind::CONFIGURATION,
            Self::Function => kind::FUNCTION,
        }
    }

    /// The `kind` of its revisions.
    pub const fn revision_kind(self) -> &'static str {
        match self {
            Self::Provider => kind::PROVIDER_REVISION,
            Self::Configuration => kind::CONFIGURATION_REVISION,
            Self::Function => kind::FUNCTION_REVISION,
        }
    }

    /// The resource of the package in URLs.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Provider => "providers",
            Self::Configuration => "configurations",
            Self::Function => "functions",
        }
    }

    /// The resource of its revisions in URLs.
    pub const fn revision_plural(self) -> &'static str {
        match self {
            Self::Provider => "providerrevisions",
            Self::Configuration => "configurationrevisions",
            Self::Function => "functionrevisions",
        }
    }

    /// The `apiVersion` that the controllers read and write packages and revisions in.
    pub const fn api_version(self) -> &'static str {
        kind::PKG_V1
    }

    /// The package as a kind.
    pub fn gvk(self) -> GroupVersionKind {
        GroupVersionKind::new(group::PKG, "v1", self.kind())
    }

    /// Its revisions as a kind.
    pub fn revision_gvk(self) -> GroupVersionKind {
        GroupVersionKind::new(group::PKG, "v1", self.revision_kind())
    }

    /// The package as a resource.
    pub fn gvr(self) -> GroupVersionResource {
        GroupVersionResource {
            group: group::PKG.to_owned(),
            version: "v1".to_owned(),
            resource: self.plural().to_owned(),
        }
    }

    /// Its revisions as a resource.
    pub fn revision_gvr(self) -> GroupVersionResource {
        GroupVersionResource { resource: self.revision_plural().to_owned(), ..self.gvr() }
    }

    /// Whether the image of the package is also run.
    pub const fn has_runtime(self) -> bool {
        matches!(self, Self::Provider | Self::Function)
    }

    /// The label by which the runtime of a package is selected; its value is the name of the package.
    pub const fn runtime_label(self) -> Option<&'static str> {
        match self {
            Self::Provider => Some(label::PROVIDER),
            Self::Function => Some(label::FUNCTION),
            Self::Configuration => None,
        }
    }

    /// The versions of `meta.pkg.crossplane.io` in which the metadata in a package may be written, newest first.
    pub const fn meta_versions(self) -> &'static [&'static str] {
        match self {
            Self::Provider | Self::Configuration => &["v1", "v1alpha1"],
            Self::Function => &["v1", "v1beta1"],
        }
    }

    /// The newest kind of the metadata in a package; older ones are read as this.
    pub fn meta_gvk(self) -> GroupVersionKind {
        GroupVersionKind::new(group::META_PKG, "v1", self.kind())
    }

    /// The kind of package that an object is, in any version.
    pub fn of_package(api_version: &str, kind: &str) -> Option<Self> {
        Self::in_group(group::PKG, api_version, |known| known.kind() == kind)
    }

    /// The kind of package that an object is a revision of, in any version.
    pub fn of_revision(api_version: &str, kind: &str) -> Option<Self> {
        Self::in_group(group::PKG, api_version, |known| known.revision_kind() == kind)
    }

    /// The kind of package that an object in it describes.
    pub fn of_meta(api_version: &str, kind: &str) -> Option<Self> {
        let version = api_version.rsplit('/').next().unwrap_or_default();
        Self::in_group(group::META_PKG, api_version, |known| {
            known.kind() == kind && known.meta_versions().contains(&version)
        })
    }

    fn in_group(group: &str, api_version: &str, is: impl Fn(Self) -> bool) -> Option<Self> {
        let (of, _) = api_version.split_once('/')?;
        Self::ALL.into_iter().find(|known| of == group && is(*known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_known_by_group_and_kind() {
        assert_eq!(
            PackageKind::of_package("pkg.crossplane.io/v1beta1", "Function"),
            Some(PackageKind::Function)
        );
        assert_eq!(PackageKind::of_package("meta.pkg.crossplane.io/v1", "Function"), None);
        assert_eq!(PackageKind::of_package("pkg.crossplane.io/v1", "ProviderRevision"), None);
        let revision = PackageKind::of_revision("pkg.crossplane.io/v1", "ConfigurationRevision");
        assert_eq!(revision, Some(PackageKind::Configuration));
        for (api_version, kind, expected) in [
            ("meta.pkg.crossplane.io/v1alpha1", "Provider", Some(PackageKind::Provider)),
            ("meta.pkg.crossplane.io/v1beta1", "Function", Some(PackageKind::Function)),
            ("meta.pkg.crossplane.io/v1beta1", "Provider", None),
            ("meta.pkg.crossplane.io/v1alpha1", "Function", None),
            ("meta.pkg.crossplane.io", "Provider", None),
            ("v1", "Provider", None),
        ] {
            assert_eq!(PackageKind::of_meta(api_version, kind), expected, "{api_version} {kind}");
        }
    }

    #[test]
    fn the_crds_serve_the_kinds_and_resources_of_packages() {
        let crds: Vec<_> = crate::crds().collect();
        let served = |plural: &str, kind: &str| {
            crds.iter().any(|crd| {
                crd["metadata"]["name"] == format!("{plural}.{}", group::PKG)
                    && crd["spec"]["names"]["kind"] == kind
                    && crd["spec"]["versions"][0]["name"] == "v1"
            })
        };
        for kind in PackageKind::ALL {
            assert!(
                served(kind.plural(), kind.kind()) && served(kind.revision_plural(), kind.revision_kind())
            );
            assert_eq!(kind.revision_gvr().resource, kind.revision_plural());
        }
    }
}
