//! Which kinds are namespaced, and which have the condition Ready, as far as that is known without a control plane.

use super::catalogue::{Catalogue, Role};
use serde_json::{Value, json};
use transom_object::meta;

/// Whether objects of a kind are in namespaces; nothing if it is not known.
pub(super) fn is_namespaced(api_version: &str, kind: &str, catalogue: &Catalogue) -> Option<bool> {
    if let Some(defined) = catalogue.composite(api_version, kind) {
        return Some(defined.role == Role::Application);
    }
    if catalogue.required_by(api_version, kind).is_some() {
        return Some(true);
    }
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let mut crds = catalogue.crds.iter();
    let of_crd = crds.find(|(of, name, _)| of == group && name == kind).map(|(.., namespaced)| *namespaced);
    of_crd.or_else(|| built_in(group, kind))
}

/// Groups of Kubernetes all of whose kinds are namespaced.
const NAMESPACED: [&str; 7] =
    ["apps", "autoscaling", "batch", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "policy"];

/// When an object of one of Kubernetes' own kinds is ready, as a readiness check of a template. Without a check, a composed
/// resource is ready by its condition Ready, which these do not have.
pub(super) fn readiness(api_version: &str, kind: &str) -> Option<Value> {
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let others = ["", "rbac.authorization.k8s.io", "networking.k8s.io"];
    match kind {
        "Pod" | "Node" if group.is_empty() => None,
        "Deployment" if group == "apps" => {
            Some(json!({"type": "MatchCondition", "matchCondition": {"type": "Available", "status": "True"}}))
        }
        _ if others.contains(&group) || NAMESPACED.contains(&group) => Some(json!({"type": "None"})),
        _ => None,
    }
}

/// The scope of Kubernetes' and Crossplane's own kinds.
fn built_in(group: &str, kind: &str) -> Option<bool> {
    match group {
        "" => Some(!["Namespace", "Node", "PersistentVolume", "ComponentStatus"].contains(&kind)),
        group if NAMESPACED.contains(&group) => Some(true),
        "rbac.authorization.k8s.io" => Some(["Role", "RoleBinding"].contains(&kind)),
        "networking.k8s.io" => Some(["Ingress", "NetworkPolicy"].contains(&kind)),
        "storage.k8s.io" => Some(kind == "CSIStorageCapacity"),
        "apiextensions.k8s.io"
        | "apiextensions.crossplane.io"
        | "pkg.crossplane.io"
        | "admissionregistration.k8s.io"
        | "scheduling.k8s.io" => Some(false),
        _ => None,
    }
}

/// Group, kind and scope of what a CustomResourceDefinition defines.
pub(super) fn of_crd(object: &Value) -> Option<(String, String, bool)> {
    if meta::kind(object) != "CustomResourceDefinition" {
        return None;
    }
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let (group, kind, scope) = (text("/spec/group")?, text("/spec/names/kind")?, text("/spec/scope")?);
    Some((group.to_owned(), kind.to_owned(), scope == "Namespaced"))
}
