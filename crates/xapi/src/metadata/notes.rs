//! What controllers and users note on objects: finalizers, labels and the annotations that steer reconciling.

use crate::constants::annotation;
use serde_json::{Map, Value};
use transom_object::meta;
use transom_object::time::{self, Timestamp};

/// The annotation with the time at which an external resource was about to be created.
pub const CREATE_PENDING: &str = annotation::EXTERNAL_CREATE_PENDING;
/// The annotation with the time at which an external resource was created.
pub const CREATE_SUCCEEDED: &str = annotation::EXTERNAL_CREATE_SUCCEEDED;
/// The annotation with the time at which the creation of an external resource failed.
pub const CREATE_FAILED: &str = annotation::EXTERNAL_CREATE_FAILED;

/// Whether an object has a finalizer.
pub fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    meta::finalizers(object).contains(&finalizer)
}

/// Adds a finalizer; returns whether it was missing.
pub fn add_finalizer(object: &mut Value, finalizer: &str) -> bool {
    if has_finalizer(object, finalizer) {
        return false;
    }
    let mut list: Vec<Value> = meta::finalizers(object).into_iter().map(Value::from).collect();
    list.push(finalizer.into());
    meta::set(object, "finalizers", list);
    true
}

/// Says whether the finalizer was there.
pub fn remove_finalizer(object: &mut Value, finalizer: &str) -> bool {
    let before = meta::finalizers(object);
    let list: Vec<Value> = before.iter().filter(|f| **f != finalizer).map(|f| Value::from(*f)).collect();
    if list.len() == before.len() {
        return false;
    }
    let list = if list.is_empty() { Value::Null } else { list.into() };
    meta::set(object, "finalizers", list);
    true
}

/// Sets labels.
pub fn add_labels<'a>(object: &mut Value, labels: impl IntoIterator<Item = (&'a str, &'a str)>) {
    for (key, value) in labels {
        meta::set_label(object, key, value);
    }
}

/// Says whether any was there.
pub fn remove_labels(object: &mut Value, keys: &[&str]) -> bool {
    remove_entries(object, "labels", keys)
}

/// Says whether any was there.
pub fn remove_annotations(object: &mut Value, keys: &[&str]) -> bool {
    remove_entries(object, "annotations", keys)
}

fn remove_entries(object: &mut Value, field: &str, keys: &[&str]) -> bool {
    let map = object.get_mut("metadata").and_then(|m| m.get_mut(field)).and_then(Value::as_object_mut);
    let Some(map) = map else { return false };
    let before = map.len();
    map.retain(|key, _| !keys.contains(&key.as_str()));
    map.len() != before
}

/// The annotations of an object.
pub fn annotations(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    let map = object.get("metadata").and_then(|m| m.get("annotations")).and_then(Value::as_object);
    map.into_iter().flat_map(Map::iter).filter_map(|(k, v)| v.as_str().map(|v| (k.as_str(), v)))
}

/// Whether the object was read from the API rather than made up.
pub fn was_created(object: &Value) -> bool {
    let time = object.get("metadata").and_then(|m| m.get("creationTimestamp")).and_then(Value::as_str);
    time.is_some_and(|t| !t.is_empty())
}

/// Whether nothing, not even deletion, shall be done about the object.
pub fn is_paused(object: &Value) -> bool {
    meta::annotation(object, annotation::PAUSED) == Some("true")
}

/// The poll interval that an annotation of the object sets, in nanoseconds, if it is valid.
pub fn poll_interval(object: &Value) -> Option<i64> {
    let text = meta::annotation(object, annotation::POLL_INTERVAL)?;
    time::parse_duration(text).ok().filter(|nanos| *nanos > 0)
}

/// [`poll_interval`], no shorter than `minimum`, or else `default`. In nanoseconds.
pub fn poll_interval_or(object: &Value, default: i64, minimum: i64) -> i64 {
    poll_interval(object).map_or(default, |nanos| nanos.max(minimum))
}

/// The token by which a user asked for the object to be looked at now.
pub fn reconcile_request(object: &Value) -> Option<&str> {
    meta::annotation(object, annotation::RECONCILE_REQUESTED_AT).filter(|token| !token.is_empty())
}

/// The time in an annotation, if there is one.
pub fn noted_time(object: &Value, key: &str) -> Option<Timestamp> {
    meta::annotation(object, key).and_then(|text| time::parse(text).ok())
}

/// Sets the time in an annotation.
pub fn set_noted_time(object: &mut Value, key: &str, at: Timestamp) {
    meta::set_annotation(object, key, &time::format(at));
}

/// Whether the creation of an external resource began and its outcome is unknown.
pub fn create_incomplete(object: &Value) -> bool {
    let Some(pending) = noted_time(object, CREATE_PENDING) else { return false };
    [CREATE_SUCCEEDED, CREATE_FAILED]
        .iter()
        .all(|key| noted_time(object, key).is_none_or(|ended| pending > ended))
}

/// Whether an external resource was created less than this many nanoseconds before `now`.
pub fn created_within(object: &Value, nanos: i64, now: Timestamp) -> bool {
    noted_time(object, CREATE_SUCCEEDED)
        .is_some_and(|at| now.duration_since(at).as_nanos() < i128::from(nanos))
}
