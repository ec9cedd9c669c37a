//! The scale subresource: `autoscaling/v1` Scale over two or three paths of an object.
//!
//! A Scale is made from the object when it is asked for. Writing one changes the object's replica count, and the
//! owners of the count in the Scale's managedFields are carried back to the object's.

use super::patch::{Form, Patch, check_config, shown, undecodable};
use super::{expect_live, missing, not_supported};
use crate::call::Call;
use crate::negotiate::Representation;
use crate::request::{Verb, WriteOptions};
use crate::resource::ScalePaths;
use crate::respond::Answer;
use crate::strategy::Face;
use crate::write::{self, Outcome, Update};
use crate::{decode, kinds, negotiate, ownership};
use bytes::Bytes;
use serde_json::{Value, json};
use transom_object::{GroupKind, GroupVersionKind, Status, field};
use transom_schema::own;

const API_VERSION: &str = "autoscaling/v1";
const TYPE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// Stands for a count that the object does not have while a Scale is changed: smaller than any count can be.
const NONE: i64 = i32::MIN as i64;

pub(super) async fn dispatch(call: &Call, body: Bytes) -> Result<Answer, Status> {
    let paths = call.resource.scale.as_ref().ok_or_else(|| not_supported(call))?;
    match call.verb {
        Verb::Get => {
            let key = call.resource.key(&call.target.namespace, &call.target.name);
            let entry = call.server.store.get(&key).ok_or_else(|| missing(call))?;
            let object = call.resource.decode(&entry)?;
            if lacks_count(call, &object, paths) {
                let path = spelt(&paths.spec_replicas);
                return Err(Status::internal(format!("the spec replicas field {path:?} does not exist")));
            }
            Ok(answer(call, scale_of(&object, paths)))
        }
        Verb::Update => {
            let body_type = negotiate::body_type(&call.headers, true)?;
            let options = WriteOptions::parse(&call.query, "UpdateOptions", call.user_agent(), false)?;
            let mut given = decode::value(&body, body_type, "Scale")?.value;
            write::settle_place(&mut given, &call.target.namespace, Some(&call.target.name))?;
            write_scale(call, paths, &options, &Change::Replace(given)).await
        }
        Verb::Patch => {
            let form = Form::of(call)?;
            let apply = form == Form::Apply;
            let options = WriteOptions::parse(&call.query, "PatchOptions", call.user_agent(), apply)?;
            expect_live(call)?;
            let patch = Patch::parse(form, &body)?;
            if let Patch::Apply { config, .. } = &patch {
                check_config(config, &GroupVersionKind::new("autoscaling", "v1", "Scale"))?;
            }
            write_scale(call, paths, &options, &Change::Patch(patch)).await
        }
        _ => Err(not_supported(call)),
    }
}

/// Custom objects may have no count, which is not the same as none wanted.
fn lacks_count(call: &Call, object: &Value, paths: &ScalePaths) -> bool {
    call.resource.definition.is_some() && get(object, &paths.spec_replicas).is_none_or(Value::is_null)
}

/// A path as definitions write it.
fn spelt(path: &[String]) -> String {
    format!(".{}", path.join("."))
}

enum Change {
    Replace(Value),
    Patch(Patch),
}

impl Change {
    /// The changed Scale, with managedFields that tell who owns the count now.
    fn apply(&self, scale: &Value, options: &WriteOptions, now: &str) -> Result<Value, Status> {
        let manager = &options.field_manager;
        let mut new = match self {
            Self::Patch(Patch::Apply { config, .. }) => {
                let force = options.force.unwrap_or(false);
                return with_context(now, |ctx| own::apply(ctx, Some(scale), config, manager, force))
                    .map_err(|e| e.to_status());
            }
            Self::Replace(given) => given.clone(),
            Self::Patch(patch) => patch.change(scale, kinds::schema(TYPE).as_deref())?,
        };
        let changed = new.clone();
        kinds::normalize(&mut new, TYPE).map_err(|e| match self {
            Self::Patch(_) => undecodable(shown(&changed), &e.to_string()),
            Self::Replace(_) => {
                Status::bad_request(format!("Scale in version \"v1\" cannot be handled as a Scale: {e}"))
            }
        })?;
        with_context(now, |ctx| own::update(ctx, Some(scale), &mut new, manager));
        Ok(new)
    }
}

fn with_context<T>(now: &str, run: impl FnOnce(&own::Context<'_>) -> T) -> T {
    ownership::of_type(TYPE, API_VERSION, "scale", now, run)
}

async fn write_scale(
    call: &Call,
    paths: &ScalePaths,
    options: &WriteOptions,
    change: &Change,
) -> Result<Answer, Status> {
    let request = Update {
        namespace: &call.target.namespace,
        name: &call.target.name,
        face: Face::Scale,
        manager: None,
        dry_run: options.dry_run,
        create_missing: false,
        require_version: false,
        pins_version: false,
    };
    let (outcome, warnings) = write::update(&call.server, &call.resource, &request, |existing| {
        let live = existing.value.ok_or_else(|| missing(call))?;
        let owners = replica_paths(call, paths);
        let mut scale = scale_of(live, paths);
        if lacks_count(call, live, paths) {
            scale["spec"]["replicas"] = NONE.into();
        }
        let managed = live["metadata"].get("managedFields");
        set_or_remove(
            &mut scale["metadata"],
            own::scale::to_scale(managed, &owners).map_err(Status::internal)?,
        );
        let scale = change.apply(&scale, options, existing.now)?;
        let mut next = live.clone();
        set(&mut next, &paths.spec_replicas, replicas(call, &scale, paths)?.into());
        let of_scale = scale["metadata"].get("managedFields");
        let back = own::scale::to_parent(managed, of_scale, &call.resource.api_version(), &owners)
            .map_err(Status::internal)?;
        set_or_remove(&mut next["metadata"], back);
        if let Some(rv) = scale["metadata"]["resourceVersion"].as_str() {
            next["metadata"]["resourceVersion"] = rv.into();
        }
        Ok(next)
    })
    .await?;
    call.warn(warnings);
    let value = match outcome {
        Outcome::Stored { entry, .. } => call.resource.decode(&entry)?,
        Outcome::Transient { value, .. } => value,
    };
    Ok(answer(call, scale_of(&value, paths)))
}

fn replica_paths(call: &Call, paths: &ScalePaths) -> own::scale::ReplicaPaths {
    let names: Vec<&str> = paths.spec_replicas.iter().map(String::as_str).collect();
    call.resource.schemas.keys().map(|version| (version.clone(), Some(own::Path::of(&names)))).collect()
}

fn set_or_remove(metadata: &mut Value, managed_fields: Option<Value>) {
    if let Some(metadata) = metadata.as_object_mut() {
        match managed_fields {
            Some(fields) => metadata.insert("managedFields".into(), fields),
            None => metadata.remove("managedFields"),
        };
    }
}

/// The count that a Scale asks for. Custom kinds judge it as part of the object.
fn replicas(call: &Call, scale: &Value, paths: &ScalePaths) -> Result<i64, Status> {
    let n = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    if call.resource.definition.is_some() {
        let path = spelt(&paths.spec_replicas);
        let empty = || Status::bad_request(format!("the spec replicas field {path:?} cannot be empty"));
        return if n == NONE { Err(empty()) } else { Ok(n) };
    }
    if n >= 0 {
        return Ok(n);
    }
    let path = field::Path::new("spec").child("replicas");
    let error = field::Error::invalid(&path, n, "must be greater than or equal to 0");
    Err(Status::invalid(&GroupKind::new("autoscaling", "Scale"), &call.target.name, &[error]))
}

fn scale_of(value: &Value, paths: &ScalePaths) -> Value {
    let metadata = &value["metadata"];
    let mut kept = serde_json::Map::new();
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(v) = metadata.get(key) {
            kept.insert(key.into(), v.clone());
        }
    }
    let mut spec = serde_json::Map::new();
    if let Some(n) = get(value, &paths.spec_replicas).and_then(Value::as_i64).filter(|n| *n != 0) {
        spec.insert("replicas".into(), n.into());
    }
    let mut status =
        json!({"replicas": get(value, &paths.status_replicas).and_then(Value::as_i64).unwrap_or(0)});
    if let Some(selector) = paths.label_selector.as_ref().and_then(|p| get(value, p)) {
        let text = match selector {
            Value::String(s) => s.clone(),
            other => transom_object::labels::Selector::from_label_selector(other)
                .map(|s| s.to_string())
                .unwrap_or_default(),
        };
        if !text.is_empty() {
            status["selector"] = text.into();
        }
    }
    json!({"kind": "Scale", "apiVersion": API_VERSION, "metadata": kept, "spec": spec, "status": status})
}

/// A Scale is shown whole or as a row; it has no metadata of its own worth showing alone.
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

fn get<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |v, key| v.get(key))
}

fn set(value: &mut Value, path: &[String], to: Value) {
    let mut at = value;
    for key in path {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[key];
    }
    *at = to;
}
