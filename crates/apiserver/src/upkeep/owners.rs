//! Garbage collection by owner references.
//!
//! An object none of whose owners exists is deleted; references to missing owners are dropped where another
//! owner remains. An owner deleted in the foreground waits for the dependents that block it; one deleted with
//! orphaning releases all of them first.

use super::{SharedIndex, identity, ignore_superseded};
use crate::change::{Edit, Existing};
use crate::request::{DeleteOptions, Preconditions, Propagation, WriteOptions};
use crate::resource::Resource;
use crate::server::Inner;
use crate::subresource::Subresource;
use crate::write::{self, DeleteRequest, Update};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, PoisonError};
use transom_object::meta::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN};
use transom_object::{GroupVersion, OwnerReference, Status};
use transom_store::{Entry, Event, Key};

/// Uids remembered as deleted, so that dependents are collected although their owner's kind is no longer served.
const MAX_REMEMBERED_UIDS: usize = 10_000;

/// The dependents of each owner, by the owner's uid.
#[derive(Default)]
pub(super) struct OwnerIndex {
    dependents: HashMap<String, BTreeSet<Key>>,
    /// Objects whose deletion waits for their dependents.
    waiting: HashMap<String, Key>,
    gone: HashSet<String>,
    gone_in_order: VecDeque<String>,
}

impl OwnerIndex {
    /// Updates the index by one change, and returns every object that may be affected.
    pub(super) fn note(&mut self, event: &Event, mut concern: impl FnMut(Key)) {
        let owners = |e: &Option<Arc<Entry>>| e.as_ref().map(|e| e.header.owners.clone()).unwrap_or_default();
        let (old, new) = (owners(&event.old), owners(&event.new));
        for owner in old.iter().filter(|o| !new.iter().any(|n| n.uid == o.uid)) {
            self.forget(&owner.uid, &event.key);
        }
        for owner in &new {
            self.dependents.entry(owner.uid.clone()).or_default().insert(event.key.clone());
        }
        match (&event.new, &event.old) {
            (Some(entry), _) => {
                let waits = waits(entry);
                if !new.is_empty() || waits {
                    concern(event.key.clone());
                }
                if waits {
                    self.waiting.insert(entry.header.uid.clone(), event.key.clone());
                    // Their owners are checked again, because one of them now waits.
                    self.dependents_of(&entry.header.uid).into_iter().for_each(&mut concern);
                }
            }
            (None, Some(gone)) => {
                self.waiting.remove(&gone.header.uid);
                self.remember_gone(&gone.header.uid);
                self.dependents_of(&gone.header.uid).into_iter().for_each(&mut concern);
            }
            (None, None) => {}
        }
        old.iter().filter_map(|o| self.waiting.get(&o.uid)).cloned().for_each(concern);
    }

    fn forget(&mut self, owner: &str, dependent: &Key) {
        if let Some(keys) = self.dependents.get_mut(owner) {
            keys.remove(dependent);
            if keys.is_empty() {
                self.dependents.remove(owner);
            }
        }
    }

    fn remember_gone(&mut self, uid: &str) {
        if self.dependents.contains_key(uid) && self.gone.insert(uid.to_owned()) {
            self.gone_in_order.push_back(uid.to_owned());
            if self.gone_in_order.len() > MAX_REMEMBERED_UIDS
                && let Some(oldest) = self.gone_in_order.pop_front()
            {
                self.gone.remove(&oldest);
            }
        }
    }

    fn dependents_of(&self, uid: &str) -> Vec<Key> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }
}

fn waits(entry: &Entry) -> bool {
    entry.header.deleting
        && entry.header.finalizers.iter().any(|f| f == FINALIZER_FOREGROUND || f == FINALIZER_ORPHAN)
}

fn waits_in_foreground(entry: &Entry) -> bool {
    entry.header.deleting && entry.header.finalizers.iter().any(|f| f == FINALIZER_FOREGROUND)
}

/// The state of an owner.
enum Owner {
    Solid,
    /// Being deleted in the foreground: waits for its dependents.
    Waiting,
    Absent,
    /// Of a kind that is not served, or a namespaced owner of a cluster-scoped object: nothing is decided because of it.
    Unknown,
}

pub(super) async fn look_at(server: &Arc<Inner>, index: &SharedIndex, key: &Key) -> Result<(), Status> {
    let Some(entry) = server.store.get(key) else { return Ok(()) };
    let Some(resource) = resource_of(server, key) else { return Ok(()) };
    if entry.header.deleting {
        if entry.header.finalizers.iter().any(|f| f == FINALIZER_ORPHAN) {
            return orphan_dependents(server, index, &resource, &entry).await;
        }
        if waits_in_foreground(&entry) {
            return await_dependents(server, index, &resource, &entry).await;
        }
        return Ok(());
    }
    if entry.header.owners.is_empty() { Ok(()) } else { judge(server, index, &resource, &entry).await }
}

async fn judge(
    server: &Arc<Inner>,
    index: &SharedIndex,
    resource: &Arc<Resource>,
    entry: &Entry,
) -> Result<(), Status> {
    let mut solid = false;
    let mut lost: Vec<&str> = Vec::new();
    let mut waiting = false;
    for owner in &entry.header.owners {
        match owner_of(server, index, owner, &entry.header.namespace) {
            Owner::Solid | Owner::Unknown => solid = true,
            Owner::Absent => lost.push(&owner.uid),
            Owner::Waiting => {
                lost.push(&owner.uid);
                waiting = true;
            }
        }
    }
    if solid {
        return if lost.is_empty() { Ok(()) } else { drop_owners(server, resource, entry, &lost).await };
    }
    let has_dependents = !dependents(index, &entry.header.uid).is_empty();
    let propagation = if waiting && has_dependents {
        unblock_cycle(server, index, resource, entry).await?;
        Propagation::Foreground
    } else if entry.header.finalizers.iter().any(|f| f == FINALIZER_ORPHAN) {
        Propagation::Orphan
    } else if entry.header.finalizers.iter().any(|f| f == FINALIZER_FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    delete(server, resource, entry, propagation).await
}

/// Two objects that own and block each other would wait indefinitely: when a dependent of this object is itself
/// being deleted in the foreground, this object's references stop blocking.
async fn unblock_cycle(
    server: &Arc<Inner>,
    index: &SharedIndex,
    resource: &Arc<Resource>,
    entry: &Entry,
) -> Result<(), Status> {
    let in_cycle = dependents(index, &entry.header.uid)
        .iter()
        .filter_map(|key| server.store.get(key))
        .any(|dependent| waits_in_foreground(&dependent));
    if !in_cycle {
        return Ok(());
    }
    change(server, resource, entry, |object| {
        for owner in object["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten() {
            owner["blockOwnerDeletion"] = false.into();
        }
    })
    .await
}

async fn delete(
    server: &Arc<Inner>,
    resource: &Arc<Resource>,
    entry: &Entry,
    propagation: Propagation,
) -> Result<(), Status> {
    // The uid excludes another object of the same name; the resourceVersion excludes owners added since.
    let preconditions = Preconditions {
        uid: Some(entry.header.uid.clone()),
        resource_version: Some(entry.revision.to_string()),
    };
    let options = DeleteOptions { propagation: Some(propagation), preconditions, dry_run: false };
    let request = DeleteRequest {
        namespace: &entry.header.namespace,
        name: &entry.header.name,
        options: &options,
        by: identity::garbage_collector(),
    };
    ignore_superseded(write::delete(server, resource, &request).await.map(drop))
}

/// Foreground: delete the dependents that block, and release the owner when none is left.
async fn await_dependents(
    server: &Arc<Inner>,
    index: &SharedIndex,
    resource: &Arc<Resource>,
    entry: &Entry,
) -> Result<(), Status> {
    let blocking: Vec<Key> = dependents(index, &entry.header.uid)
        .into_iter()
        .filter(|key| server.store.get(key).is_some_and(|d| blocks(&d, &entry.header.uid)))
        .collect();
    if blocking.is_empty() {
        return remove_finalizer(server, resource, entry, FINALIZER_FOREGROUND).await;
    }
    // Each of them has a key of its own; the key of this object is added again when one of them is removed.
    Ok(())
}

fn blocks(dependent: &Entry, owner: &str) -> bool {
    dependent.header.owners.iter().any(|o| o.uid == owner && o.block_owner_deletion == Some(true))
}

async fn orphan_dependents(
    server: &Arc<Inner>,
    index: &SharedIndex,
    resource: &Arc<Resource>,
    entry: &Entry,
) -> Result<(), Status> {
    for key in dependents(index, &entry.header.uid) {
        let (Some(dependent), Some(kind)) = (server.store.get(&key), resource_of(server, &key)) else {
            continue;
        };
        drop_owners(server, &kind, &dependent, &[&entry.header.uid]).await?;
    }
    remove_finalizer(server, resource, entry, FINALIZER_ORPHAN).await
}

async fn drop_owners(
    server: &Arc<Inner>,
    resource: &Arc<Resource>,
    entry: &Entry,
    uids: &[&str],
) -> Result<(), Status> {
    change(server, resource, entry, |object| {
        if let Some(owners) = object["metadata"].get_mut("ownerReferences").and_then(Value::as_array_mut) {
            owners.retain(|o| !uids.iter().any(|uid| o["uid"] == **uid));
            if owners.is_empty()
                && let Some(metadata) = object["metadata"].as_object_mut()
            {
                metadata.remove("ownerReferences");
            }
        }
    })
    .await
}

pub(super) async fn remove_finalizer(
    server: &Arc<Inner>,
    resource: &Arc<Resource>,
    entry: &Entry,
    finalizer: &str,
) -> Result<(), Status> {
    change(server, resource, entry, |object| {
        if let Some(finalizers) = object["metadata"].get_mut("finalizers").and_then(Value::as_array_mut) {
            finalizers.retain(|f| f != finalizer);
            if finalizers.is_empty()
                && let Some(metadata) = object["metadata"].as_object_mut()
            {
                metadata.remove("finalizers");
            }
        }
    })
    .await
}

/// One change of an object's metadata, if it is still the same object.
async fn change(
    server: &Arc<Inner>,
    resource: &Arc<Resource>,
    entry: &Entry,
    edit: impl Fn(&mut Value) + Send + Sync,
) -> Result<(), Status> {
    let request = Update {
        namespace: &entry.header.namespace,
        name: &entry.header.name,
        subresource: Subresource::Main,
        options: &WriteOptions::of_manager("transom"),
        owns_fields: true,
        create_missing: false,
        require_version: false,
        pins_version: false,
        by: identity::garbage_collector(),
    };
    let uid = entry.header.uid.as_str();
    let mut change = Edit(|existing: &Existing<'_>| {
        let gone = || Status::not_found(&resource.group_resource(), request.name);
        let mut object = existing.value.filter(|v| v["metadata"]["uid"] == uid).ok_or_else(gone)?.clone();
        edit(&mut object);
        Ok(object)
    });
    ignore_superseded(write::update(server, resource, &request, &mut change).await.map(drop))
}

fn dependents(index: &SharedIndex, uid: &str) -> Vec<Key> {
    index.lock().unwrap_or_else(PoisonError::into_inner).dependents_of(uid)
}

/// Looks an owner up by kind, name and uid. An object of the same name with another uid is not the owner.
fn owner_of(server: &Inner, index: &SharedIndex, owner: &OwnerReference, namespace: &str) -> Owner {
    if index.lock().unwrap_or_else(PoisonError::into_inner).gone.contains(&owner.uid) {
        return Owner::Absent;
    }
    let Some(gv) = GroupVersion::parse(&owner.api_version) else { return Owner::Unknown };
    let served = server.registry.served();
    let Some(resource) = served.by_kind(&gv.group, &gv.version, &owner.kind) else { return Owner::Unknown };
    if resource.namespaced && namespace.is_empty() {
        return Owner::Unknown;
    }
    let key = resource.key(namespace, &owner.name);
    match server.store.get(&key) {
        Some(entry) if entry.header.uid == owner.uid => {
            if waits_in_foreground(&entry) {
                Owner::Waiting
            } else {
                Owner::Solid
            }
        }
        _ => Owner::Absent,
    }
}

pub(super) fn resource_of(server: &Inner, key: &Key) -> Option<Arc<Resource>> {
    server.registry.by_store_key(&key.resource)
}
