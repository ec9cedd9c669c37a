//! Which kinds of objects a package may hold, and which of them are established.

use transom_object::{GroupKind, GroupVersionKind};
use transom_xapi::PackageKind;
use transom_xapi::constants::group;

const OPERATIONS: &str = "ops.crossplane.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const DEFINITIONS: &str = "apiextensions.k8s.io";

/// The kinds that a stream may hold, with the versions in which it may.
const KNOWN: [(&str, &str, &[&str]); 15] = [
    (group::APIEXTENSIONS, "CompositeResourceDefinition", &["v1", "v2"]),
    (group::APIEXTENSIONS, "Composition", &["v1"]),
    (group::APIEXTENSIONS, "CompositionRevision", &["v1"]),
    (group::APIEXTENSIONS, "Usage", &["v1alpha1"]),
    (group::APIEXTENSIONS, "ManagedResourceDefinition", &["v1alpha1"]),
    (group::APIEXTENSIONS, "ManagedResourceActivationPolicy", &["v1alpha1"]),
    (OPERATIONS, "Operation", &["v1alpha1"]),
    (OPERATIONS, "CronOperation", &["v1alpha1"]),
    (OPERATIONS, "WatchOperation", &["v1alpha1"]),
    (DEFINITIONS, "CustomResourceDefinition", &["v1", "v1beta1"]),
    (DEFINITIONS, "ConversionReview", &["v1", "v1beta1"]),
    (ADMISSION, "ValidatingWebhookConfiguration", &["v1"]),
    (ADMISSION, "MutatingWebhookConfiguration", &["v1"]),
    (ADMISSION, "ValidatingAdmissionPolicy", &["v1"]),
    (ADMISSION, "ValidatingAdmissionPolicyBinding", &["v1"]),
];

const OF_PROVIDERS: [(&str, &str); 4] = [
    (DEFINITIONS, "CustomResourceDefinition"),
    (group::APIEXTENSIONS, "ManagedResourceDefinition"),
    (ADMISSION, "ValidatingWebhookConfiguration"),
    (ADMISSION, "MutatingWebhookConfiguration"),
];
const OF_CONFIGURATIONS: [(&str, &str); 6] = [
    (group::APIEXTENSIONS, "CompositeResourceDefinition"),
    (group::APIEXTENSIONS, "Composition"),
    (group::APIEXTENSIONS, "ManagedResourceActivationPolicy"),
    (OPERATIONS, "Operation"),
    (OPERATIONS, "CronOperation"),
    (OPERATIONS, "WatchOperation"),
];
const OF_FUNCTIONS: [(&str, &str); 1] = [(DEFINITIONS, "CustomResourceDefinition")];

/// Whether a stream may hold objects of a kind at all.
pub fn is_known(gvk: &GroupVersionKind) -> bool {
    let found = KNOWN.iter().find(|(group, kind, _)| gvk.group == *group && gvk.kind == *kind);
    found.is_some_and(|(_, _, versions)| versions.contains(&gvk.version.as_str()))
}

/// The versions in which a stream may hold a kind; empty when it may not.
pub(crate) fn known_versions(of: &GroupKind) -> &'static [&'static str] {
    let found = KNOWN.iter().find(|(group, kind, _)| of.group == *group && of.kind == *kind);
    found.map_or(&[], |(_, _, versions)| versions)
}

/// Whether a package of a kind should hold such objects. Others do not stop an installation, but a build.
pub fn allowed(kind: PackageKind, of: &GroupKind) -> bool {
    contains(allowed_kinds(kind), of)
}

/// The kinds of objects that a package of a kind should hold, as group and kind.
pub fn allowed_kinds(kind: PackageKind) -> &'static [(&'static str, &'static str)] {
    match kind {
        PackageKind::Provider => &OF_PROVIDERS,
        PackageKind::Configuration => &OF_CONFIGURATIONS,
        PackageKind::Function => &OF_FUNCTIONS,
    }
}

/// Whether an active revision creates such objects. The CRDs of a Function only document its input.
pub fn established(kind: PackageKind, of: &GroupKind) -> bool {
    kind != PackageKind::Function && allowed(kind, of)
}

fn contains(kinds: &[(&str, &str)], of: &GroupKind) -> bool {
    kinds.iter().any(|(group, kind)| of.group == *group && of.kind == *kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use PackageKind::{Configuration, Function, Provider};

    #[test]
    fn every_kind_belongs_to_its_packages() {
        let crossplane = group::APIEXTENSIONS;
        for (of, kind, allowed_in, established_in) in [
            (DEFINITIONS, "CustomResourceDefinition", &[Provider, Function][..], &[Provider][..]),
            (crossplane, "ManagedResourceDefinition", &[Provider], &[Provider]),
            (ADMISSION, "ValidatingWebhookConfiguration", &[Provider], &[Provider]),
            (ADMISSION, "MutatingWebhookConfiguration", &[Provider], &[Provider]),
            (crossplane, "CompositeResourceDefinition", &[Configuration], &[Configuration]),
            (crossplane, "Composition", &[Configuration], &[Configuration]),
            (crossplane, "ManagedResourceActivationPolicy", &[Configuration], &[Configuration]),
            (OPERATIONS, "Operation", &[Configuration], &[Configuration]),
            (OPERATIONS, "CronOperation", &[Configuration], &[Configuration]),
            (OPERATIONS, "WatchOperation", &[Configuration], &[Configuration]),
            (crossplane, "CompositionRevision", &[], &[]),
            ("", "Secret", &[], &[]),
        ] {
            let of = GroupKind::new(of, kind);
            for package in PackageKind::ALL {
                assert_eq!(allowed(package, &of), allowed_in.contains(&package), "{package:?} {of}");
                assert_eq!(established(package, &of), established_in.contains(&package), "{package:?} {of}");
            }
        }
    }

    #[test]
    fn kinds_are_known_in_their_versions() {
        let known =
            |group: &str, version: &str, kind: &str| is_known(&GroupVersionKind::new(group, version, kind));
        assert!(known(group::APIEXTENSIONS, "v2", "CompositeResourceDefinition"));
        assert!(!known(group::APIEXTENSIONS, "v2", "Composition"));
        assert!(known(DEFINITIONS, "v1beta1", "CustomResourceDefinition"));
        assert!(!known("", "v1", "ConfigMap"));
    }
}
