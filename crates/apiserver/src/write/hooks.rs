//! What particular kinds add to a write: a definition's status and its installation, a Service's addresses, and the
//! objects that must not be removed before their dependents.

use crate::resource::Resource;
use crate::server::Inner;
use crate::subresource::Subresource;
use crate::{crd, ownership, services};
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;
use transom_store::{Committed, Write, WriteError, WriteOp};

impl Inner {
    /// Whether nothing but finalizers keeps an object that is being deleted.
    pub(crate) fn may_vanish(&self, resource: &Resource, value: &Value) -> bool {
        if resource.is_namespace() {
            return value["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        }
        // A definition is removed only after its instances: the first deletion adds the finalizer for that.
        !crd::is_definition(resource) || value["metadata"]["deletionTimestamp"].is_string()
    }

    /// What a deletion that has to wait changes in the object besides its metadata.
    pub(crate) fn mark_terminating(&self, resource: &Resource, value: &mut Value) {
        if resource.is_namespace() {
            value["status"]["phase"] = "Terminating".into();
        } else if crd::is_definition(resource) {
            transom_crd::mark_terminating(value, &self.timestamp());
        }
    }

    /// Reserves the addresses and ports that a Service needs and does not have. Called before validation.
    pub(super) fn allocate(
        &self,
        resource: &Resource,
        new: &mut Value,
        old: Option<&Value>,
    ) -> services::Reservation {
        if crd::is_definition(resource) {
            transom_crd::add_stored_version(new);
        } else if resource.group.is_empty() && resource.names.kind == "Service" {
            return services::allocate(self, new, old);
        }
        services::Reservation::default()
    }

    /// Decides which names a definition gets. Returns the lock under which that holds: keep it until the definition
    /// is committed. Taken after admission, so that a slow plugin delays no other definition.
    pub(super) async fn accept_names(
        &self,
        resource: &Resource,
        new: &mut Value,
        old: Option<&Value>,
        now: &str,
    ) -> Option<OwnedMutexGuard<()>> {
        let lock = self.definitions_lock(resource).await?;
        let before = new.clone();
        transom_crd::accept_names(&crd::taken_names(self, new), new, old, now);
        ownership::update(resource, Subresource::Status, Some(&before), new, "kube-apiserver", now);
        Some(lock)
    }

    pub(super) async fn definitions_lock(&self, resource: &Resource) -> Option<OwnedMutexGuard<()>> {
        if crd::is_definition(resource) { Some(self.definitions.clone().lock_owned().await) } else { None }
    }

    /// The only way into the store. A definition is served from just before its commit is visible, and no longer
    /// from just before its deletion is.
    pub(super) async fn commit(
        &self,
        resource: &Resource,
        write: Write,
        new: Option<&Value>,
    ) -> Result<Committed, WriteError> {
        if !crd::is_definition(resource) {
            let result = self.store.commit(write).await;
            self.dynamic.changed(&resource.group);
            return result;
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
