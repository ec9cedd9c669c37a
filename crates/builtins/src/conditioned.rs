//! The conditions of a resource as Crossplane's own types read them: the whole list must be well-formed, or the
//! resource counts as one without any condition.

use serde_json::Value;
use transom_object::time;

/// A condition; absent fields are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Condition<'a> {
    pub status: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
}

/// The condition of a type. A missing condition is `Unknown`; `None` if the status cannot be read.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Condition<'a> {
    let Some(conditions) = object.get("status").and_then(conditions) else { return Condition::default() };
    let found = conditions.iter().find(|condition| text(condition, "type") == kind);
    found.map_or(Condition { status: "Unknown", ..Condition::default() }, |condition| Condition {
        status: text(condition, "status"),
        reason: text(condition, "reason"),
        message: text(condition, "message"),
    })
}

/// Whether the condition of a type is `True`.
pub(crate) fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).status == "True"
}

fn text<'a>(condition: &'a Value, field: &str) -> &'a str {
    condition.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn conditions(status: &Value) -> Option<&[Value]> {
    let list = match status {
        Value::Null => return Some(&[]),
        Value::Object(status) => status.get("conditions").unwrap_or(&Value::Null),
        _ => return None,
    };
    match list {
        Value::Null => Some(&[]),
        Value::Array(list) => list.iter().all(is_well_formed).then_some(list),
        _ => None,
    }
}

fn is_well_formed(condition: &Value) -> bool {
    let Value::Object(condition) = condition else { return condition.is_null() };
    condition.iter().all(|(field, value)| match (field.as_str(), value) {
        (_, Value::Null) => true,
        ("type" | "status" | "reason" | "message", value) => value.is_string(),
        ("lastTransitionTime", value) => value.as_str().is_some_and(|text| time::parse(text).is_ok()),
        ("observedGeneration", value) => value.is_i64(),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ready(status: &Value) -> (String, String) {
        let object = json!({"status": status});
        let found = condition(&object, "Ready");
        (found.status.to_owned(), found.reason.to_owned())
    }

    #[test]
    fn conditions_are_found() {
        let status = json!({"conditions": [{"type": "Synced", "status": "False"},
            {"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2024-01-01T00:00:00Z",
             "observedGeneration": 3, "extra": [1]}, {"type": "Ready", "status": "False"}]});
        assert_eq!(ready(&status), ("True".to_owned(), "Available".to_owned()));
        for nothing in [json!({}), json!(null), json!({"conditions": null}), json!({"conditions": [null]})] {
            assert_eq!(ready(&nothing), ("Unknown".to_owned(), String::new()), "{nothing}");
        }
        assert!(!is_true(&json!({}), "Ready"));
    }

    #[test]
    fn one_malformed_condition_spoils_all() {
        let good = json!({"type": "Ready", "status": "True"});
        for bad in [
            json!("Ready"),
            json!({"type": 1}),
            json!({"type": "Other", "lastTransitionTime": "yesterday"}),
            json!({"type": "Other", "observedGeneration": "1"}),
            json!({"type": "Other", "observedGeneration": 1.5}),
        ] {
            assert_eq!(ready(&json!({"conditions": [good, bad]})), Default::default(), "{bad}");
        }
        assert_eq!(ready(&json!("up")), Default::default());
        assert_eq!(ready(&json!({"conditions": {}})), Default::default());
    }
}
