//! The status of a composite resource: what functions want of it, what the control plane itself keeps in it, and how it
//! is written.

use crate::composite::identity;
use crate::json_equality::same;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use transom_object::meta;
use transom_xapi::conditions;
use transom_xapi::constants::owner;
use transom_xapi::metadata::TypedReference;

/// What the control plane itself keeps in a composite resource's status; functions do not own it.
const OWN_STATUS: [&str; 6] = [
    "connectionDetails",
    "claimConditionTypes",
    "lastHandledReconcileAt",
    WATCHED,
    WATCHED_OMITTED,
    transom_xapi::derive::KEPT_FIELDS,
];

/// The resources that are not composed and whose changes cause a reconcile.
const WATCHED: &str = "watchedResourceRefs";
/// How many of them are not listed.
const WATCHED_OMITTED: &str = "watchedResourceRefsOmitted";
/// The most bytes of a status. API servers accept objects of 3 MiB, if not less, and the rest of the object needs room:
/// an object that cannot be written could not be deleted either.
const MAX_STATUS_BYTES: usize = 2 << 20;
/// The most references in `watchedResourceRefs`. All that a function required is watched, listed or not.
const MAX_WATCHED_REFERENCES: usize = 256;

/// The status that functions want, with the control plane's own fields as they are in the old status.
pub(crate) fn with_own_fields(wanted: &Value, old: &Value) -> Value {
    let mut status = Some(wanted.clone()).filter(Value::is_object).unwrap_or_else(|| json!({}));
    for field in OWN_STATUS {
        match old.get(field) {
            Some(value) => status[field] = value.clone(),
            None => drop(status.as_object_mut().map(|s| s.remove(field))),
        }
    }
    status
}

/// Lists in the status what else was read, and so is watched.
pub(crate) fn record_watched(xr: &mut Value, watched: BTreeSet<TypedReference>) {
    if !watched.is_empty() && !xr["status"].is_object() {
        xr["status"] = json!({});
    }
    if let Some(status) = xr.get_mut("status") {
        list_watched(status, watched, MAX_WATCHED_REFERENCES);
    }
}

/// What to apply so that a composite resource has a status.
pub(crate) fn intent(xr: &Value, status: Value) -> Value {
    let mut intent = identity(xr);
    meta::set(&mut intent, "uid", meta::uid(xr));
    intent["status"] = status;
    intent
}

/// Refuses a status that leaves no room for the rest of its object.
pub(crate) fn must_fit(status: &Value) -> Result<(), String> {
    must_fit_into(status, MAX_STATUS_BYTES)
}

fn must_fit_into(status: &Value, most: usize) -> Result<(), String> {
    let size = |value: &Value| transom_object::json::encode(value).len();
    let whole = size(status);
    if whole <= most {
        return Ok(());
    }
    let fields = status.as_object().into_iter().flatten().map(|(field, value)| (size(value), field));
    let (largest, field) = fields.max().map_or((0, ""), |(size, field)| (size, field.as_str()));
    Err(format!(
        "the status that functions returned has {whole} bytes; the limit is {most}. The largest field is status.{field} with \
         {largest} bytes"
    ))
}

/// The stored composite resource without what the wanted status does not have and another manager wrote, if there is any
/// of it: such fields cannot be removed by applying the status, and are removed before. The message of a past error is an
/// example.
pub(crate) fn without_leftovers(live: &Value, wanted: &Value) -> Option<Value> {
    let conditions = conditions_without_leftovers(live, wanted);
    let left_over: Vec<&str> =
        [WATCHED, WATCHED_OMITTED].into_iter().filter(|field| is_left_over(live, wanted, field)).collect();
    if conditions.is_none() && left_over.is_empty() {
        return None;
    }
    let mut object = live.clone();
    if let Some(conditions) = conditions {
        object["status"]["conditions"] = conditions;
    }
    for field in left_over {
        object["status"].as_object_mut().map(|status| status.remove(field));
    }
    Some(object)
}

/// Lists what functions required, at most `most`, and how many more there are.
fn list_watched(status: &mut Value, watched: BTreeSet<TypedReference>, most: usize) {
    let Some(status) = status.as_object_mut() else { return };
    let omitted = watched.len().saturating_sub(most);
    let listed: Vec<TypedReference> = watched.into_iter().take(most).collect();
    for (field, value, is_empty) in
        [(WATCHED_OMITTED, json!(omitted), omitted == 0), (WATCHED, json!(listed), listed.is_empty())]
    {
        if is_empty {
            status.remove(field);
        } else {
            status.insert(field.to_owned(), value);
        }
    }
}

/// The conditions without what the wanted ones do not have and another manager wrote, if there is any of it: an apply
/// removes no more than the same manager applied before.
fn conditions_without_leftovers(xr: &Value, wanted: &Value) -> Option<Value> {
    let wanted = conditions::of(&json!({"status": wanted}));
    let live = xr.pointer("/status/conditions").and_then(Value::as_array)?;
    let mut kept = Vec::with_capacity(live.len());
    let mut found = false;
    for condition in live {
        let text = |field: &str| condition.get(field).and_then(Value::as_str).unwrap_or_default();
        let kind = text("type");
        let mut condition = condition.clone();
        match wanted.iter().find(|new| new.kind == kind) {
            None if is_of_others(xr, kind, ".") => {
                found = true;
                continue;
            }
            Some(new) if new.message.is_empty() && is_of_others(xr, kind, "f:message") => {
                found |= !text("message").is_empty();
                condition.as_object_mut().map(|c| c.remove("message"));
            }
            _ => {}
        }
        kept.push(condition);
    }
    found.then(|| kept.into())
}

/// Whether any manager but the one that applies the status wrote a field of a condition.
fn is_of_others(xr: &Value, condition: &str, field: &str) -> bool {
    others(xr)
        .any(|status| status["f:conditions"][format!("k:{{\"type\":\"{condition}\"}}")].get(field).is_some())
}

/// Whether any manager but the one that applies the status wrote a field that the status no longer has.
fn is_left_over(xr: &Value, wanted: &Value, field: &str) -> bool {
    let has = |status: &Value| status.get(field).is_some();
    let own = format!("f:{field}");
    has(&xr["status"]) && !has(wanted) && others(xr).any(|status| status.get(&own).is_some())
}

/// The fields of the status that each manager owns, except for the one that applies it.
fn others(xr: &Value) -> impl Iterator<Item = &Value> {
    let managers = xr.pointer("/metadata/managedFields").and_then(Value::as_array);
    let others = managers
        .into_iter()
        .flatten()
        .filter(|manager| manager["manager"] != owner::COMPOSITE || manager["operation"] != "Apply");
    others.map(|manager| &manager["fieldsV1"]["f:status"])
}

/// Whether functions see the same in two statuses.
pub(crate) fn functions_see_the_same(one: &Value, other: &Value) -> bool {
    same(&as_functions_see(one), &as_functions_see(other))
}

/// A status without what only the control plane writes and reads.
fn as_functions_see(status: &Value) -> Value {
    let mut status = status.as_object().cloned().unwrap_or_default();
    for field in OWN_STATUS {
        status.remove(field);
    }
    if let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        conditions
            .retain(|c| c.get("type").and_then(Value::as_str).is_some_and(|t| !conditions::is_system(t)));
        if conditions.is_empty() {
            status.remove("conditions");
        }
    }
    Value::Object(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_does_not_fit_names_its_largest_field() {
        let status = json!({"small": "x", "large": "x".repeat(20)});
        assert!(must_fit_into(&status, 50).is_ok());
        let error = must_fit_into(&status, 40).unwrap_err();
        assert!(
            error.contains("the limit is 40. The largest field is status.large with 22 bytes"),
            "{error}"
        );
    }

    #[test]
    fn what_is_watched_is_listed_up_to_a_bound() {
        let reference = |i: usize| TypedReference { name: format!("map-{i}"), ..TypedReference::default() };
        let watched = |n: usize| (0..n).map(reference).collect::<BTreeSet<_>>();
        let mut status = json!({"own": 1});
        list_watched(&mut status, watched(11_000), 3);
        assert_eq!(status["watchedResourceRefs"].as_array().map(Vec::len), Some(3));
        assert_eq!(status["watchedResourceRefsOmitted"], 10_997);
        list_watched(&mut status, watched(3), 3);
        assert_eq!(status["watchedResourceRefs"].as_array().map(Vec::len), Some(3));
        assert!(status.get("watchedResourceRefsOmitted").is_none());
        list_watched(&mut status, watched(0), 3);
        assert_eq!(status, json!({"own": 1}));
    }
}
