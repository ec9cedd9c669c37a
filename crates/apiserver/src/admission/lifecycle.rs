//! The rules that the server itself has for every write: new objects need a namespace that exists and is not being
//! deleted, custom kinds that are being deleted take no new objects, and some namespaces stay.
//!
//! In Kubernetes this is the plugin NamespaceLifecycle, the first of the mutating phase. It needs nothing but the
//! store and never waits, so it is a function.

use crate::resource::{NAMESPACES, Resource};
use serde_json::Value;
use transom_object::status::{Cause, Details};
use transom_object::{GroupResource, Status};
use transom_store::{Key, Store};

/// Namespaces that cannot be deleted.
const PERMANENT: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Whether an object may be created in its namespace.
pub(crate) fn create(
    store: &Store,
    resource: &Resource,
    namespace: &str,
    object: &Value,
) -> Result<(), Status> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if resource.namespaced {
        let key = Key::new(NAMESPACES, "", namespace);
        let Some(entry) = store.get(&key) else {
            return Err(Status::not_found(&GroupResource::new("", NAMESPACES), namespace));
        };
        if entry.header.deleting {
            return Err(namespace_terminating(resource, namespace, name));
        }
    }
    if resource.terminating {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(&resource.group_resource(), name, why));
    }
    Ok(())
}

/// Whether an object may be deleted at all.
pub(crate) fn delete(resource: &Resource, name: &str) -> Result<(), Status> {
    if resource.is_namespace() && PERMANENT.contains(&name) {
        let why = "this namespace may not be deleted";
        return Err(Status::forbidden(&resource.group_resource(), name, why));
    }
    Ok(())
}

fn namespace_terminating(resource: &Resource, namespace: &str, name: &str) -> Status {
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut status = Status::forbidden(&resource.group_resource(), name, why);
    let details = status.details.get_or_insert_with(Box::<Details>::default);
    details.causes.push(Cause {
        reason: "NamespaceTerminating".into(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".into(),
    });
    status
}
