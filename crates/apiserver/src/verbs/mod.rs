//! The verbs, one file each.

mod create;
mod delete;
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
use crate::strategy::Face;
use crate::write::Outcome;
use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use transom_object::Status;

pub(crate) async fn dispatch(call: &Call, body: Bytes) -> Result<Answer, Status> {
    let resource = &call.resource;
    if resource.access == Access::CreateOnly {
        return match call.verb {
            Verb::Create if call.target.name.is_empty() => review::create(call, &body),
            _ => Err(not_supported(call)),
        };
    }
    match call.target.subresource.as_str() {
        "" => main(call, body).await,
        "status" if resource.status => face(call, body, Face::Status).await,
        "scale" if resource.scale.is_some() => scale::dispatch(call, body).await,
        "finalize" if resource.extra.contains(&"finalize") => update::finalize(call, &body).await,
        "token" if resource.extra.contains(&"token") => token::create(call, &body),
        // Custom kinds look no further than the name.
        _ if resource.definition.is_some() => {
            Err(Status::not_found(&resource.group_resource(), &call.target.name))
        }
        _ => Err(Status::no_such_resource()),
    }
}

async fn main(call: &Call, body: Bytes) -> Result<Answer, Status> {
    let resource = &call.resource;
    match call.verb {
        Verb::List => list::list(call).await,
        Verb::Watch => watch::watch(call).await,
        // Where the body's name counts, that of the path does not.
        Verb::Create if call.target.name.is_empty() || !resource.strategy.is_typed() => {
            create::create(call, &body).await
        }
        Verb::Create => Err(not_supported(call)),
        Verb::Delete => delete::delete(call, &body).await,
        // Namespaces are deleted one by one, on purpose.
        Verb::DeleteCollection if resource.is_namespace() => Err(Status::method_not_allowed()),
        Verb::DeleteCollection => delete::delete_collection(call, &body).await,
        _ => face(call, body, Face::Main).await,
    }
}

/// The verbs that the object itself and its status share.
async fn face(call: &Call, body: Bytes, face: Face) -> Result<Answer, Status> {
    // Built-in kinds have no such method on a collection; custom kinds miss the name.
    let addressed = !call.target.name.is_empty() || !call.resource.strategy.is_typed();
    match call.verb {
        Verb::Get => get::get(call).await,
        Verb::Update if addressed => update::update(call, &body, face).await,
        Verb::Patch if addressed => patch::patch(call, &body, face).await,
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

/// What is not there is told before what is wrong with a change of it.
fn expect_live(call: &Call) -> Result<(), Status> {
    let key = call.resource.key(&call.target.namespace, &call.target.name);
    call.server.store.get(&key).map(drop).ok_or_else(|| missing(call))
}

/// The object a POST or PUT carries, in served form, with its options. Warnings go out with the answer.
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

/// The answer to a write: the object as it is now, 201 when it is new.
fn written(call: &Call, outcome: &Outcome) -> Result<Answer, Status> {
    let bytes = match outcome {
        Outcome::Stored { entry, .. } => view(call)?.entry(entry)?,
        Outcome::Transient { value, .. } => view(call)?.value(value.clone(), true)?,
    };
    let code = if outcome.created() { StatusCode::CREATED } else { StatusCode::OK };
    Ok(Answer::ok(bytes).with_code(code))
}
