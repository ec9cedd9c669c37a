//! Defaults of workloads that depend on other fields of the same struct.

use super::special::{Fields, text};
use serde_json::{Map, Value, json};

/// Applies what the type with this name (without `io.k8s.api.`) needs beyond constants.
pub(super) fn apply(type_name: &str, map: &mut Fields) {
    match type_name {
        "apps.v1.DaemonSetUpdateStrategy" => rolling_daemons(map),
        "apps.v1.StatefulSetUpdateStrategy" => rolling_stateful(map),
        "core.v1.ReplicationController" => replication_controller(map),
        "batch.v1.Job" => job(map),
        "autoscaling.v2.HorizontalPodAutoscalerSpec" => autoscaler(map),
        _ => {}
    }
}

fn rolling_daemons(map: &mut Fields) {
    if text(map, "type") != "RollingUpdate" {
        return;
    }
    if let Value::Object(parameters) = map.entry("rollingUpdate").or_insert_with(|| json!({})) {
        parameters.entry("maxUnavailable").or_insert_with(|| 1.into());
        parameters.entry("maxSurge").or_insert_with(|| 0.into());
    }
}

/// Parameters appear only with a strategy that was not given, or where they were.
fn rolling_stateful(map: &mut Fields) {
    if text(map, "type").is_empty() {
        map.insert("type".into(), "RollingUpdate".into());
        map.entry("rollingUpdate").or_insert_with(|| json!({}));
    }
    let rolling = text(map, "type") == "RollingUpdate";
    if let (true, Some(Value::Object(parameters))) = (rolling, map.get_mut("rollingUpdate")) {
        parameters.entry("partition").or_insert_with(|| 0.into());
    }
}

/// Labels for an object without any, from its pod template.
fn adopt_labels(map: &mut Fields, labels: &Value) {
    let Some(Value::Object(metadata)) = map.get_mut("metadata") else { return };
    if metadata.get("labels").and_then(Value::as_object).is_none_or(Map::is_empty) {
        metadata.insert("labels".into(), labels.clone());
    }
}

fn template_labels(map: &Fields) -> Option<Value> {
    let labels = map.get("spec")?.pointer("/template/metadata/labels")?;
    labels.is_object().then(|| labels.clone())
}

fn replication_controller(map: &mut Fields) {
    let Some(labels) = template_labels(map) else { return };
    if let Some(Value::Object(spec)) = map.get_mut("spec")
        && spec.get("selector").and_then(Value::as_object).is_none_or(Map::is_empty)
    {
        spec.insert("selector".into(), labels.clone());
    }
    adopt_labels(map, &labels);
}

fn job(map: &mut Fields) {
    if let Some(labels) = template_labels(map) {
        adopt_labels(map, &labels);
    }
    let Some(Value::Object(spec)) = map.get_mut("spec") else { return };
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".into(), 1.into());
    }
    let retries = if spec.contains_key("backoffLimitPerIndex") { i32::MAX } else { 6 };
    let replaced = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    for (field, value) in [
        ("parallelism", json!(1)),
        ("backoffLimit", json!(retries)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("podReplacementPolicy", json!(replaced)),
        ("manualSelector", json!(false)),
    ] {
        spec.entry(field).or_insert(value);
    }
}

fn autoscaler(map: &mut Fields) {
    if map.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        map.insert(
            "metrics".into(),
            json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]),
        );
    }
    let Some(Value::Object(behavior)) = map.get_mut("behavior") else { return };
    let policy = |kind: &str, value: i64| json!({"type": kind, "value": value, "periodSeconds": 15});
    let up = json!({
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [policy("Pods", 4), policy("Percent", 100)],
    });
    let down = json!({"selectPolicy": "Max", "policies": [policy("Percent", 100)]});
    for (direction, defaults) in [("scaleUp", up), ("scaleDown", down)] {
        let rules = behavior.entry(direction).or_insert_with(|| json!({}));
        if let (Value::Object(rules), Value::Object(defaults)) = (rules, defaults) {
            for (field, value) in defaults {
                rules.entry(field).or_insert(value);
            }
        }
    }
}
