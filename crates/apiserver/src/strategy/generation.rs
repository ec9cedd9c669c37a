//! `metadata.generation`: how often the desired state of an object has changed.

use serde_json::{Map, Value};

pub(super) fn begin(new: &mut Value) {
    new["metadata"]["generation"] = 1.into();
}

pub(super) fn advance(new: &mut Value, old: &Value) {
    let before = old["metadata"]["generation"].as_i64().unwrap_or(0);
    new["metadata"]["generation"] = before.saturating_add(1).into();
}

/// Whether anything differs besides the metadata and what is `apart`.
pub(super) fn differs(new: &Value, old: &Value, apart: &[&str]) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else { return true };
    let counts = |key: &str| key != "metadata" && !apart.contains(&key);
    let lacks = |a: &Map<String, Value>, b: &Map<String, Value>| {
        a.iter().any(|(key, value)| counts(key) && b.get(key) != Some(value))
    };
    lacks(new, old) || lacks(old, new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts_what_is_asked_for() {
        let old = json!({"metadata": {"generation": 3}, "spec": {"a": 1}, "status": {"b": 1}});
        for (new, apart, want) in [
            (json!({"metadata": {"labels": {}}, "spec": {"a": 1}, "status": {"b": 1}}), &[][..], false),
            (json!({"metadata": {}, "spec": {"a": 2}, "status": {"b": 1}}), &[], true),
            (json!({"metadata": {}, "spec": {"a": 1}, "status": {"b": 2}}), &[], true),
            (json!({"metadata": {}, "spec": {"a": 1}}), &["status"], false),
            (json!({"metadata": {}, "status": {"b": 1}}), &["status"], true),
            (json!({"metadata": {}, "spec": {"a": 1}, "status": {"b": 1}, "more": 0}), &["status"], true),
        ] {
            assert_eq!(differs(&new, &old, apart), want, "{new}");
        }
        let mut new = json!({"metadata": {}});
        advance(&mut new, &old);
        assert_eq!(new["metadata"]["generation"], 4);
    }
}
