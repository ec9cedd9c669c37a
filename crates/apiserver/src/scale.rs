//! The `autoscaling/v1` Scale of an object: read from and written to two or three paths of the object.

use crate::resource::ScalePaths;
use serde_json::{Value, json};

pub(crate) const API_VERSION: &str = "autoscaling/v1";
pub(crate) const TYPE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// The Scale of an object, without managedFields.
pub(crate) fn of(value: &Value, paths: &ScalePaths) -> Value {
    let metadata = &value["metadata"];
    let mut kept = serde_json::Map::new();
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(v) = metadata.get(key) {
            kept.insert(key.into(), v.clone());
        }
    }
    let mut spec = serde_json::Map::new();
    if let Some(n) = replicas(value, paths).and_then(Value::as_i64).filter(|n| *n != 0) {
        spec.insert("replicas".into(), n.into());
    }
    let mut status =
        json!({"replicas": get(value, &paths.status_replicas).and_then(Value::as_i64).unwrap_or(0)});
    if let Some(selector) = paths.label_selector.as_ref().and_then(|p| get(value, p)) {
        let text = match selector {
            Value::String(s) => s.clone(),
            other => {
                // The selector of a ReplicationController is the map itself.
                let map = other.as_object().is_some_and(|m| m.values().all(Value::is_string));
                let selector = if map { &json!({"matchLabels": other}) } else { other };
                transom_object::labels::Selector::from_label_selector(selector)
                    .map(|s| s.to_string())
                    .unwrap_or_default()
            }
        };
        if !text.is_empty() {
            status["selector"] = text.into();
        }
    }
    json!({"kind": "Scale", "apiVersion": API_VERSION, "metadata": kept, "spec": spec, "status": status})
}

/// The wanted count of an object, if it has one.
pub(crate) fn replicas<'a>(value: &'a Value, paths: &ScalePaths) -> Option<&'a Value> {
    get(value, &paths.spec_replicas)
}

pub(crate) fn set_replicas(value: &mut Value, paths: &ScalePaths, count: i64) {
    let mut at = value;
    for key in &paths.spec_replicas {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[key];
    }
    *at = count.into();
}

/// The path of the wanted count as definitions write it.
pub(crate) fn replicas_path(paths: &ScalePaths) -> String {
    format!(".{}", paths.spec_replicas.join("."))
}

fn get<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |v, key| v.get(key))
}
