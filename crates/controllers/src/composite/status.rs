//! The status of a composite resource: what functions want of it, what the control plane keeps in it, and how it is
//! written.

use super::Composites;
use super::world::Reading;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use transom_engine::{Error, ErrorContext, Result, RunLog, is_settled, same};
use transom_object::meta;
use transom_xapi::composite::Composite;
use transom_xapi::conditions::{self, Condition};
use transom_xapi::constants::owner;
use transom_xapi::metadata::TypedReference;

/// What the control plane itself keeps in a composite resource's status; functions do not own it.
const OWN_STATUS: [&str; 5] =
    ["connectionDetails", "claimConditionTypes", "lastHandledReconcileAt", WATCHED, WATCHED_OMITTED];

/// The resources that are not composed and whose changes wake the composite resource.
const WATCHED: &str = "watchedResourceRefs";
/// How many of them are not listed.
const WATCHED_OMITTED: &str = "watchedResourceRefsOmitted";
/// The most bytes of a status. API servers take objects of 3 MiB, if not less, and the rest of the object needs room:
/// one that cannot be written could not be deleted either.
const LARGEST_STATUS: usize = 2 << 20;
/// The most references in `watchedResourceRefs`. All that a function required is watched, listed or not.
const MOST_WATCHED: usize = 256;

impl Composites {
    /// The status that functions want, with the control plane's own fields as they are.
    pub(super) fn keep_own_status(&self, xr: &mut Composite, wanted: &Value, reading: &Reading<'_>) {
        let old = xr.object.get("status").cloned().unwrap_or_default();
        let mut status = wanted.get("status").cloned().filter(Value::is_object).unwrap_or_else(|| json!({}));
        for field in OWN_STATUS {
            match old.get(field) {
                Some(value) => status[field] = value.clone(),
                None => drop(status.as_object_mut().map(|s| s.remove(field))),
            }
        }
        xr.object["status"] = status;
        record_watched(xr, reading);
    }

    /// Applies the status if that would change it. Says whether it changed anything that functions decide on.
    pub(super) async fn apply_status(
        &self,
        log: &RunLog,
        xr: &mut Composite,
        observed: &Value,
    ) -> Result<bool> {
        let mut intent = json!({
            "apiVersion": meta::api_version(&xr.object),
            "kind": meta::kind(&xr.object),
            "metadata": {"name": meta::name(&xr.object), "uid": meta::uid(&xr.object)},
        });
        meta::set_namespace(&mut intent, meta::namespace(&xr.object));
        let wanted = xr.object.get("status").cloned().unwrap_or_default();
        intent["status"] = wanted.clone();
        xr.object["status"] = if observed.is_null() { json!({}) } else { observed.clone() };
        // The message of a past error was written by another manager, and is not ours to apply away. What is new is said
        // with the rest of the status, not before.
        let conditions = without_leftovers(&xr.object, &wanted);
        let left_over = [WATCHED, WATCHED_OMITTED].map(|field| is_left_over(&xr.object, &wanted, field));
        if conditions.is_some() || left_over.contains(&true) {
            if let Some(conditions) = conditions {
                xr.object["status"]["conditions"] = conditions;
            }
            for (field, _) in [WATCHED, WATCHED_OMITTED].into_iter().zip(left_over).filter(|(_, left)| *left)
            {
                xr.object["status"].as_object_mut().map(|status| status.remove(field));
            }
            self.replace_status(log, xr).await?;
        }
        if !is_settled(&xr.object, &intent, owner::COMPOSITE, "status") {
            must_fit(&intent["status"], LARGEST_STATUS).context("cannot apply composite resource status")?;
            let applied = self.plane.cluster.apply_status(&intent, owner::COMPOSITE).await;
            xr.object = applied.context("cannot apply composite resource status")?;
            log.wrote(&xr.object);
        }
        let after = xr.object.get("status").cloned().unwrap_or_default();
        Ok(!functions_see_the_same(observed, &after))
    }

    /// Marks conditions that speak of the current generation.
    pub(super) fn mark(&self, xr: &mut Composite, new: impl IntoIterator<Item = Condition>) {
        conditions::mark_observed(&mut xr.object, new, self.plane.clock.now());
    }

    /// Replaces the status if it is not what it was.
    pub(super) async fn write_status(&self, log: &RunLog, xr: &mut Composite, before: &Value) -> Result<()> {
        if xr.object.get("status").is_none_or(|status| same(status, before)) {
            return Ok(());
        }
        self.replace_status(log, xr).await
    }

    /// Replaces the status. If the whole object is too large for one request only its conditions are written, and if
    /// functions set too many of those only the system conditions: the cause of a failure must be reported.
    async fn replace_status(&self, log: &RunLog, xr: &mut Composite) -> Result<()> {
        let mut replaced = self.plane.update_status(log, &mut xr.object).await;
        for is_written in [|_: &str| true, conditions::is_system] {
            if !replaced.as_ref().is_err_and(Error::is_too_large) {
                break;
            }
            let mut conditions = conditions::of(&xr.object);
            conditions.retain(|condition| is_written(&condition.kind));
            let patch = json!({"status": {"conditions": conditions}});
            let patched = self.plane.cluster.merge_patch_status(&xr.object, &patch, owner::DEFAULT);
            replaced = patched.await.map(|object| {
                log.wrote(&object);
                xr.object = object;
            });
        }
        replaced.context("cannot update composite resource status")
    }
}

/// Lists what functions required, up to so many, and how many more there are.
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

/// Refuses a status that leaves no room for the rest of its object.
fn must_fit(status: &Value, most: usize) -> Result<()> {
    let size = |value: &Value| transom_object::json::encode(value).len();
    let whole = size(status);
    if whole <= most {
        return Ok(());
    }
    let fields = status.as_object().into_iter().flatten().map(|(field, value)| (size(value), field));
    let (largest, field) = fields.max().map_or((0, ""), |(size, field)| (size, field.as_str()));
    Err(Error::unfit(format!(
        "the status that functions want has {whole} bytes, and {most} is the most: status.{field} has {largest} bytes"
    )))
}

/// Says in the status what else was read, and so is watched.
pub(super) fn record_watched(xr: &mut Composite, reading: &Reading<'_>) {
    let watched = reading.required();
    if !watched.is_empty() && !xr.object["status"].is_object() {
        xr.object["status"] = json!({});
    }
    if let Some(status) = xr.object.get_mut("status") {
        list_watched(status, watched, MOST_WATCHED);
    }
}

/// The conditions without what those to replace them do not say and someone else wrote, if there is any of it: an apply
/// takes back no more than the same manager applied before.
fn without_leftovers(xr: &Value, wanted: &Value) -> Option<Value> {
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

/// Whether functions are shown the same by two statuses.
pub(super) fn functions_see_the_same(one: &Value, other: &Value) -> bool {
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
        assert!(must_fit(&status, 50).is_ok());
        let error = must_fit(&status, 40).unwrap_err().to_string();
        assert!(error.contains("and 40 is the most: status.large has 22 bytes"), "{error}");
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
