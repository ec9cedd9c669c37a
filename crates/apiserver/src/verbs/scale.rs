//! The scale subresource: `autoscaling/v1` Scale over two or three paths of an object.

use super::not_supported;
use super::patch::refused;
use crate::call::Call;
use crate::request::{Verb, WriteOptions};
use crate::resource::ScalePaths;
use crate::respond::Answer;
use crate::strategy::Face;
use crate::write::{self, Outcome, Update};
use crate::{decode, negotiate};
use bytes::Bytes;
use serde_json::{Value, json};
use transom_object::{GroupKind, Status, field};
use transom_schema::patch;

pub(super) async fn dispatch(call: &Call, body: Bytes) -> Result<Answer, Status> {
    let paths = call.resource.scale.as_ref().ok_or_else(|| not_supported(call))?;
    match call.verb {
        Verb::Get => {
            let key = call.resource.key(&call.target.namespace, &call.target.name);
            let entry = call
                .server
                .store
                .get(&key)
                .ok_or_else(|| Status::not_found(&call.resource.group_resource(), &call.target.name))?;
            Ok(Answer::value(scale_of(&call.resource.decode(&entry)?, paths)))
        }
        Verb::Update => {
            let options = WriteOptions::parse(&call.query, "UpdateOptions", call.user_agent(), false)?;
            let given = decode::value(&body, negotiate::body_type(&call.headers, true)?)?.value;
            write_scale(call, paths, &options, |_| Ok(given.clone())).await
        }
        Verb::Patch => {
            let options = WriteOptions::parse(&call.query, "PatchOptions", call.user_agent(), false)?;
            let change = parse_patch(call, &body)?;
            write_scale(call, paths, &options, |scale| match &change {
                Change::Json(p) => patch::json_patch(scale, p).map_err(|e| refused(&e)),
                Change::Merge(p) => patch::merge_patch(scale, p).map_err(|e| refused(&e)),
            })
            .await
        }
        _ => Err(not_supported(call)),
    }
}

enum Change {
    Json(Value),
    Merge(Value),
}

/// A Scale has no lists and its maps are granular, so that strategic merge and apply come down to a merge.
fn parse_patch(call: &Call, body: &[u8]) -> Result<Change, Status> {
    match call.content_type() {
        "application/json-patch+json" => {
            Ok(Change::Json(decode::value(body, negotiate::BodyType::Json)?.value))
        }
        "application/merge-patch+json" | "application/strategic-merge-patch+json" => {
            Ok(Change::Merge(decode::value(body, negotiate::BodyType::Json)?.value))
        }
        "application/apply-patch+yaml" => Ok(Change::Merge(decode::yaml_value(body)?.value)),
        _ => Err(Status::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )),
    }
}

async fn write_scale(
    call: &Call,
    paths: &ScalePaths,
    options: &WriteOptions,
    change: impl Fn(&Value) -> Result<Value, Status>,
) -> Result<Answer, Status> {
    let request = Update {
        namespace: &call.target.namespace,
        name: &call.target.name,
        face: Face::Scale,
        manager: Some(&options.field_manager),
        dry_run: options.dry_run,
        create_missing: false,
        require_version: false,
        pins_version: false,
    };
    let (outcome, warnings) = write::update(&call.server, &call.resource, &request, |existing| {
        let live = existing
            .value
            .ok_or_else(|| Status::not_found(&call.resource.group_resource(), &call.target.name))?;
        let scale = change(&scale_of(live, paths))?;
        let mut next = live.clone();
        set(&mut next, &paths.spec_replicas, replicas(&scale, &call.target.name)?.into());
        if let Some(rv) = scale["metadata"]["resourceVersion"].as_str() {
            next["metadata"]["resourceVersion"] = rv.into();
        }
        Ok(next)
    })
    .await?;
    let value = match outcome {
        Outcome::Stored { entry, .. } => call.resource.decode(&entry)?,
        Outcome::Transient { value, .. } => value,
    };
    Ok(Answer::value(scale_of(&value, paths)).with_warnings(warnings))
}

fn replicas(scale: &Value, name: &str) -> Result<i64, Status> {
    let given = &scale["spec"]["replicas"];
    let path = field::Path::new("spec").child("replicas");
    let n = match given {
        Value::Null => 0,
        v => v
            .as_i64()
            .ok_or_else(|| Status::bad_request(format!("spec.replicas must be an integer, not {v}")))?,
    };
    if (0..=i64::from(i32::MAX)).contains(&n) {
        return Ok(n);
    }
    let error = field::Error::invalid(&path, n, "must be greater than or equal to 0");
    Err(Status::invalid(&GroupKind::new("autoscaling", "Scale"), name, &[error]))
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
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept, "spec": spec, "status": status})
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
