//! `status.conditions`: a list of statements by type, each with the time its status last changed.

use crate::time::{self, Timestamp};
use serde_json::Value;

fn text<'a>(condition: &'a Value, field: &str) -> &'a str {
    condition.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The condition of this type.
pub fn find<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions.iter().find(|c| text(c, "type") == kind)
}

/// Whether the condition is there and has this status (`True`, `False` or `Unknown`).
pub fn has_status(conditions: &[Value], kind: &str, status: &str) -> bool {
    find(conditions, kind).is_some_and(|c| text(c, "status") == status)
}

/// Adds a condition or updates the one of its type; returns whether anything changed. The transition time moves only
/// with the status, to the one given or else to `now`. Fields that do not belong to a condition stay.
pub fn set(conditions: &mut Vec<Value>, mut new: Value, now: Timestamp) -> bool {
    if !new.is_object() {
        return false;
    }
    if text(&new, "lastTransitionTime").is_empty() {
        new["lastTransitionTime"] = time::format(now).into();
    }
    let Some(old) = conditions.iter_mut().find(|c| text(c, "type") == text(&new, "type")) else {
        conditions.push(new);
        return true;
    };
    let mut changed = false;
    if text(old, "status") != text(&new, "status") {
        old["lastTransitionTime"] = new["lastTransitionTime"].clone();
    }
    for field in ["status", "reason", "message"] {
        if text(old, field) != text(&new, field) {
            old[field] = text(&new, field).into();
            changed = true;
        }
    }
    let generation = |c: &Value| c.get("observedGeneration").and_then(Value::as_i64).unwrap_or_default();
    if generation(old) != generation(&new) {
        old["observedGeneration"] = generation(&new).into();
        changed = true;
    }
    changed
}

/// Says whether there was one to remove.
pub fn remove(conditions: &mut Vec<Value>, kind: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|c| text(c, "type") != kind);
    conditions.len() != before
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn transition_times_move_with_the_status() {
        let t = |s: &str| time::parse(s).unwrap();
        let mut list = Vec::new();
        assert!(set(
            &mut list,
            json!({"type": "Ready", "status": "False", "reason": "A"}),
            t("2024-01-01T00:00:00Z")
        ));
        assert!(!set(
            &mut list,
            json!({"type": "Ready", "status": "False", "reason": "A"}),
            t("2025-01-01T00:00:00Z")
        ));
        assert!(set(
            &mut list,
            json!({"type": "Ready", "status": "False", "reason": "B"}),
            t("2025-01-01T00:00:00Z")
        ));
        assert_eq!(list[0]["lastTransitionTime"], "2024-01-01T00:00:00Z");
        assert!(set(
            &mut list,
            json!({"type": "Ready", "status": "True", "reason": "B"}),
            t("2026-01-01T00:00:00Z")
        ));
        assert_eq!(list[0]["lastTransitionTime"], "2026-01-01T00:00:00Z");
        assert!(has_status(&list, "Ready", "True") && find(&list, "Synced").is_none());
        assert!(remove(&mut list, "Ready") && !remove(&mut list, "Ready"));
        assert!(!set(&mut list, json!("x"), t("2026-01-01T00:00:00Z")));
    }
}
