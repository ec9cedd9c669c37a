//! Creates one object: metadata of the server, admission, validation, and a write that fails if the name is taken.

use super::admit::{authorize_create, mutate};
use super::escalation::confirm_no_escalation;
use super::meta::{dedup_owners, fill_new, text};
use super::{Outcome, encode_for_store, unavailable};
use crate::admission::{Operation, Options, Request, lifecycle};
use crate::call::Requester;
use crate::certificates;
use crate::ownership;
use crate::request::WriteOptions;
use crate::resource::Resource;
use crate::server::Inner;
use crate::services::Reservation;
use crate::subresource::Subresource;
use serde_json::Value;
use transom_object::{Status, field, meta};
use transom_store::{Expect, Write, WriteError, WriteOp};

pub(crate) struct Create<'a> {
    /// In served form, with the namespace of the request.
    pub(crate) value: Value,
    pub(crate) namespace: &'a str,
    pub(crate) options: &'a WriteOptions,
    /// Whether the manager owns what the body sets; not when server-side apply has merged ownership already.
    pub(crate) owns_fields: bool,
    /// The request was an update or an apply, which needs the right to create as well.
    pub(crate) from_update: bool,
    pub(crate) by: Requester<'a>,
}

/// Names tried for one `generateName` before giving up.
const NAME_ATTEMPTS: usize = 8;

pub(crate) async fn create(
    server: &Inner,
    resource: &Resource,
    request: Create<'_>,
) -> Result<(Outcome, Vec<String>), Status> {
    let Create { mut value, namespace, options, owns_fields, from_update, by } = request;
    let mut warnings = Vec::new();
    if !text(&value, "resourceVersion").is_empty() {
        return Err(Status::new(500, "", "resourceVersion should not be set on objects to be created"));
    }
    warnings.extend(dedup_owners(&mut value, false));
    let now = server.timestamp();
    if owns_fields {
        ownership::update(resource, Subresource::Main, None, &mut value, &options.field_manager, &now);
    }
    lifecycle::create(&server.store, resource, namespace, &value)?;
    let name = text(&value, "name").to_owned();
    let review = Request {
        operation: Operation::Create,
        resource,
        subresource: Subresource::Main,
        namespace,
        name: &name,
        options: Options::Write(options),
        by,
    };
    warnings.extend(mutate(server, &review, &mut value, None).await?);
    confirm_no_escalation(server, &review, if from_update { &name } else { "" }, &value, None).await?;
    fill_new(&mut value, server.new_uid(), &now);
    resource.strategy.prepare_create(&mut value);
    certificates::claim(resource, &mut value, by.user);
    let reservation = server.allocate(resource, &mut value, None);
    let prefix = name_prefix(&value);
    if let Some(prefix) = &prefix {
        value["metadata"]["name"] = generate_name(server, prefix).into();
    }
    check(resource, &value)?;
    warnings.extend(resource.strategy.warnings(&value, None));
    if from_update {
        authorize_create(server, &review).await?;
    }
    let attempts = Attempts { review, dry_run: options.dry_run, prefix, now, reservation };
    attempts.commit(server, value).await.map(|outcome| (outcome, warnings))
}

/// A prepared object to be committed, under further names while the generated ones are taken.
struct Attempts<'a> {
    review: Request<'a>,
    dry_run: bool,
    /// Of the names to generate; none for an object that has a name.
    prefix: Option<String>,
    now: String,
    reservation: Reservation,
}

impl Attempts<'_> {
    async fn commit(mut self, server: &Inner, mut value: Value) -> Result<Outcome, Status> {
        let resource = self.review.resource;
        for attempt in 1.. {
            certificates::review(server, &self.review, &value, None).await?;
            server.admit_validating(&self.review, Some(&value), None).await?;
            let namespace = self.review.namespace;
            let charge = server.charge_quotas(resource, namespace, &value, None, self.dry_run).await?;
            let _definitions = server.accept_names(resource, &mut value, None, &self.now).await;
            if !self.dry_run {
                self.reservation.submitted();
            }
            let committed = commit(server, resource, &value, self.dry_run).await;
            server.finish_charge(namespace, charge, committed.is_ok()).await;
            match (committed, &self.prefix) {
                (Err(s), Some(prefix)) if s.reason == "AlreadyExists" && attempt < NAME_ATTEMPTS => {
                    value["metadata"]["name"] = generate_name(server, prefix).into();
                }
                (outcome, prefix) => {
                    let generated = prefix.is_some();
                    self.reservation.decided();
                    return outcome.map_err(|s| if generated { no_unique_name(s) } else { s });
                }
            }
        }
        Err(Status::internal("no name could be generated"))
    }
}

fn no_unique_name(mut status: Status) -> Status {
    if status.reason == "AlreadyExists" {
        status.message += ", the server was not able to generate a unique name for the object";
    }
    status
}

/// The prefix of the name to generate, if the object has no name.
fn name_prefix(value: &Value) -> Option<String> {
    let prefix = text(value, "generateName");
    (text(value, "name").is_empty() && !prefix.is_empty()).then(|| prefix.to_owned())
}

fn check(resource: &Resource, value: &Value) -> Result<(), Status> {
    let path = field::Path::new("metadata");
    let name_rule = resource.strategy.name_rule();
    let mut errors = meta::validate_object_meta(&value["metadata"], resource.namespaced, name_rule, &path);
    errors.extend(resource.strategy.validate(value, None, Subresource::Main, &errors));
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
        op: WriteOp::Put(encode_for_store(&*server.to_storage(resource, value).await?)?),
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

/// The prefix, cut to leave room, and five random characters.
fn generate_name(server: &Inner, prefix: &str) -> String {
    meta::generate_name(prefix, &mut || server.draw())
}
