//! Which fields of an object differ. Fields that the server sets, and owner references, are left out.

use serde_json::Value;
use std::collections::BTreeSet;

/// The most fields that are listed for one object.
const FIELDS_MAX: usize = 20;
/// Fields of the metadata that are not the author's.
const OF_THE_SERVER: [&str; 8] = [
    "creationTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// What the server adds to a definition as soon as a controller writes it through version v1: no author's field.
const DEFAULT_OF_V1: (&str, &str) = ("spec.defaultCompositeDeletePolicy", "Background");

/// The paths of fields that differ, such as `spec.versions[0].schema`; the last may say how many more there are.
pub(super) fn changed_fields(before: &Value, after: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    compare(&authored(before), &authored(after), "", &mut paths);
    if paths.len() > FIELDS_MAX {
        let more = paths.len() - FIELDS_MAX;
        paths.truncate(FIELDS_MAX);
        paths.push(format!("and {more} more"));
    }
    paths
}

fn authored(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        OF_THE_SERVER.iter().for_each(|field| drop(metadata.remove(*field)));
    }
    object
}

fn compare(before: &Value, after: &Value, path: &str, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(b), Value::Object(a)) => {
            let keys: BTreeSet<&String> = b.keys().chain(a.keys()).collect();
            for key in keys {
                let dot = if path.is_empty() { "" } else { "." };
                let path = match key.contains(['.', '/']) {
                    true => format!("{path}[{key:?}]"),
                    false => format!("{path}{dot}{key}"),
                };
                match (b.get(key), a.get(key)) {
                    (Some(before), Some(after)) => compare(before, after, &path, found),
                    (Some(Value::String(before)), None) if (&*path, &**before) == DEFAULT_OF_V1 => {}
                    _ => found.push(path),
                }
            }
        }
        (Value::Array(b), Value::Array(a)) if b.len() == a.len() => {
            for (i, (before, after)) in b.iter().zip(a).enumerate() {
                compare(before, after, &format!("{path}[{i}]"), found);
            }
        }
        _ if before == after => {}
        _ => found.push(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_are_fields_that_authors_write() {
        let before = json!({
            "metadata": {"name": "a", "uid": "1", "labels": {"a.b/c": "x", "d": "y"}},
            "spec": {"list": [{"a": 1}, {"a": 2}], "gone": true, "same": 1, "longer": [1]},
            "status": {"x": 1},
        });
        let after = json!({
            "metadata": {"name": "a", "uid": "2", "labels": {"a.b/c": "z", "d": "y"}},
            "spec": {"list": [{"a": 1}, {"a": 3}], "new": true, "same": 1, "longer": [1, 2]},
        });
        let expected =
            [r#"metadata.labels["a.b/c"]"#, "spec.gone", "spec.list[1].a", "spec.longer", "spec.new"];
        assert_eq!(changed_fields(&before, &after), expected);
        assert!(changed_fields(&before, &before).is_empty());
        let policy = |policy: &str| json!({"spec": {"defaultCompositeDeletePolicy": policy}});
        let without = json!({"spec": {}});
        assert!(changed_fields(&policy("Background"), &without).is_empty(), "a default that goes away");
        assert_eq!(
            changed_fields(&policy("Foreground"), &without),
            ["spec.defaultCompositeDeletePolicy"],
            "a choice that goes away"
        );
        let many: serde_json::Map<String, Value> = (0..25).map(|i| (format!("f{i:02}"), json!(i))).collect();
        let listed = changed_fields(&json!({}), &Value::Object(many));
        assert_eq!((listed.len(), listed.last().map(String::as_str)), (21, Some("and 5 more")));
    }
}
