//! Managed resources on the embedded server: providers bring definitions, policies activate them, and active definitions become
//! CRDs.

mod definitions;
mod migration;
mod policies;
mod providers;
mod scale;

use crate::life::fixture::*;
use serde_json::{Value, json};
use transom_object::meta;

pub(super) const MRD: &str = "apiextensions.crossplane.io/v1alpha1/ManagedResourceDefinition";
pub(super) const MRAP: &str = "apiextensions.crossplane.io/v1alpha1/ManagedResourceActivationPolicy";
pub(super) const CRD: &str = "apiextensions.k8s.io/v1/CustomResourceDefinition";
pub(super) const BUCKET: &str = "cloud.io/v1/Bucket";
pub(super) const BUCKETS: &str = "buckets.cloud.io";

/// The spec of a CRD in the group `cloud.io`, whose objects have this field.
pub(super) fn spec(kind: &str, field: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {field: {"type": "string"}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    json!({
        "group": "cloud.io", "scope": "Cluster", "names": {"kind": kind, "plural": plural},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                      "schema": {"openAPIV3Schema": schema}}],
    })
}

/// A definition in a state.
pub(super) fn definition(kind: &str, state: &str) -> String {
    let mut spec = spec(kind, "size");
    spec["state"] = state.into();
    let name = format!("{}s.cloud.io", kind.to_lowercase());
    json!({"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "ManagedResourceDefinition",
           "metadata": {"name": name}, "spec": spec})
    .to_string()
}

pub(super) fn policy(name: &str, activate: &[&str]) -> String {
    json!({"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "ManagedResourceActivationPolicy",
           "metadata": {"name": name}, "spec": {"activate": activate}})
    .to_string()
}

pub(super) fn bucket(name: &str) -> String {
    json!({"apiVersion": "cloud.io/v1", "kind": "Bucket", "metadata": {"name": name}, "spec": {"size": "1"}})
        .to_string()
}

pub(super) fn activated(policy: &Value) -> Vec<&str> {
    policy["status"]["activated"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The names of an object's owners, and whether they control it.
pub(super) fn owners(object: &Value) -> Vec<(String, String, Option<bool>)> {
    meta::owner_references(object).into_iter().map(|o| (o.kind, o.name, o.controller)).collect()
}

/// The managers of an object's fields and how they wrote.
pub(super) fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array();
    let text = |value: &'_ Value| -> String { value.as_str().unwrap_or_default().to_owned() };
    let entry =
        |e: &Value| [&e["manager"], &e["operation"], &e["subresource"]].map(text).join(" ").trim().to_owned();
    entries.into_iter().flatten().map(entry).collect()
}

/// Touches an object without changing anything that matters, and returns what the controllers wrote for it.
pub(super) async fn writes_after_touching(plane: &Plane, kind: &str, name: &str) -> Vec<String> {
    let before = usize::try_from(plane.until_idle().await).unwrap();
    plane.patch(kind, name, json!({"metadata": {"annotations": {"touched": "yes"}}})).await;
    plane.after(std::time::Duration::from_secs(3600)).await;
    plane.log()[before..].to_vec()
}
