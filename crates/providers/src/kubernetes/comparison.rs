//! Which fields of an object a manager owns, and how two states of it differ in them. Pure.
//!
//! `managedFields` says which fields an Object applied, also within lists, so that no schema is needed.

use serde_json::{Map, Value};

/// How many differing fields are named.
const MAX_NAMED_FIELDS: usize = 5;

/// The fields that a manager applied to an object, with their values; none if it applied nothing.
pub(super) fn owned(object: &Value, manager: &str) -> Option<Value> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let own = entries.iter().find(|entry| {
        entry["manager"] == manager
            && entry["operation"] == "Apply"
            && entry.get("subresource").and_then(Value::as_str).unwrap_or_default().is_empty()
    })?;
    let fields = own.get("fieldsV1")?.as_object()?;
    // Within an object, no fields stand for a whole value; for the object, they say that it was applied without any.
    if fields.is_empty() { Some(Value::Object(Map::new())) } else { project(fields, object) }
}

/// The part of a value that these fields describe.
fn project(fields: &Map<String, Value>, value: &Value) -> Option<Value> {
    if fields.is_empty() {
        return Some(value.clone());
    }
    let inner = |name: &str| fields.get(name).and_then(Value::as_object);
    let named = fields.keys().filter(|name| *name != ".");
    match value {
        Value::Object(map) => {
            let part = |name: &String| {
                let key = name.strip_prefix("f:")?;
                Some((key.to_owned(), project(inner(name)?, map.get(key)?)?))
            };
            Some(Value::Object(named.filter_map(part).collect()))
        }
        Value::Array(items) => {
            Some(Value::Array(named.filter_map(|name| item(name, inner(name)?, items)).collect()))
        }
        other => Some(other.clone()),
    }
}

/// The item of a list that is named by its keys, its value or its index.
fn item(name: &str, fields: &Map<String, Value>, items: &[Value]) -> Option<Value> {
    let (kind, text) = name.split_once(':')?;
    let identity: Value = serde_json::from_str(text).ok()?;
    let found = match kind {
        "k" => {
            let keys = identity.as_object()?;
            items.iter().find(|item| keys.iter().all(|(key, value)| item.get(key) == Some(value)))
        }
        "v" => items.iter().find(|item| **item == identity),
        "i" => items.get(usize::try_from(identity.as_u64()?).ok()?),
        _ => None,
    };
    project(fields, found?)
}

/// The paths of the fields in which two values differ, in words; empty if they do not. Values are not shown: they may be secrets.
pub(super) fn difference(live: &Value, wanted: &Value) -> String {
    let mut paths = Vec::new();
    differing("", live, wanted, &mut paths);
    let more = paths.len().saturating_sub(MAX_NAMED_FIELDS);
    paths.truncate(MAX_NAMED_FIELDS);
    match (paths.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!("differs in {}", paths.join(", ")),
        (false, more) => format!("differs in {} and {more} more", paths.join(", ")),
    }
}

fn differing(path: &str, live: &Value, wanted: &Value, paths: &mut Vec<String>) {
    if transom_engine::same(live, wanted) {
        return;
    }
    match (live, wanted) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            for key in keys {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let of = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                differing(&below, &of(a), &of(b), paths);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differing(&format!("{path}[{index}]"), a, b, paths);
            }
        }
        _ => paths.push(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(data: &Value, fields: &Value) -> Value {
        json!({
            "metadata": {"managedFields": [
                {"manager": "m", "operation": "Update", "fieldsV1": {"f:other": {}}},
                {"manager": "m", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": {}}},
                {"manager": "m", "operation": "Apply", "fieldsV1": fields},
            ]},
            "data": data, "other": 1, "status": {},
        })
    }

    #[test]
    fn only_what_was_applied_is_compared() {
        let fields = json!({"f:data": {".": {}, "f:a": {}}});
        let live = object(&json!({"a": "1", "of-others": "2"}), &fields);
        assert_eq!(owned(&live, "m"), Some(json!({"data": {"a": "1"}})));
        assert_eq!(owned(&live, "other"), None);
        let gone = object(&json!({"of-others": "2"}), &fields);
        assert_eq!(owned(&gone, "m"), Some(json!({"data": {}})));
        assert_eq!(owned(&object(&json!({"a": "1"}), &json!({})), "m"), Some(json!({})));
    }

    #[test]
    fn items_of_lists_are_found_by_key_value_and_index() {
        let fields = json!({"f:data": {
            "k:{\"name\":\"b\"}": {".": {}, "f:name": {}, "f:image": {}},
        }});
        let live = object(&json!([{"name": "a"}, {"name": "b", "image": "x", "added": 1}]), &fields);
        assert_eq!(owned(&live, "m"), Some(json!({"data": [{"name": "b", "image": "x"}]})));
        let live = object(&json!(["x", "y"]), &json!({"f:data": {"v:\"y\"": {}}}));
        assert_eq!(owned(&live, "m"), Some(json!({"data": ["y"]})));
        let live = object(&json!(["x", "y"]), &json!({"f:data": {"i:0": {}}}));
        assert_eq!(owned(&live, "m"), Some(json!({"data": ["x"]})));
        let whole = object(&json!([1, 2]), &json!({"f:data": {}}));
        assert_eq!(owned(&whole, "m"), Some(json!({"data": [1, 2]})));
    }

    #[test]
    fn differences_name_fields_and_no_values() {
        let (live, wanted) =
            (json!({"data": {"a": "sesame", "b": [1, 2]}}), json!({"data": {"a": "x", "b": [1, 3]}}));
        assert_eq!(difference(&live, &wanted), "differs in data.a, data.b[1]");
        assert_eq!(difference(&json!({"a": 1}), &json!({"a": 1.0})), "");
        assert_eq!(difference(&json!({}), &json!({"a": {"b": 1}})), "differs in a");
        let many: Value = (0..7).map(|n| (format!("f{n}"), json!(n))).collect::<Map<_, _>>().into();
        assert_eq!(difference(&json!({}), &many), "differs in f0, f1, f2, f3, f4 and 2 more");
    }
}
