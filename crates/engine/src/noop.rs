//! Whether an apply would change anything, decided from the object alone.
//!
//! Server-side apply writes the values of an intent to an object and records in `managedFields` which fields the intent
//! had. So an apply changes nothing if the object has every value of the intent and the owner's entry has exactly the
//! fields of the intent. The entry also shows how lists are merged, which otherwise requires a schema. In doubt the
//! answer is no: an unnecessary apply costs a request, a missing one leaves the object wrong.

use serde_json::{Map, Value};
use transom_object::meta;

/// Whether applying `intent` to `live` as `owner` would leave it as it is.
pub fn apply_is_noop(live: &Value, intent: &Value, owner: &str, subresource: &str) -> bool {
    let Some(fields) = entry(live, meta::api_version(intent), owner, subresource) else { return false };
    let (Some(intent), Some(live)) = (intent.as_object(), live.as_object()) else { return false };
    let mut intent = intent.clone();
    intent.remove("apiVersion");
    intent.remove("kind");
    if let Some(metadata) = intent.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["name", "namespace", "uid"] {
            metadata.remove(field);
        }
        if metadata.is_empty() {
            intent.remove("metadata");
        }
    }
    map(fields, &intent, live)
}

/// The fields that `owner` applied.
fn entry<'a>(
    live: &'a Value,
    version: &str,
    owner: &str,
    subresource: &str,
) -> Option<&'a Map<String, Value>> {
    let entries = live.get("metadata")?.get("managedFields")?.as_array()?;
    let text = |e: &'a Value, field: &str| e.get(field).and_then(Value::as_str).unwrap_or_default();
    let own = entries.iter().find(|e| {
        text(e, "manager") == owner
            && text(e, "operation") == "Apply"
            && text(e, "subresource") == subresource
            && text(e, "apiVersion") == version
    })?;
    own.get("fieldsV1")?.as_object()
}

fn map(fields: &Map<String, Value>, intent: &Map<String, Value>, live: &Map<String, Value>) -> bool {
    let named = fields
        .keys()
        .filter(|k| *k != ".")
        .all(|k| k.strip_prefix("f:").is_some_and(|k| intent.contains_key(k)));
    named
        && intent.iter().all(|(key, wanted)| {
            let field = fields.get(&format!("f:{key}")).and_then(Value::as_object);
            field.zip(live.get(key)).is_some_and(|(field, live)| value(field, wanted, live))
        })
}

fn value(fields: &Map<String, Value>, intent: &Value, live: &Value) -> bool {
    if fields.is_empty() {
        // Owned as a whole. Other managers may add to a map of which the intent has no field.
        let untouched = intent.as_object().is_some_and(Map::is_empty) && live.is_object();
        return untouched || same(intent, live);
    }
    match (intent, live) {
        (Value::Object(intent), Value::Object(live)) => map(fields, intent, live),
        (Value::Array(intent), Value::Array(live)) => list(fields, intent, live),
        _ => false,
    }
}

/// A list whose items are identified by keys (`k:`) or by their value (`v:`).
fn list(fields: &Map<String, Value>, intent: &[Value], live: &[Value]) -> bool {
    let items: Vec<(&String, &Value)> = fields.iter().filter(|(k, _)| *k != ".").collect();
    items.len() == intent.len()
        && items.iter().all(|(name, inner)| {
            if let Some(item) = name.strip_prefix("v:").and_then(parse) {
                return contains(intent, &item) && contains(live, &item);
            }
            let Some(Value::Object(keys)) = name.strip_prefix("k:").and_then(parse) else { return false };
            // A key that the intent does not have was set by a default.
            let meant = |item: &&Value, lenient: bool| {
                keys.iter().all(|(k, v)| item.get(k).map_or(lenient, |own| same(own, v)))
            };
            let wanted = intent.iter().find(|i| meant(i, true)).and_then(Value::as_object);
            let found = live.iter().find(|i| meant(i, false)).and_then(Value::as_object);
            match (inner.as_object(), wanted, found) {
                (Some(inner), Some(wanted), Some(found)) if inner.is_empty() => {
                    // Items that are owned as a whole, such as owner references.
                    wanted.len() == found.len()
                        && wanted.iter().all(|(k, v)| found.get(k).is_some_and(|f| same(v, f)))
                }
                (Some(inner), Some(wanted), Some(found)) => {
                    // Keys set by a default may be owned, and are not part of the intent.
                    let mut wanted = wanted.clone();
                    for (key, value) in keys.iter().filter(|(key, _)| inner.contains_key(&format!("f:{key}")))
                    {
                        wanted.entry(key.clone()).or_insert_with(|| value.clone());
                    }
                    map(inner, &wanted, found)
                }
                _ => false,
            }
        })
}

fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

fn contains(list: &[Value], item: &Value) -> bool {
    list.iter().any(|other| same(other, item))
}

/// Whether two values are equal as JSON: `1` and `1.0` are the same number.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, a)| b.get(k).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn live(fields: &Value, mut object: Value) -> Value {
        object["metadata"] = json!({"name": "a", "managedFields": [
            {"manager": "kubectl", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:x": {}}},
            {"manager": "me", "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields},
        ]});
        object
    }

    fn is_noop(fields: &Value, object: Value, mut intent: Value) -> bool {
        intent["apiVersion"] = "v1".into();
        intent["kind"] = "K".into();
        intent["metadata"] = json!({"name": "a"});
        apply_is_noop(&live(fields, object), &intent, "me", "")
    }

    #[test]
    fn an_apply_of_what_is_held_and_owned_changes_nothing() {
        let fields = json!({"f:data": {"f:a": {}}});
        assert!(is_noop(&fields, json!({"data": {"a": "1", "b": "2"}}), json!({"data": {"a": "1"}})));
        assert!(!is_noop(&fields, json!({"data": {"a": "2"}}), json!({"data": {"a": "1"}})), "drift");
        assert!(
            !is_noop(&fields, json!({"data": {"a": "1"}}), json!({"data": {"a": "1", "b": "2"}})),
            "more"
        );
        assert!(!is_noop(&fields, json!({"data": {"a": "1"}}), json!({"data": {}})), "less");
        assert!(!is_noop(&fields, json!({"data": {}}), json!({"data": {"a": "1"}})), "removed by another");
        assert!(!apply_is_noop(&json!({"data": {"a": "1"}}), &json!({"data": {"a": "1"}}), "me", ""));
    }

    #[test]
    fn lists_are_read_as_their_owner_entry_says() {
        let atomic = json!({"f:refs": {}});
        let refs = json!({"refs": [{"a": 1}, {"a": 2}]});
        assert!(is_noop(&atomic, refs.clone(), refs.clone()));
        assert!(!is_noop(&atomic, refs, json!({"refs": [{"a": 2}, {"a": 1}]})));
        let ports = json!({"ports": [{"port": 443, "protocol": "TCP"}, {"port": 80, "protocol": "TCP"}]});
        // Servers record the key that a default filled in as a field, or do not.
        for item in [json!({".": {}, "f:port": {}, "f:protocol": {}}), json!({".": {}, "f:port": {}})] {
            let keyed = json!({"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": item}});
            assert!(is_noop(&keyed, ports.clone(), json!({"ports": [{"port": 80}]})), "{item}");
            assert!(!is_noop(&keyed, ports.clone(), json!({"ports": [{"port": 443}]})), "{item}");
            let other = json!({"ports": [{"port": 80, "protocol": "UDP"}]});
            assert!(!is_noop(&keyed, ports.clone(), other), "{item}");
        }
        let whole = json!({"f:owners": {"k:{\"uid\":\"u\"}": {}}});
        let owners = json!({"owners": [{"uid": "u", "kind": "K"}, {"uid": "v"}]});
        assert!(is_noop(&whole, owners.clone(), json!({"owners": [{"uid": "u", "kind": "K"}]})));
        assert!(!is_noop(&whole, owners, json!({"owners": [{"uid": "u", "kind": "L"}]})));
        let set = json!({"f:s": {"v:\"x\"": {}}});
        assert!(is_noop(&set, json!({"s": ["y", "x"]}), json!({"s": ["x"]})));
        assert!(!is_noop(&set, json!({"s": ["y", "x"]}), json!({"s": ["y"]})));
    }

    #[test]
    fn numbers_are_compared_as_numbers_and_maps_may_be_empty() {
        assert!(is_noop(&json!({"f:n": {}}), json!({"n": 1}), json!({"n": 1.0})));
        assert!(is_noop(&json!({"f:spec": {}}), json!({"spec": {"other": 1}}), json!({"spec": {}})));
        assert!(!is_noop(
            &json!({"f:spec": {}}),
            json!({"spec": {"other": 1}}),
            json!({"spec": {"other": 2}})
        ));
    }
}
