//! What each verb of the API does, one file per verb: from a resolved request to a response. [`dispatch`] chooses the verb by the
//! endpoint of the object that is addressed: the object itself, or one of its subresources.
//!
//! Who calls and whether the caller may is decided before. Verbs change objects only through `write`, and must not know how
//! objects of a kind differ: that is its `strategy`.

mod binding;
mod create;
mod delete;
mod eviction;
mod get;
mod list;
mod patch;
mod review;
mod scale;
mod token;
mod update;
mod watch;

use crate::call::Call;
use crate::decode;
use crate::negotiate::{self, BodyType};
use crate::represent::{Include, View};
use crate::request::{Verb, WriteOptions};
use crate::resource::Access;
use crate::respond::Answer;
use crate::subresource::Subresource;
use crate::write::Outcome;
use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use transom_object::Status;

pub(crate) async fn dispatch(call: &Call, body: Bytes) -> Result<Answer, Status> {
    let resource = &call.resource;
    if resource.access == Access::CreateOnly {
        return match call.verb {
            Verb::Create if call.target.name.is_empty() => match resource.names.kind.as_str() {
                "Binding" => binding::create_by_name(call, &body).await,
                _ => review::create(call, &body).await,
            },
            _ => Err(not_supported(call)),
        };
    }
    match Subresource::parse(&call.target.subresource).filter(|s| resource.has(*s)) {
        Some(Subresource::Main) => object_endpoint(call, body).await,
        Some(
            part @ (Subresource::Status
            | Subresource::Approval
            | Subresource::EphemeralContainers
            | Subresource::Resize),
        ) => object_or_status(call, body, part).await,
        Some(Subresource::Scale) => scale::dispatch(call, body).await,
        Some(Subresource::Finalize) => update::finalize(call, &body).await,
        Some(Subresource::Binding) => binding::create(call, &body).await,
        Some(Subresource::Eviction) => eviction::create(call, &body).await,
        Some(Subresource::Token) => token::create(call, &body).await,
        // Upstream looks for the object of a custom kind before its subresource.
        None if resource.definition.is_some() => {
            Err(Status::not_found(&resource.group_resource(), &call.target.name))
        }
        None => Err(Status::no_such_resource()),
    }
}

/// A collection or one object, without a subresource.
async fn object_endpoint(call: &Call, body: Bytes) -> Result<Answer, Status> {
    let resource = &call.resource;
    match call.verb {
        Verb::List => list::list(call).await,
        Verb::Watch => watch::watch(call).await,
        // Custom kinds take a POST to a named path and use the name in the body.
        Verb::Create if call.target.name.is_empty() || !resource.strategy.is_typed() => {
            create::create(call, &body).await
        }
        Verb::Create => Err(not_supported(call)),
        Verb::Delete => delete::delete(call, &body).await,
        // Namespaces are only deleted one by one.
        Verb::DeleteCollection if resource.is_namespace() => Err(Status::method_not_allowed()),
        Verb::DeleteCollection => delete::delete_collection(call, &body).await,
        _ => object_or_status(call, body, Subresource::Main).await,
    }
}

/// The verbs that the object itself and its parts share.
async fn object_or_status(call: &Call, body: Bytes, subresource: Subresource) -> Result<Answer, Status> {
    // Built-in kinds have no such method on a collection; custom kinds miss the name.
    let addressed = !call.target.name.is_empty() || !call.resource.strategy.is_typed();
    match call.verb {
        Verb::Get => get::get(call).await,
        Verb::Update if addressed => update::update(call, &body, subresource).await,
        Verb::Patch if addressed => patch::patch(call, &body, subresource).await,
        _ => Err(not_supported(call)),
    }
}

fn not_supported(call: &Call) -> Status {
    match call.resource.definition {
        Some(_) => Status::method_not_supported(&call.resource.group_resource(), call.verb.as_str()),
        None => Status::method_not_allowed(),
    }
}

fn expect_name(call: &Call) -> Result<(), Status> {
    if call.target.name.is_empty() { Err(Status::bad_request("name must be provided")) } else { Ok(()) }
}

fn missing(call: &Call) -> Status {
    Status::not_found(&call.resource.group_resource(), &call.target.name)
}

/// 404 takes precedence over a malformed patch.
fn expect_live(call: &Call) -> Result<(), Status> {
    let key = call.resource.key(&call.target.namespace, &call.target.name);
    call.server.store.get(&key).map(drop).ok_or_else(|| missing(call))
}

/// The object a POST or PUT carries, in served form, with its options. Warnings are part of the response.
fn decode_body(call: &Call, body: &[u8], options_kind: &str) -> Result<(Value, WriteOptions), Status> {
    let body_type = negotiate::body_type(&call.headers, call.resource.strategy.is_typed())?;
    let options = WriteOptions::parse(&call.query, options_kind, call.user_agent(), false)?;
    let validation = options.field_validation;
    let mut decoded = decode::object(&call.resource, body, body_type, validation)?;
    let mut warnings = Vec::new();
    let json = if body_type == BodyType::Json { body } else { &[] };
    let normalized = decode::normalize(&call.resource, &mut decoded, json, validation, &mut warnings);
    call.warn(warnings);
    normalized?;
    Ok((decoded.value, options))
}

fn view(call: &Call) -> Result<View<'_>, Status> {
    Ok(View {
        resource: &call.resource,
        representation: &call.accept.representation,
        include: Include::parse(call.query.get("includeObject"))?,
    })
}

/// The response to a write: the object as it is now, 201 when it is new.
async fn written(call: &Call, outcome: &Outcome) -> Result<Answer, Status> {
    let bytes = match outcome {
        Outcome::Stored { entry, .. } => {
            let entry = call.server.one_in_version(&call.resource, entry).await?;
            view(call)?.entry(&entry)?
        }
        Outcome::Transient { value, .. } => view(call)?.value(value.clone(), true)?,
    };
    let code = if outcome.created() { StatusCode::CREATED } else { StatusCode::OK };
    Ok(Answer::ok(bytes).with_code(code))
}
