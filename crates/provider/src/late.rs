//! Late initialisation: fields of the spec that are not set take what was observed. Pure.

use serde_json::Value;

/// Sets the fields that are not set. Returns whether there were any.
pub(crate) fn fill(into: &mut Value, from: &Value) -> bool {
    match (into, from) {
        (into @ Value::Null, from) => {
            let is_value = !from.is_null();
            if is_value {
                *into = from.clone();
            }
            is_value
        }
        (Value::Object(into), Value::Object(from)) => {
            let mut changed = false;
            for (key, value) in from {
                match into.get_mut(key) {
                    Some(present) => changed |= fill(present, value),
                    None if value.is_null() => {}
                    None => {
                        into.insert(key.clone(), value.clone());
                        changed = true;
                    }
                }
            }
            changed
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_unset_fields_are_filled() {
        let mut spec = json!({"a": 1, "b": null, "c": {"d": false}});
        let observed = json!({"a": 2, "b": 3, "c": {"d": true, "e": "x"}, "f": null});
        assert!(fill(&mut spec, &observed));
        assert_eq!(spec, json!({"a": 1, "b": 3, "c": {"d": false, "e": "x"}}));
        assert!(!fill(&mut spec, &observed), "a second time changes nothing");
    }
}
