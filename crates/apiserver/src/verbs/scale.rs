//! The scale subresource: GET, PUT and PATCH of an object's `autoscaling/v1` Scale.

use super::{expect_live, missing, not_supported};
use crate::call::Call;
use crate::change::{Form, Patch, ScaleBody, WriteScale, check_config, lacks_count};
use crate::negotiate::Representation;
use crate::request::{Verb, WriteOptions};
use crate::resource::ScalePaths;
use crate::respond::Answer;
use crate::subresource::Subresource;
use crate::write::{self, Outcome, Update};
use crate::{decode, negotiate, scale};
use bytes::Bytes;
use serde_json::{Value, json};
use transom_object::{GroupVersionKind, Status};

pub(super) async fn dispatch(call: &Call, body: Bytes) -> Result<Answer, Status> {
    let paths = call.resource.scale.as_ref().ok_or_else(|| not_supported(call))?;
    match call.verb {
        Verb::Get => get(call, paths).await,
        Verb::Update => {
            let body_type = negotiate::body_type(&call.headers, true)?;
            let options = WriteOptions::parse(&call.query, "UpdateOptions", call.user_agent(), false)?;
            let mut given = decode::value(&body, body_type, "Scale")?.value;
            write::match_path(&mut given, &call.target.namespace, Some(&call.target.name))?;
            write_scale(call, paths, &options, ScaleBody::Replace(given)).await
        }
        Verb::Patch => {
            let form = Form::of(call.content_type(), &call.resource)?;
            let apply = form == Form::Apply;
            let options = WriteOptions::parse(&call.query, "PatchOptions", call.user_agent(), apply)?;
            expect_live(call)?;
            let patch = Patch::parse(form, &body)?;
            if let Patch::Apply { config, .. } = &patch {
                check_config(config, &GroupVersionKind::new("autoscaling", "v1", "Scale"))?;
            }
            write_scale(call, paths, &options, ScaleBody::Patch(patch)).await
        }
        _ => Err(not_supported(call)),
    }
}

async fn get(call: &Call, paths: &ScalePaths) -> Result<Answer, Status> {
    let key = call.resource.key(&call.target.namespace, &call.target.name);
    let entry = call.server.store.get(&key).ok_or_else(|| missing(call))?;
    let entry = call.server.one_in_version(&call.resource, &entry).await?;
    let object = call.resource.decode(&entry)?;
    if lacks_count(&call.resource, &object, paths) {
        let path = scale::replicas_path(paths);
        return Err(Status::internal(format!("the spec replicas field {path:?} does not exist")));
    }
    Ok(answer(call, scale::of(&object, paths)))
}

async fn write_scale(
    call: &Call,
    paths: &ScalePaths,
    options: &WriteOptions,
    body: ScaleBody,
) -> Result<Answer, Status> {
    let request = Update {
        namespace: &call.target.namespace,
        name: &call.target.name,
        subresource: Subresource::Scale,
        options,
        owns_fields: false,
        create_missing: false,
        require_version: false,
        pins_version: false,
        by: call.requester(),
    };
    let (resource, name) = (&*call.resource, call.target.name.as_str());
    let mut change = WriteScale { resource, paths, name, body, options };
    let (outcome, warnings) = write::update(&call.server, resource, &request, &mut change).await?;
    call.warn(warnings);
    let value = match outcome {
        Outcome::Stored { entry, .. } => {
            call.resource.decode(&*call.server.one_in_version(&call.resource, &entry).await?)?
        }
        Outcome::Transient { value, .. } => value,
    };
    Ok(answer(call, scale::of(&value, paths)))
}

/// A Scale is sent whole or as a row of a table; it has no metadata-only form.
fn answer(call: &Call, scale: Value) -> Answer {
    let Representation::Table { version } = &call.accept.representation else { return Answer::value(scale) };
    let column = |name: &str, ty: &str, format: &str, description: &str| json!({"name": name, "type": ty, "format": format, "description": description, "priority": 0});
    let age =
        scale["metadata"]["creationTimestamp"].as_str().and_then(|t| transom_object::time::parse(t).ok());
    let now = jiff::Timestamp::now();
    Answer::value(json!({
        "kind": "Table",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": {"resourceVersion": scale["metadata"]["resourceVersion"]},
        "columnDefinitions": [
            column("Name", "string", "name", "The name of the scaled object."),
            column("Desired", "integer", "", "The number of replicas asked for."),
            column("Available", "integer", "", "The number of replicas observed."),
            column("Age", "string", "", "How long ago the object was created."),
        ],
        "rows": [{
            "cells": [
                scale["metadata"]["name"],
                scale["spec"]["replicas"].as_i64().unwrap_or(0),
                scale["status"]["replicas"],
                transom_object::time::age(age, now),
            ],
            "object": {"kind": "PartialObjectMetadata", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": scale["metadata"]},
        }],
    }))
}
