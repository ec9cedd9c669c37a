//! Deletion of definitions: first their instances, then the definition itself.

use super::owners::{remove_finalizer, resource_of};
use super::{Work, identity, ignore_superseded};
use crate::change::{Edit, Existing};
use crate::crd::STORE_KEY;
use crate::request::{DeleteOptions, Propagation, WriteOptions};
use crate::resource::Resource;
use crate::server::Inner;
use crate::subresource::Subresource;
use crate::write::{self, DeleteRequest};
use serde_json::Value;
use std::sync::Arc;
use transom_crd::CLEANUP;
use transom_object::Status;
use transom_store::{Event, Key};

pub(super) fn note(server: &Inner, event: &Event, mut add: impl FnMut(Work)) {
    if &*event.key.resource == STORE_KEY {
        match &event.new {
            Some(entry) if entry.header.deleting => add(Work::Definition(event.key.object.name.clone())),
            Some(_) => {}
            // Its names are free now: definitions that requested them claim them again.
            None => add(Work::Definition(event.key.object.name.clone())),
        }
        return;
    }
    // Custom kinds are stored under the name of their definition.
    if event.new.is_none() && event.key.resource.contains('.') {
        let definition = Key::new(STORE_KEY, "", &event.key.resource);
        if server.store.get(&definition).is_some_and(|d| d.header.deleting) {
            add(Work::Definition(event.key.resource.clone()));
        }
    }
}

/// An existing definition was written again.
pub(super) fn changed(event: &Event) -> bool {
    &*event.key.resource == STORE_KEY && event.old.is_some() && event.new.is_some()
}

pub(super) async fn empty(server: &Arc<Inner>, name: &str) -> Result<(), Status> {
    let key = Key::new(STORE_KEY, "", name);
    let Some(resource) = resource_of(server, &key) else { return Ok(()) };
    let Some(definition) = server.store.get(&key) else {
        return reclaim_names(server, name).await;
    };
    if !definition.header.deleting || !definition.header.finalizers.iter().any(|f| f == CLEANUP) {
        return Ok(());
    }
    let options = DeleteOptions::with_propagation(Propagation::Background);
    // A definition that never served anything has no instances and no resource to delete them by.
    if let Some(kind) = server.registry.by_store_key(name) {
        for entry in server.store.snapshot(name).objects.values().filter(|e| !e.header.deleting) {
            let request = DeleteRequest {
                namespace: &entry.header.namespace,
                name: &entry.header.name,
                options: &options,
                by: identity::server(),
            };
            ignore_superseded(write::delete(server, &kind, &request).await.map(drop))?;
        }
    }
    if server.store.snapshot(name).objects.is_empty() {
        remove_finalizer(server, &resource, &definition, CLEANUP).await
    } else {
        rewrite_status(server, &resource, name, transom_crd::mark_emptying).await
    }
}

/// A write that changes nothing in their spec makes the other definitions of the group claim their names again.
async fn reclaim_names(server: &Arc<Inner>, gone: &str) -> Result<(), Status> {
    let Some(resource) = server.registry.by_store_key(STORE_KEY) else { return Ok(()) };
    let group = gone.split_once('.').map(|(_, g)| g);
    for entry in server.store.snapshot(STORE_KEY).objects.values() {
        if entry.header.name.split_once('.').map(|(_, g)| g) != group {
            continue;
        }
        rewrite_status(server, &resource, &entry.header.name, |_, _| {}).await?;
    }
    Ok(())
}

async fn rewrite_status(
    server: &Arc<Inner>,
    resource: &Resource,
    name: &str,
    change: impl Fn(&mut Value, &str) + Send + Sync,
) -> Result<(), Status> {
    let request = write::Update {
        namespace: "",
        name,
        subresource: Subresource::Status,
        options: &WriteOptions::of_manager("kube-apiserver"),
        owns_fields: false,
        create_missing: false,
        require_version: false,
        pins_version: false,
        by: identity::server(),
    };
    let mut edit = Edit(|existing: &Existing<'_>| {
        let gone = || Status::not_found(&resource.group_resource(), name);
        let mut value = existing.value.cloned().ok_or_else(gone)?;
        change(&mut value, existing.now);
        Ok(value)
    });
    ignore_superseded(write::update(server, resource, &request, &mut edit).await.map(drop))
}
