//! Updating one object: PUT, every kind of PATCH, and the server's own changes.

use super::create::{Create, create};
use super::meta::{dedup_owners, keep_old, settle_place, text};
use super::{Outcome, encode_for_store, unavailable};
use crate::ownership;
use crate::resource::Resource;
use crate::server::Inner;
use crate::services::Reservation;
use crate::strategy::Face;
use serde_json::{Map, Value};
use std::sync::Arc;
use transom_object::{GroupKind, Status, field, meta, names};
use transom_schema::own;
use transom_store::{Entry, Expect, Write, WriteError, WriteOp};

/// The live object an update starts from.
pub(crate) struct Existing<'a> {
    /// As the request's version serves it; `None` when there is no such object.
    pub(crate) value: Option<&'a Value>,
    pub(crate) now: &'a str,
}

pub(crate) struct Update<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) face: Face,
    /// Owns what the update changes; `None` when the change settles ownership itself (server-side apply).
    pub(crate) manager: Option<&'a str>,
    pub(crate) dry_run: bool,
    /// A missing object is created from what the change returns.
    pub(crate) create_missing: bool,
    /// The client's body must carry the live resourceVersion (PUT on kinds without unconditional update).
    pub(crate) require_version: bool,
    /// A resourceVersion in the new object is the client's own, not carried along from the live object.
    pub(crate) pins_version: bool,
}

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Runs `change` on the live object and stores the result; runs it again when another writer was faster.
/// `change` returns the object in served form.
pub(crate) async fn update(
    server: &Inner,
    resource: &Resource,
    request: &Update<'_>,
    mut change: impl FnMut(&Existing<'_>) -> Result<Value, Status>,
) -> Result<(Outcome, Vec<String>), Status> {
    let _definitions = server.definitions_lock(resource).await;
    let key = resource.key(request.namespace, request.name);
    loop {
        let now = server.timestamp();
        let Some(entry) = server.store.get(&key) else {
            drop(_definitions);
            return create_missing(server, resource, request, &now, &mut change).await;
        };
        let old = resource.decode(&entry)?;
        let mut new = change(&Existing { value: Some(&old), now: &now })?;
        let pinned = check_identity(resource, request, &mut new, &old)?;
        let (warnings, mut reservation) = prepare(server, resource, request, &mut new, &old, &now)?;
        if !request.dry_run {
            reservation.submitted();
        }
        let committed = commit(server, resource, request, &entry, &old, new).await;
        reservation.decided();
        match committed {
            Err(Lost::Race) if pinned => {
                return Err(Status::conflict(&resource.group_resource(), request.name, MODIFIED));
            }
            Err(Lost::Race) => {}
            Err(Lost::Failed(status)) => return Err(status),
            Ok(outcome) => return Ok((outcome, warnings)),
        }
    }
}

async fn create_missing(
    server: &Inner,
    resource: &Resource,
    request: &Update<'_>,
    now: &str,
    change: &mut impl FnMut(&Existing<'_>) -> Result<Value, Status>,
) -> Result<(Outcome, Vec<String>), Status> {
    if !request.create_missing || request.face != Face::Main {
        return Err(Status::not_found(&resource.group_resource(), request.name));
    }
    let mut value = change(&Existing { value: None, now })?;
    let uid = text(&value, "uid");
    if !uid.is_empty() {
        let why = if request.pins_version {
            format!("Precondition failed: UID in precondition: {uid}, UID in object meta: ")
        } else {
            format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found")
        };
        return Err(Status::conflict(&resource.group_resource(), request.name, why));
    }
    settle_place(&mut value, request.namespace, Some(request.name))?;
    // A missing object is created whatever version the client last saw, as long as it is one.
    expect_version(text(&value, "resourceVersion"))?;
    let version = super::meta::metadata_mut(&mut value).remove("resourceVersion");
    let create_request =
        Create { value, namespace: request.namespace, manager: request.manager, dry_run: request.dry_run };
    let (mut outcome, warnings) = create(server, resource, create_request).await?;
    if let (Outcome::Transient { value, .. }, Some(version)) = (&mut outcome, version) {
        // What is not stored gets no version, and keeps the one it came with.
        value["metadata"]["resourceVersion"] = version;
    }
    Ok((outcome, warnings))
}

/// Name, namespace, uid and resourceVersion of the body against the live object. Tells whether the client
/// pinned the version it wants to replace.
fn check_identity(
    resource: &Resource,
    request: &Update<'_>,
    new: &mut Value,
    old: &Value,
) -> Result<bool, Status> {
    settle_place(new, request.namespace, Some(request.name))?;
    let gr = resource.group_resource();
    let (given, live) = (text(new, "resourceVersion"), text(old, "resourceVersion"));
    let uid = text(new, "uid");
    // In a patched object another uid is an attempt to change it, which validation refuses.
    if request.pins_version && !uid.is_empty() && uid != text(old, "uid") {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            text(old, "uid")
        );
        return Err(Status::conflict(&gr, request.name, why));
    }
    if given.is_empty() && request.require_version {
        let path = field::Path::new("metadata").child("resourceVersion");
        let error = field::Error::invalid(&path, 0, "must be specified for an update");
        let kind = GroupKind::new(&*resource.group, &*resource.names.plural);
        return Err(Status::invalid(&kind, request.name, &[error]));
    }
    expect_version(given)?;
    if !given.is_empty() && given != live {
        return Err(Status::conflict(&gr, request.name, MODIFIED));
    }
    Ok(!given.is_empty() && request.pins_version)
}

/// A version, if given, is a number.
fn expect_version(given: &str) -> Result<(), Status> {
    if given.is_empty() || given.parse::<u64>().is_ok() {
        return Ok(());
    }
    Err(Status::new(500, "", format!("strconv.ParseUint: parsing {given:?}: invalid syntax")))
}

/// Fix-ups, ownership and validation of the new object.
fn prepare(
    server: &Inner,
    resource: &Resource,
    request: &Update<'_>,
    new: &mut Value,
    old: &Value,
    now: &str,
) -> Result<(Vec<String>, Reservation), Status> {
    let mut warnings: Vec<String> = dedup_owners(new, !request.pins_version).into_iter().collect();
    if let Some(manager) = request.manager {
        ownership::update(resource, request.face, Some(old), new, manager, now);
    }
    keep_old(new, old);
    if text(new, "resourceVersion").is_empty() {
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    }
    resource.strategy.prepare_update(new, old, request.face);
    let reservation = server.settle(resource, new, Some(old), now);
    let path = field::Path::new("metadata");
    let mut errors =
        meta::validate_object_meta(&new["metadata"], resource.namespaced, names::name_is_path_segment, &path);
    errors.extend(meta::validate_object_meta_update(&new["metadata"], &old["metadata"], &path));
    errors.extend(resource.strategy.validate(new, Some(old), request.face, &errors));
    if !errors.is_empty() {
        return Err(Status::invalid(&resource.group_kind(), request.name, &errors));
    }
    server.admit_update(resource, new, old)?;
    warnings.extend(resource.strategy.warnings(new, Some(old)));
    Ok((warnings, reservation))
}

/// Whether writing an object through this version forgets what only the stored version knows.
fn loses(resource: &Resource, entry: &Entry, new: &Value) -> bool {
    if resource.strategy.storage_version() == resource.version {
        return false;
    }
    let stored = resource.strategy.convert_to_storage(new);
    let before: Map<String, Value> = serde_json::from_slice(&entry.body).unwrap_or_default();
    before.iter().any(|(key, value)| key != "metadata" && stored.get(key) != Some(value))
}

enum Lost {
    Race,
    Failed(Status),
}

async fn commit(
    server: &Inner,
    resource: &Resource,
    request: &Update<'_>,
    entry: &Arc<Entry>,
    old: &Value,
    mut new: Value,
) -> Result<Outcome, Lost> {
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    if !request.dry_run {
        // Set by nobody any more, and never stored.
        super::meta::metadata_mut(&mut new).remove("selfLink");
    }
    // Times in managedFields alone are no change: they are taken back, so that two managers applying in turn do
    // not write for ever.
    let unchanged = own::keep_timestamps(old, &mut new) || new == *old;
    // The stored bytes may be of an older schema; what is served is the same.
    if unchanged && !loses(resource, entry, &new) {
        return Ok(Outcome::Stored { entry: entry.clone(), created: false });
    }
    if request.dry_run {
        return Ok(Outcome::Transient { value: new, created: false });
    }
    let finished = new["metadata"]["deletionTimestamp"].is_string()
        && new["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty)
        && server.may_vanish(resource, &new);
    let op = if finished {
        WriteOp::Delete
    } else {
        let stored = resource.strategy.convert_to_storage(&new);
        WriteOp::Put(encode_for_store(&stored).map_err(Lost::Failed)?)
    };
    let key = resource.key(request.namespace, request.name);
    let write = Write { key, expect: Expect::Revision(entry.revision), op, durability: resource.durability };
    match server.commit(resource, write, (!finished).then_some(&new)).await {
        Ok(committed) => match committed.new {
            Some(entry) => Ok(Outcome::Stored { entry, created: false }),
            None => Ok(Outcome::Transient { value: new, created: false }),
        },
        Err(WriteError::Mismatch(_)) => Err(Lost::Race),
        Err(e) => Err(Lost::Failed(unavailable(&e))),
    }
}
