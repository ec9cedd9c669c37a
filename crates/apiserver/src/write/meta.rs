//! The metadata rules every kind shares.

use serde_json::{Map, Value};
use transom_object::Status;

/// Server-owned metadata that a client may not set on create.
pub(super) fn fill_new(value: &mut Value, uid: String, now: &str) {
    let m = metadata_mut(value);
    for key in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"] {
        m.remove(key);
    }
    m.insert("uid".into(), uid.into());
    m.insert("creationTimestamp".into(), now.into());
}

/// Server-owned metadata that an update keeps from the live object.
pub(super) fn keep_old(new: &mut Value, old: &Value) {
    let old = &old["metadata"];
    let m = metadata_mut(new);
    for key in ["creationTimestamp", "generation"] {
        match old.get(key) {
            Some(v) => m.insert(key.into(), v.clone()),
            None => m.remove(key),
        };
    }
    // Only a deletion sets these: an update that does is refused, one of a deleted object keeps them.
    if let Some(deleted) = old.get("deletionTimestamp") {
        m.insert("deletionTimestamp".into(), deleted.clone());
    }
    if let Some(grace) = old.get("deletionGracePeriodSeconds")
        && m.get("deletionGracePeriodSeconds").is_none_or(Value::is_null)
    {
        m.insert("deletionGracePeriodSeconds".into(), grace.clone());
    }
    if m.get("uid").and_then(Value::as_str).unwrap_or_default().is_empty()
        && let Some(uid) = old.get("uid")
    {
        m.insert("uid".into(), uid.clone());
    }
}

pub(super) fn metadata_mut(value: &mut Value) -> &mut Map<String, Value> {
    if !value["metadata"].is_object() {
        value["metadata"] = Value::Object(Map::new());
    }
    match &mut value["metadata"] {
        Value::Object(m) => m,
        _ => unreachable!("metadata was just made an object"),
    }
}

/// The namespace and name in the path against those of the body: an empty namespace in the body is filled in.
pub(crate) fn match_path(value: &mut Value, namespace: &str, name: Option<&str>) -> Result<(), Status> {
    let m = metadata_mut(value);
    let given = m.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if namespace.is_empty() {
        m.remove("namespace");
    } else if given.is_empty() {
        m.insert("namespace".into(), namespace.into());
    } else if given != namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if let Some(name) = name {
        let given = m.get("name").and_then(Value::as_str).unwrap_or_default();
        if given.is_empty() {
            return Err(Status::bad_request(format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            )));
        }
        if given != name {
            return Err(Status::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
    }
    Ok(())
}

pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value["metadata"][key].as_str().unwrap_or_default()
}

/// Drops repeated owner references, as the server does on every write. Returns a warning about them.
pub(super) fn dedup_owners(value: &mut Value, patched: bool) -> Option<String> {
    let owners = value["metadata"].get_mut("ownerReferences")?.as_array_mut()?;
    let before = owners.len();
    let mut seen: Vec<Value> = Vec::new();
    let mut repeated = Vec::new();
    owners.retain(|o| {
        let new = !seen.contains(o);
        if new {
            seen.push(o.clone());
        } else {
            repeated.push(o["uid"].as_str().unwrap_or_default().to_owned());
        }
        new
    });
    (owners.len() < before).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            if patched { " after mutating admission happens" } else { "" },
            repeated.join(", ")
        )
    })
}
