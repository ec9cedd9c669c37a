//! DELETE of one object or of a selection.

use super::view;
use crate::call::Call;
use crate::request::{DeleteOptions, ListOptions};
use crate::respond::Answer;
use crate::select::Filter;
use crate::write::{self, DeleteRequest, Deleted};
use crate::{decode, negotiate};
use serde_json::{Value, json};
use std::sync::Arc;
use transom_object::Status;
use transom_store::Entry;

pub(super) async fn delete(call: &Call, body: &[u8]) -> Result<Answer, Status> {
    let options = options(call, body)?;
    let request = DeleteRequest {
        namespace: &call.target.namespace,
        name: &call.target.name,
        options: &options,
        by: call.requester(),
    };
    match write::delete(&call.server, &call.resource, &request).await? {
        Deleted::Marked(value) => Ok(Answer::ok(view(call)?.value(value, true)?)),
        Deleted::Gone(value) if call.resource.strategy.returns_deleted_object() => {
            Ok(Answer::ok(view(call)?.value(value, true)?))
        }
        Deleted::Gone(value) => Ok(Answer::value(success(call, &value))),
    }
}

fn success(call: &Call, value: &Value) -> Value {
    let mut details = json!({
        "name": value["metadata"]["name"],
        "kind": call.resource.names.plural,
        "uid": value["metadata"]["uid"],
    });
    if !call.resource.group.is_empty() {
        details["group"] = call.resource.group.as_str().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

pub(super) async fn delete_collection(call: &Call, body: &[u8]) -> Result<Answer, Status> {
    let options = options(call, body)?;
    let list = ListOptions::parse(&call.query, false)?;
    let filter = Filter::new(
        call.resource.clone(),
        &call.target.namespace,
        &list.label_selector,
        &list.field_selector,
    )?;
    let snapshot = call.server.store.snapshot(&call.resource.store_key);
    let chosen: Vec<Arc<Entry>> = snapshot.objects.values().filter(|e| filter.matches(e)).cloned().collect();
    let mut deleted = Vec::with_capacity(chosen.len());
    for entry in &chosen {
        let request = DeleteRequest {
            namespace: &entry.header.namespace,
            name: &entry.header.name,
            options: &options,
            by: call.requester(),
        };
        match write::delete(&call.server, &call.resource, &request).await {
            Ok(_) => deleted.push(entry.as_ref()),
            // Another client deleted it first.
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
        }
    }
    let mut metadata = json!({"resourceVersion": call.server.store.revision().to_string()});
    if !call.resource.strategy.is_typed() {
        metadata["continue"] = "".into();
    }
    let parts = view(call)?.list(&deleted, &metadata)?;
    Ok(Answer::ok(crate::respond::Payload::Json(parts.into())))
}

/// From the body, whatever group and version it names, or from the query.
fn options(call: &Call, body: &[u8]) -> Result<DeleteOptions, Status> {
    if body.is_empty() {
        return DeleteOptions::parse(&call.query, None);
    }
    let decoded = decode::value(body, negotiate::body_type(&call.headers, true)?, "DeleteOptions")
        .map_err(|s| Status::bad_request(unwrapped(&s.message)))?;
    if let Some(kind) = decoded.value["kind"].as_str().filter(|k| !k.is_empty() && *k != "DeleteOptions") {
        let version =
            decoded.value["apiVersion"].as_str().filter(|v| !v.is_empty()).unwrap_or("meta.k8s.io/v1");
        return Err(Status::bad_request(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    DeleteOptions::parse(&call.query, Some(&decoded.value))
}

/// The decoder's message without its prefix and suffix about objects.
fn unwrapped(message: &str) -> String {
    let inner = message.split_once("): ").map_or(message, |(_, inner)| inner);
    inner.rsplit_once(" (").map_or(inner, |(inner, _)| inner).to_owned()
}
