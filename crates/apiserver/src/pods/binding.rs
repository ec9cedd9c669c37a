//! The binding of a pod to a node.

use super::set_condition;
use serde_json::{Value, json};
use transom_object::field::{Error, Path};
use transom_object::{GroupResource, Status};

/// The refusal of a binding that names no node, as Kubernetes words it.
pub(crate) fn validate_binding(binding: &Value) -> Result<(), Status> {
    let (target, path) = (&binding["target"], Path::new("target"));
    let text = |key: &str| target[key].as_str().unwrap_or_default();
    let mut errors = Vec::new();
    if !matches!(text("kind"), "" | "Node") {
        errors.push(Error::not_supported(&path.child("kind"), text("kind"), &["Node", "<empty>"]));
    }
    if text("name").is_empty() {
        errors.push(Error::required(&path.child("name"), ""));
    }
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match texts.as_slice() {
        [] => Ok(()),
        [one] => Err(Status::new(500, "", one.clone())),
        _ => Err(Status::new(500, "", format!("[{}]", texts.join(", ")))),
    }
}

/// The pod, assigned to the node of the binding, with the labels and annotations of the binding.
pub(crate) fn bind(pod: &Value, binding: &Value, now: &str) -> Result<Value, Status> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let refused = |why: String| Status::conflict(&GroupResource::new("", "pods/binding"), name, why);
    for (field, title) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let (given, live) = (&binding["metadata"][field], &pod["metadata"][field]);
        if let Some(given) = given.as_str().filter(|given| !given.is_empty() && live != *given) {
            let live = live.as_str().unwrap_or_default();
            let why = format!(
                "Precondition failed: {title} in precondition: {given}, {title} in object meta: {live}"
            );
            return Err(Status::conflict(&GroupResource::new("", "pods"), name, why));
        }
    }
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return Err(refused(format!("pod {name} is being deleted, cannot be assigned to a host")));
    }
    if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
        return Err(refused(format!("pod {name} is already assigned to node {node:?}")));
    }
    if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        return Err(refused(format!("pod {name} has non-empty .spec.schedulingGates")));
    }
    let mut bound = pod.clone();
    bound["spec"]["nodeName"] = binding["target"]["name"].clone();
    if let Some(status) = bound["status"].as_object_mut() {
        status.remove("nominatedNodeName");
    }
    for field in ["labels", "annotations"] {
        for (key, value) in binding["metadata"][field].as_object().into_iter().flatten() {
            bound["metadata"][field][key] = value.clone();
        }
    }
    set_condition(&mut bound, json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null}), now);
    Ok(bound)
}
