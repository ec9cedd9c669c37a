//! Deleting one object: immediately, or when its finalizers are removed.

use super::{encode_for_store, unavailable};
use crate::admission::{Operation, Options, Request, lifecycle};
use crate::call::Requester;
use crate::crd;
use crate::request::{DeleteOptions, Propagation};
use crate::resource::Resource;
use crate::server::Inner;
use crate::subresource::Subresource;
use serde_json::{Value, json};
use transom_object::json::strings;
use transom_object::meta::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN};
use transom_object::{GroupResource, Status};
use transom_store::{Entry, Expect, Write, WriteError, WriteOp};

pub(crate) struct DeleteRequest<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) options: &'a DeleteOptions,
    pub(crate) by: Requester<'a>,
}

/// The result of a deletion.
pub(crate) enum Deleted {
    /// The object was removed; this was its last state.
    Gone(Value),
    /// It has finalizers: it is marked as deleted and will be removed with the last of them.
    Marked(Value),
}

pub(crate) async fn delete(
    server: &Inner,
    resource: &Resource,
    request: &DeleteRequest<'_>,
) -> Result<Deleted, Status> {
    let key = resource.key(request.namespace, request.name);
    loop {
        let entry = server
            .store
            .get(&key)
            .ok_or_else(|| Status::not_found(&resource.group_resource(), request.name))?;
        check_preconditions(resource, request, &entry)?;
        let live = resource.decode(&*server.one_in_version(resource, &entry).await?)?;
        admit(server, resource, request, &live).await?;
        let _definitions = server.definitions_lock(resource).await;
        let mut next = live.clone();
        let held = mark(server, resource, &mut next, request.options.propagation);
        if request.options.dry_run {
            return Ok(if held { Deleted::Marked(next) } else { Deleted::Gone(live) });
        }
        if held && next == live {
            return Ok(Deleted::Marked(live));
        }
        let op = if held {
            WriteOp::Put(encode_for_store(&*server.to_storage(resource, &next).await?)?)
        } else {
            WriteOp::Delete
        };
        let write = Write {
            key: key.clone(),
            expect: Expect::Revision(entry.revision),
            op,
            durability: resource.durability,
        };
        match server.commit(resource, write, held.then_some(&next)).await {
            Ok(committed) => {
                return match committed.new {
                    Some(entry) => {
                        let entry = server.one_in_version(resource, &entry).await?;
                        Ok(Deleted::Marked(resource.decode(&entry)?))
                    }
                    // The resourceVersion of its last state is that of the deletion.
                    None => {
                        let mut last = live;
                        last["metadata"]["resourceVersion"] = committed.revision.to_string().into();
                        Ok(Deleted::Gone(last))
                    }
                };
            }
            Err(WriteError::Mismatch(_)) => {}
            Err(e) => return Err(unavailable(&e)),
        }
    }
}

async fn admit(
    server: &Inner,
    resource: &Resource,
    request: &DeleteRequest<'_>,
    live: &Value,
) -> Result<(), Status> {
    lifecycle::delete(resource, request.name)?;
    let review = Request {
        operation: Operation::Delete,
        resource,
        subresource: Subresource::Main,
        namespace: request.namespace,
        name: request.name,
        options: Options::Delete(request.options),
        by: request.by,
    };
    server.admit_deletion(&review, live).await
}

/// Sets finalizers by the propagation policy and, when any finalizer holds the object, the deletion time.
/// Returns whether the object is held.
fn mark(server: &Inner, resource: &Resource, value: &mut Value, propagation: Option<Propagation>) -> bool {
    let mut finalizers = strings(&value["metadata"]["finalizers"]);
    if let Some(policy) = propagation {
        finalizers.retain(|f| f != FINALIZER_ORPHAN && f != FINALIZER_FOREGROUND);
        match policy {
            Propagation::Orphan => finalizers.push(FINALIZER_ORPHAN.into()),
            Propagation::Foreground => finalizers.push(FINALIZER_FOREGROUND.into()),
            Propagation::Background => {}
        }
    }
    let marked = value["metadata"]["deletionTimestamp"].is_string();
    let held = !finalizers.is_empty() || !server.may_vanish(resource, value);
    if !held {
        return false;
    }
    if finalizers.is_empty() {
        super::meta::metadata_mut(value).remove("finalizers");
    } else {
        value["metadata"]["finalizers"] = json!(finalizers);
    }
    if !marked {
        value["metadata"]["deletionTimestamp"] = server.timestamp().into();
        // Upstream deletes namespaces and definitions by code of their own, which sets neither of these.
        if !resource.is_namespace() && !crd::is_definition(resource) {
            value["metadata"]["deletionGracePeriodSeconds"] = 0.into();
            if let Some(generation) = value["metadata"]["generation"].as_i64().filter(|g| *g > 0) {
                value["metadata"]["generation"] = (generation + 1).into();
            }
        }
        server.mark_terminating(resource, value);
    }
    true
}

fn check_preconditions(
    resource: &Resource,
    request: &DeleteRequest<'_>,
    entry: &Entry,
) -> Result<(), Status> {
    // Upstream words these with the Kind where it otherwise uses the plural.
    let gr = GroupResource::new(&*resource.group, &*resource.names.kind);
    let given = &request.options.preconditions;
    if let Some(uid) = given.uid.as_ref().filter(|uid| **uid != entry.header.uid) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            entry.header.uid
        );
        return Err(Status::conflict(&gr, request.name, why));
    }
    let live = entry.revision.to_string();
    if let Some(rv) = given.resource_version.as_ref().filter(|rv| **rv != live) {
        let why = format!(
            "the ResourceVersion in the precondition ({rv}) does not match the ResourceVersion in record ({live}). The object might have been modified"
        );
        return Err(Status::conflict(&gr, request.name, why));
    }
    Ok(())
}
