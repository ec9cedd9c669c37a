//! The CRDs of Usages and ClusterUsages, and of the deprecated Usage of `apiextensions.crossplane.io`.

use super::schema::{
    Crd, Version, column, condition_column, flag, name_reference, object, ruled, text, texts_by_name,
};
use super::{age_column, conditioned_status, schema};
use crate::constants::group;
use serde_json::{Value, json};

const SET: (&str, &str) = (
    "has(self.resourceRef) || has(self.resourceSelector)",
    "either a resource reference or a resource selector should be set.",
);
const BY_OR_REASON: (&str, &str) =
    ("has(self.by) || has(self.reason)", "either \"spec.by\" or \"spec.reason\" must be specified.");
const ACROSS_NAMESPACES: (&str, &str) = (
    "has(self.by) || (!has(self.of.resourceRef) || !has(self.of.resourceRef.__namespace__)) && \
     (!has(self.of.resourceSelector) || !has(self.of.resourceSelector.__namespace__))",
    "cross-namespace \"spec.of\" is not allowed without \"spec.by\" resource.",
);
const DEPRECATED: &str = "apiextensions.crossplane.io Usage is deprecated; migrate to protection.crossplane.io Usage or \
                          ClusterUsage";

pub(super) fn usage() -> Value {
    let description =
        "A Usage protects an object from deletion while another object of its namespace uses it.";
    let versions = vec![version("v1beta1", description, spec(true), None)];
    crd(group::PROTECTION, "Usage", "usages", true, versions)
}

pub(super) fn cluster_usage() -> Value {
    let description = "A ClusterUsage protects a cluster-scoped object from deletion while another uses it.";
    let versions = vec![version("v1beta1", description, spec(false), None)];
    crd(group::PROTECTION, "ClusterUsage", "clusterusages", false, versions)
}

/// The deprecated kind in the group `apiextensions.crossplane.io`.
pub(super) fn legacy_usage() -> Value {
    let description = "A Usage protects a cluster-scoped object from deletion while another uses it.";
    let version = |name| version(name, description, spec(false), Some(DEPRECATED));
    crd(group::APIEXTENSIONS, "Usage", "usages", false, vec![version("v1alpha1"), version("v1beta1")])
}

fn crd(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
    versions: Vec<Version>,
) -> Value {
    Crd { group, kind, plural, short_names: &[], categories: &["crossplane"], namespaced, versions }.build()
}

fn version(
    name: &'static str,
    description: &'static str,
    spec: Value,
    deprecated: Option<&'static str>,
) -> Version {
    Version {
        name,
        columns: vec![
            column("DETAILS", "string", r".metadata.annotations.crossplane\.io/usage-details"),
            condition_column("READY", "Ready"),
            age_column(),
        ],
        description,
        properties: schema::fields([("spec", spec), ("status", conditioned_status())]),
        required: &["spec"],
        status: true,
        deprecated,
    }
}

fn spec(namespaced: bool) -> Value {
    let spec = object(
        "What is used, by what, and why.",
        &["of"],
        json!({
            "of": used("What is used.", namespaced),
            "by": used("What uses it.", false),
            "reason": text("Why it must not be deleted."),
            "replayDeletion": flag("Whether a refused deletion is repeated after the usage is deleted."),
        }),
    );
    if namespaced { ruled(spec, &[BY_OR_REASON, ACROSS_NAMESPACES]) } else { ruled(spec, &[BY_OR_REASON]) }
}

/// An object, by reference or by selector, in a namespace of its own or not.
fn used(description: &str, namespaced: bool) -> Value {
    let namespace = text("The namespace, if it is not the usage's.");
    let mut reference = name_reference("The object.", "object");
    let mut selector = object(
        "Selects the object. Ignored once resourceRef is set.",
        &[],
        json!({
            "matchLabels": texts_by_name("Labels the object must have."),
            "matchControllerRef": flag("Whether the object must have the same owner as the usage."),
        }),
    );
    if namespaced {
        reference["properties"]["namespace"] = namespace.clone();
        selector["properties"]["namespace"] = namespace;
    }
    let used = object(
        description,
        &[],
        json!({
            "apiVersion": text("Group and version of the object."),
            "kind": text("Kind of the object."),
            "resourceRef": reference,
            "resourceSelector": selector,
        }),
    );
    ruled(used, &[SET])
}
