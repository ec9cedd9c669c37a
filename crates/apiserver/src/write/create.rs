//! Creating one object.

use super::meta::{dedup_owners, fill_new, settle_place, text};
use super::{Outcome, encode_for_store, unavailable};
use crate::ownership;
use crate::resource::Resource;
use crate::server::Inner;
use crate::strategy::Face;
use serde_json::Value;
use transom_object::{Status, field, meta};
use transom_store::{Expect, Write, WriteError, WriteOp};

pub(crate) struct Create<'a> {
    pub(crate) value: Value,
    pub(crate) namespace: &'a str,
    /// The manager that owns what the body sets; `None` when ownership is settled already (server-side apply).
    pub(crate) manager: Option<&'a str>,
    pub(crate) dry_run: bool,
}

/// Names tried for one `generateName` before giving up.
const NAME_ATTEMPTS: usize = 8;

pub(crate) async fn create(
    server: &Inner,
    resource: &Resource,
    request: Create<'_>,
) -> Result<(Outcome, Vec<String>), Status> {
    let Create { mut value, namespace, manager, dry_run } = request;
    let mut warnings = Vec::new();
    settle_place(&mut value, namespace, None)?;
    if !text(&value, "resourceVersion").is_empty() {
        return Err(Status::new(500, "", "resourceVersion should not be set on objects to be created"));
    }
    warnings.extend(dedup_owners(&mut value, false));
    let now = server.timestamp();
    if let Some(manager) = manager {
        ownership::update(resource, Face::Main, None, &mut value, manager, &now);
    }
    server.admit_create(resource, namespace, &value)?;
    let _definitions = server.definitions_lock(resource).await;
    fill_new(&mut value, server.new_uid(), &now);
    resource.strategy.prepare_create(&mut value);
    let mut reservation = server.settle(resource, &mut value, None, &now);
    let prefix = text(&value, "generateName").to_owned();
    let generate = text(&value, "name").is_empty() && !prefix.is_empty();
    for attempt in 1.. {
        if generate {
            value["metadata"]["name"] = generate_name(server, &prefix).into();
        }
        if attempt == 1 {
            check(resource, &value)?;
            warnings.extend(resource.strategy.warnings(&value, None));
        }
        if !dry_run {
            reservation.submitted();
        }
        match commit(server, resource, &value, dry_run).await {
            Err(s) if generate && s.reason == "AlreadyExists" && attempt < NAME_ATTEMPTS => {}
            Err(mut s) if generate && s.reason == "AlreadyExists" => {
                s.message = format!(
                    "{}, the server was not able to generate a unique name for the object",
                    s.message
                );
                reservation.decided();
                return Err(s);
            }
            other => {
                reservation.decided();
                return other.map(|outcome| (outcome, warnings));
            }
        }
    }
    Err(Status::internal("no name could be generated"))
}

fn check(resource: &Resource, value: &Value) -> Result<(), Status> {
    let path = field::Path::new("metadata");
    let name_rule = resource.strategy.name_rule();
    let mut errors = meta::validate_object_meta(&value["metadata"], resource.namespaced, name_rule, &path);
    errors.extend(resource.strategy.validate(value, None, Face::Main, &errors));
    if errors.is_empty() {
        return Ok(());
    }
    let name = text(value, "name");
    let name = if name.is_empty() { text(value, "generateName") } else { name };
    Err(Status::invalid(&resource.group_kind(), name, &errors))
}

async fn commit(
    server: &Inner,
    resource: &Resource,
    value: &Value,
    dry_run: bool,
) -> Result<Outcome, Status> {
    let name = text(value, "name");
    let key = resource.key(text(value, "namespace"), name);
    if dry_run {
        return match server.store.get(&key) {
            Some(existing) => Err(exists(resource, name, existing.header.deleting)),
            None => Ok(Outcome::Transient { value: value.clone(), created: true }),
        };
    }
    let write = Write {
        key,
        expect: Expect::Absent,
        op: WriteOp::Put(encode_for_store(&resource.strategy.convert_to_storage(value))?),
        durability: resource.durability,
    };
    match server.commit(resource, write, Some(value)).await {
        Ok(committed) => {
            let entry = committed
                .new
                .ok_or_else(|| Status::internal("a created object is missing from its commit"))?;
            Ok(Outcome::Stored { entry, created: true })
        }
        Err(WriteError::Mismatch(existing)) => {
            Err(exists(resource, name, existing.is_some_and(|e| e.header.deleting)))
        }
        Err(e) => Err(unavailable(&e)),
    }
}

fn exists(resource: &Resource, name: &str, deleting: bool) -> Status {
    let mut status = Status::already_exists(&resource.group_resource(), name);
    if deleting {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}

/// The prefix, cut to leave room, and five characters that spell no words.
fn generate_name(server: &Inner, prefix: &str) -> String {
    meta::generate_name(prefix, &mut || server.draw())
}
