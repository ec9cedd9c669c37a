//! What the server itself asks of every write, whatever the kind: namespaces must exist and live, definitions
//! settle their names, and the objects that others hang on do not vanish before them.

use crate::resource::{NAMESPACES, Resource};
use crate::server::Inner;
use crate::strategy::Face;
use crate::{crd, ownership, services};
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;
use transom_object::status::{Cause, Details};
use transom_object::{GroupResource, Status};
use transom_store::{Committed, Key, Write, WriteError, WriteOp};

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Has a say in what happens to objects, whatever their kind. Asked while a request waits: be quick.
pub trait Admission: Send + Sync {
    /// Whether an object may be deleted; if not, why. `propagation` is how, if the request says.
    fn delete(&self, object: &Value, propagation: Option<&str>) -> Result<(), String>;
}

/// Has no objections.
pub struct AdmitAll;

impl Admission for AdmitAll {
    fn delete(&self, _object: &Value, _propagation: Option<&str>) -> Result<(), String> {
        Ok(())
    }
}

impl Inner {
    pub(crate) fn admit_create(
        &self,
        resource: &Resource,
        namespace: &str,
        value: &Value,
    ) -> Result<(), Status> {
        let name = value["metadata"]["name"].as_str().unwrap_or_default();
        if resource.namespaced {
            let key = Key::new(NAMESPACES, "", namespace);
            let Some(entry) = self.store.get(&key) else {
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

    pub(crate) fn admit_update(
        &self,
        _resource: &Resource,
        _new: &Value,
        _old: &Value,
    ) -> Result<(), Status> {
        Ok(())
    }

    pub(crate) fn admit_delete(
        &self,
        resource: &Resource,
        live: &Value,
        propagation: Option<&str>,
    ) -> Result<(), Status> {
        let name = live["metadata"]["name"].as_str().unwrap_or_default();
        if resource.is_namespace() && IMMORTAL.contains(&name) {
            return Err(Status::forbidden(
                &resource.group_resource(),
                name,
                "this namespace may not be deleted",
            ));
        }
        self.admission.delete(live, propagation).map_err(|why| Status::new(409, "", why))
    }

    /// Whether nothing but finalizers keeps an object that is being deleted.
    pub(crate) fn may_vanish(&self, resource: &Resource, value: &Value) -> bool {
        if resource.is_namespace() {
            return value["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        }
        // A definition goes only after its instances: the first deletion adds the finalizer for that.
        !crd::is_definition(resource) || value["metadata"]["deletionTimestamp"].is_string()
    }

    /// What a deletion that has to wait does to the object besides its metadata.
    pub(crate) fn mark_terminating(&self, resource: &Resource, value: &mut Value) {
        if resource.is_namespace() {
            value["status"]["phase"] = "Terminating".into();
        } else if crd::is_definition(resource) {
            crd::mark_terminating(value, &self.timestamp());
        }
    }

    pub(crate) async fn definitions_lock(&self, resource: &Resource) -> Option<OwnedMutexGuard<()>> {
        if crd::is_definition(resource) { Some(self.definitions.clone().lock_owned().await) } else { None }
    }

    /// What the server adds to an object as it is written: a definition's status, a service's addresses. These are
    /// reserved until the write is decided.
    pub(crate) fn settle(
        &self,
        resource: &Resource,
        new: &mut Value,
        old: Option<&Value>,
        now: &str,
    ) -> services::Reservation {
        if crd::is_definition(resource) {
            // Part of every write of a definition; what follows is the server's own doing.
            crd::add_stored_version(new);
            let before = new.clone();
            crd::settle(self, new, old, now);
            ownership::update(resource, Face::Status, Some(&before), new, "kube-apiserver", now);
        } else if resource.group.is_empty() && resource.names.kind == "Service" {
            return services::allocate(self, new, old);
        }
        services::Reservation::default()
    }

    /// The one way into the store. A definition is served from just before its commit is visible, and no longer
    /// from just before its deletion is.
    pub(crate) async fn commit(
        &self,
        resource: &Resource,
        write: Write,
        new: Option<&Value>,
    ) -> Result<Committed, WriteError> {
        if !crd::is_definition(resource) {
            return self.store.commit(write).await;
        }
        let key = write.key.clone();
        let deleting = matches!(write.op, WriteOp::Delete);
        match new {
            Some(new) => crd::install(self, new, self.store.revision()),
            None if deleting => crd::uninstall(self, &key.object.name),
            None => {}
        }
        let result = self.store.commit(write).await;
        if result.is_err() {
            crd::reinstall(self, &key);
        }
        result
    }
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

/// A condition in the shape all status conditions have.
pub(crate) fn condition(ty: &str, status: &str, reason: &str, message: &str, now: &str) -> Value {
    json!({"type": ty, "status": status, "reason": reason, "message": message, "lastTransitionTime": now})
}
