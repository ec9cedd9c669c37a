//! Updating one object: PUT, every kind of PATCH, and the server's own changes.

use super::admit::{mutate, validate_update};
use super::create::{Create, create};
use super::escalation::confirm_no_escalation;
use super::meta::{dedup_owners, keep_old, match_path, text};
use super::{Outcome, encode_for_store, unavailable};
use crate::admission::{Operation, Options, Request};
use crate::call::Requester;
use crate::certificates;
use crate::change::{Change, Existing};
use crate::ownership;
use crate::pods::keep_part;
use crate::request::WriteOptions;
use crate::resource::Resource;
use crate::server::Inner;
use crate::services::Reservation;
use crate::subresource::Subresource;
use serde_json::{Map, Value};
use std::sync::Arc;
use transom_object::{GroupKind, Status, field, meta, names};
use transom_schema::own;
use transom_store::{Entry, Expect, Write, WriteError, WriteOp};

pub(crate) struct Update<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) subresource: Subresource,
    pub(crate) options: &'a WriteOptions,
    /// Whether the manager owns what the update changes; not when the change merges ownership itself
    /// (server-side apply, Scale).
    pub(crate) owns_fields: bool,
    /// A missing object is created from what the change returns.
    pub(crate) create_missing: bool,
    /// The client's body must carry the live resourceVersion (PUT on kinds without unconditional update).
    pub(crate) require_version: bool,
    /// A resourceVersion in the new object is the client's own, not carried along from the live object.
    pub(crate) pins_version: bool,
    pub(crate) by: Requester<'a>,
}

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Runs `change` on the live object and stores the result; runs it again when another write came first.
pub(crate) async fn update(
    server: &Inner,
    resource: &Resource,
    request: &Update<'_>,
    change: &mut dyn Change,
) -> Result<(Outcome, Vec<String>), Status> {
    let key = resource.key(request.namespace, request.name);
    loop {
        let now = server.timestamp();
        let Some(entry) = server.store.get(&key) else {
            return create_missing(server, resource, request, &now, change).await;
        };
        let old = resource.decode(&*server.one_in_version(resource, &entry).await?)?;
        let mut new = change.apply(&Existing { value: Some(&old), now: &now })?;
        let pinned = check_identity(resource, request, &mut new, &old)?;
        let (warnings, mut reservation) = prepare(server, resource, request, &mut new, &old, &now).await?;
        let dry_run = request.options.dry_run;
        let charge = server.charge_quotas(resource, request.namespace, &new, Some(&old), dry_run).await?;
        let _definitions = server.accept_names(resource, &mut new, Some(&old), &now).await;
        if !request.options.dry_run {
            reservation.submitted();
        }
        let committed = commit(server, resource, request, &entry, &old, new).await;
        server.finish_charge(request.namespace, charge, committed.is_ok()).await;
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
    change: &mut dyn Change,
) -> Result<(Outcome, Vec<String>), Status> {
    if !request.create_missing || request.subresource != Subresource::Main {
        return Err(Status::not_found(&resource.group_resource(), request.name));
    }
    let mut value = change.apply(&Existing { value: None, now })?;
    let uid = text(&value, "uid");
    if !uid.is_empty() {
        let why = if request.pins_version {
            format!("Precondition failed: UID in precondition: {uid}, UID in object meta: ")
        } else {
            format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found")
        };
        return Err(Status::conflict(&resource.group_resource(), request.name, why));
    }
    match_path(&mut value, request.namespace, Some(request.name))?;
    // A missing object is created whatever version the client last saw, as long as it is a version.
    expect_version(text(&value, "resourceVersion"))?;
    let version = super::meta::metadata_mut(&mut value).remove("resourceVersion");
    let create_request = Create {
        value,
        namespace: request.namespace,
        options: request.options,
        owns_fields: request.owns_fields,
        from_update: true,
        by: request.by,
    };
    let (mut outcome, warnings) = create(server, resource, create_request).await?;
    if let (Outcome::Transient { value, .. }, Some(version)) = (&mut outcome, version) {
        // A dry run keeps the client's resourceVersion.
        value["metadata"]["resourceVersion"] = version;
    }
    Ok((outcome, warnings))
}

/// Name, namespace, uid and resourceVersion of the body against the live object. Returns whether the client
/// gave the version that it replaces.
fn check_identity(
    resource: &Resource,
    request: &Update<'_>,
    new: &mut Value,
    old: &Value,
) -> Result<bool, Status> {
    match_path(new, request.namespace, Some(request.name))?;
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

/// Ownership, admission, fix-ups and validation of the new object.
async fn prepare(
    server: &Inner,
    resource: &Resource,
    request: &Update<'_>,
    new: &mut Value,
    old: &Value,
    now: &str,
) -> Result<(Vec<String>, Reservation), Status> {
    let mut warnings: Vec<String> = dedup_owners(new, !request.pins_version).into_iter().collect();
    keep_part(new, old, request.subresource);
    if request.owns_fields {
        let manager = &request.options.field_manager;
        ownership::update(resource, request.subresource, Some(old), new, manager, now);
    }
    let review = Request {
        operation: Operation::Update,
        resource,
        subresource: request.subresource,
        namespace: request.namespace,
        name: request.name,
        options: Options::Write(request.options),
        by: request.by,
    };
    // What a binding or an eviction changes was reviewed as such.
    let is_reviewed = matches!(request.subresource, Subresource::Binding | Subresource::Eviction);
    if !is_reviewed {
        warnings.extend(mutate(server, &review, new, Some(old)).await?);
    }
    confirm_no_escalation(server, &review, request.name, new, Some(old)).await?;
    keep_old(new, old);
    if text(new, "resourceVersion").is_empty() {
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    }
    resource.strategy.prepare_update(new, old, request.subresource);
    certificates::complete(resource, new, old, request.subresource, now);
    let reservation = server.allocate(resource, new, Some(old));
    let path = field::Path::new("metadata");
    let mut errors =
        meta::validate_object_meta(&new["metadata"], resource.namespaced, names::name_is_path_segment, &path);
    errors.extend(meta::validate_object_meta_update(&new["metadata"], &old["metadata"], &path));
    errors.extend(resource.strategy.validate(new, Some(old), request.subresource, &errors));
    if !errors.is_empty() {
        return Err(Status::invalid(&resource.group_kind(), request.name, &errors));
    }
    warnings.extend(resource.strategy.warnings(new, Some(old)));
    if !is_reviewed {
        validate_update(server, &review, new, old).await?;
    }
    Ok((warnings, reservation))
}

/// Whether writing an object through this version drops fields that only the stored version has.
fn loses(resource: &Resource, entry: &Entry, new: &Value) -> bool {
    if resource.strategy.storage_version() == resource.version || resource.conversion.is_some() {
        return false;
    }
    let stored = resource.strategy.convert_to_storage(new);
    let before: Map<String, Value> = serde_json::from_slice(&entry.body).unwrap_or_default();
    before.iter().any(|(key, value)| key != "metadata" && stored.get(key) != Some(value))
}

/// Whether the object is stored in a version that a webhook converts to the storage version of today: writing it as it is
/// stores it anew, which is how storage versions are migrated.
fn is_of_former_storage(resource: &Resource, entry: &Entry) -> bool {
    #[derive(serde::Deserialize)]
    struct Stored<'a> {
        #[serde(rename = "apiVersion", borrow)]
        api_version: std::borrow::Cow<'a, str>,
    }
    let stored = || serde_json::from_slice::<Stored<'_>>(&entry.body).ok();
    resource.conversion.is_some()
        && stored().is_some_and(|stored| {
            stored.api_version.rsplit('/').next() != Some(resource.strategy.storage_version())
        })
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
    if !request.options.dry_run {
        // A dry run returns what the client sent; it is never stored.
        super::meta::metadata_mut(&mut new).remove("selfLink");
    }
    // Times in managedFields alone are not a change: they are taken back, so that two managers that apply in turn
    // do not write indefinitely.
    let unchanged = own::keep_timestamps(old, &mut new) || new == *old;
    // The stored bytes may be of an older schema; what is served is the same.
    if unchanged && !loses(resource, entry, &new) && !is_of_former_storage(resource, entry) {
        return Ok(Outcome::Stored { entry: entry.clone(), created: false });
    }
    if request.options.dry_run {
        return Ok(Outcome::Transient { value: new, created: false });
    }
    let finished = new["metadata"]["deletionTimestamp"].is_string()
        && new["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty)
        && server.may_vanish(resource, &new);
    let op = if finished {
        WriteOp::Delete
    } else {
        let stored = server.to_storage(resource, &new).await.map_err(Lost::Failed)?;
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
