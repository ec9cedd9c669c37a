//! Which fields of an object change, and how. Fields that the server sets are left out. Pure.

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use transom_object::shorten::shorten;

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
/// The most bytes of a value that is shown.
const MAX_VALUE_BYTES: usize = 120;
/// Stands for a value that must not be shown.
const HIDDEN: &str = "(hidden)";

/// A field that changes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// Such as `spec.ports[0].port`.
    pub(crate) path: String,
    /// Nothing if it is new.
    pub(crate) before: Option<String>,
    /// Nothing if it goes.
    pub(crate) after: Option<String>,
}

/// The fields that differ between an object as it is and as it would be stored.
pub(super) fn changed(before: &Value, after: &Value) -> Vec<Field> {
    let mut found = Fields { hidden: is_secret(after), ..Fields::default() };
    found.compare(Some(&authored(before)), Some(&authored(after)), "");
    found.fields
}

/// The fields of an intent that an object does not have like this. Fields that the intent does not mention stay.
pub(super) fn intended(before: &Value, intent: &Value) -> Vec<Field> {
    let mut found = Fields { hidden: is_secret(intent), partial: true, ..Fields::default() };
    found.compare(Some(&authored(before)), Some(&authored(intent)), "");
    found.fields
}

fn is_secret(object: &Value) -> bool {
    object["kind"] == "Secret" && object["apiVersion"] == "v1"
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

#[derive(Default)]
struct Fields {
    fields: Vec<Field>,
    /// Whether values are secret.
    hidden: bool,
    /// Whether a field that is missing afterwards stays.
    partial: bool,
}

impl Fields {
    fn compare(&mut self, before: Option<&Value>, after: Option<&Value>, path: &str) {
        match (before, after) {
            (Some(Value::Object(b)), Some(Value::Object(a))) => self.compare_maps(b, a, path),
            (Some(Value::Array(b)), Some(Value::Array(a))) if b.len() == a.len() => {
                for (i, (before, after)) in b.iter().zip(a).enumerate() {
                    self.compare(Some(before), Some(after), &format!("{path}[{i}]"));
                }
            }
            (Some(_), None) if self.partial => {}
            (before, after) if before == after => {}
            (before, after) => {
                let (before, after) = (before.map(|v| self.show(v)), after.map(|v| self.show(v)));
                self.fields.push(Field { path: path.to_owned(), before, after });
            }
        }
    }

    fn compare_maps(&mut self, before: &Map<String, Value>, after: &Map<String, Value>, path: &str) {
        let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for key in keys {
            let dot = if path.is_empty() { "" } else { "." };
            let path = match key.contains(['.', '/']) {
                true => format!("{path}[{key:?}]"),
                false => format!("{path}{dot}{key}"),
            };
            self.compare(before.get(key), after.get(key), &path);
        }
    }

    fn show(&self, value: &Value) -> String {
        match self.hidden {
            true => HIDDEN.to_owned(),
            false => shorten(&value.to_string(), MAX_VALUE_BYTES).into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(path: &str, before: Option<&str>, after: Option<&str>) -> Field {
        Field { path: path.to_owned(), before: before.map(str::to_owned), after: after.map(str::to_owned) }
    }

    #[test]
    fn fields_are_shown_with_their_values() {
        let before = json!({
            "metadata": {"name": "a", "uid": "1", "labels": {"a.b/c": "x"}},
            "spec": {"list": [{"a": 1}, {"a": 2}], "gone": true, "same": 1, "longer": [1]},
            "status": {"x": 1},
        });
        let after = json!({
            "metadata": {"name": "a", "uid": "2", "labels": {"a.b/c": "z"}},
            "spec": {"list": [{"a": 1}, {"a": 3}], "new": {"x": null}, "same": 1, "longer": [1, 2]},
        });
        let expected = [
            field(r#"metadata.labels["a.b/c"]"#, Some("\"x\""), Some("\"z\"")),
            field("spec.gone", Some("true"), None),
            field("spec.list[1].a", Some("2"), Some("3")),
            field("spec.longer", Some("[1]"), Some("[1,2]")),
            field("spec.new", None, Some("{\"x\":null}")),
        ];
        assert_eq!(changed(&before, &after), expected);
        let without_gone: Vec<Field> = expected.into_iter().filter(|f| f.path != "spec.gone").collect();
        assert_eq!(intended(&before, &after), without_gone);
        assert!(changed(&before, &before).is_empty());
    }

    #[test]
    fn secrets_are_not_shown() {
        let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "data": {"password": value}});
        let fields = changed(&secret("b2xk"), &secret("bmV3"));
        assert_eq!(fields, [field("data.password", Some(HIDDEN), Some(HIDDEN))]);
    }

    #[test]
    fn long_values_are_shortened() {
        let fields = changed(&json!({"a": "x".repeat(10_000)}), &json!({"a": 1}));
        assert!(fields[0].before.as_ref().unwrap().len() <= MAX_VALUE_BYTES);
    }
}
