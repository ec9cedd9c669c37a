//! Manifests, and what follows from them: pure.

use super::NAME;
use serde_json::{Value, json};
use transom_object::meta;

/// How long the name of a field manager may be.
const MAX_MANAGER_LENGTH: usize = 128;
/// How long a copied value must be to be replaced everywhere in a message.
const MIN_REPLACED_LENGTH: usize = 4;

/// A manifest with a name.
pub(super) fn named(mut manifest: Value, object: &Value) -> Value {
    if meta::name(&manifest).is_empty() {
        meta::set_name(&mut manifest, meta::name(object));
    }
    manifest
}

/// The manager of the fields that an Object applies: that of the original, so that each continues the work of the other. A
/// name that is too long for a manager ends with a hash.
pub(super) fn manager(object: &Value) -> String {
    let manager = format!("{NAME}/{}", meta::name(object));
    if manager.len() <= MAX_MANAGER_LENGTH {
        return manager;
    }
    let hash = &digest(manager.as_bytes())[..16];
    format!("{}-{hash}", &manager[..MAX_MANAGER_LENGTH - hash.len() - 1])
}

/// SHA-256 in hexadecimal digits.
pub(super) fn digest(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An observed object as the status of its Object shows it. The data of Secrets is replaced where that is asked for.
pub(super) fn observed_manifest(live: &Value, sanitized: bool) -> Value {
    let mut shown = live.clone();
    let is_secret = meta::api_version(live) == "v1" && meta::kind(live) == "Secret";
    if sanitized && is_secret {
        for field in ["data", "stringData"] {
            if shown.get(field).is_some() {
                shown[field] = json!({"redacted": ""});
            }
        }
        // It has what was applied.
        let annotation = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
        if let Some(applied) = shown.pointer_mut(annotation) {
            *applied = "redacted".into();
        }
    }
    shown
}

/// The texts and numbers in a value.
pub(super) fn leaves(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(leaves).collect(),
        Value::Object(fields) => fields.values().flat_map(leaves).collect(),
        Value::String(text) => vec![text.clone()],
        Value::Number(number) => vec![number.to_string()],
        Value::Bool(_) | Value::Null => Vec::new(),
    }
}

/// A message of a server without these values. A short one is replaced where it is quoted: elsewhere it is a part of words.
pub(super) fn redacted(message: &str, values: &[String]) -> String {
    let mut values: Vec<&String> = values.iter().filter(|value| !value.is_empty()).collect();
    // One that contains another first.
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    values.into_iter().fold(message.to_owned(), |message, value| {
        let quoted = Value::from(value.as_str()).to_string();
        let message = message.replace(&quoted, "\"<copied>\"");
        if value.len() < MIN_REPLACED_LENGTH { message } else { message.replace(value.as_str(), "<copied>") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_values_are_not_in_messages() {
        let values =
            leaves(&json!({"a": ["sesame", "se"], "b": 54321, "c": true, "d": "", "e": "two\nlines"}));
        let message = r#"a: Invalid value: "sesame": no; b: Invalid value: 54321: no; "two\nlines"; serves "se", sesame's"#;
        let expected = r#"a: Invalid value: "<copied>": no; b: Invalid value: <copied>: no; "<copied>"; serves "<copied>", <copied>'s"#;
        assert_eq!(redacted(message, &values), expected);
    }

    #[test]
    fn k1_a_manifest_without_a_name_has_that_of_its_object() {
        let object = json!({"metadata": {"name": "o"}});
        assert_eq!(named(json!({"kind": "ConfigMap"}), &object)["metadata"]["name"], "o");
        assert_eq!(named(json!({"metadata": {"name": "m"}}), &object)["metadata"]["name"], "m");
    }

    #[test]
    fn managers_are_short_enough_and_differ() {
        let of = |name: &str| manager(&json!({"metadata": {"name": name}}));
        assert_eq!(of("o"), "provider-kubernetes/o");
        let (a, b) = (of(&"a".repeat(200)), of(&"a".repeat(201)));
        assert_eq!((a.len(), b.len()), (128, 128));
        assert_ne!(a, b);
    }

    #[test]
    fn k8_the_data_of_secrets_is_replaced_where_that_is_asked_for() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "data": {"password": "c2VzYW1l"},
            "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "c2VzYW1l"}},
        });
        assert_eq!(observed_manifest(&secret, false), secret);
        assert!(!observed_manifest(&secret, true).to_string().contains("c2VzYW1l"));
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
        assert_eq!(observed_manifest(&map, true), map);
    }
}
