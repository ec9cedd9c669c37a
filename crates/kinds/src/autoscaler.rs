//! HorizontalPodAutoscalers in `autoscaling/v1` and `autoscaling/v2`, which are one kind: objects are stored in v2.
//!
//! v1 knows one metric, the use of processors. What else a v2 object has is in annotations of its v1 form, as
//! kube-apiserver writes them: metrics, their current values, conditions and the behavior. A client of v1 that writes the
//! object back, annotations included, changes nothing of it.

mod metrics;

use crate::typed::normalize;
use metrics::{array, object, plain};
use serde_json::{Map, Value, json};

/// The type of objects of v2.
const TYPE_V2: &str = "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler";
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// What a metric without any is: as in the defaults of v2.
const DEFAULT_UTILIZATION: i64 = 80;

/// An object of v2 as v1 shows it.
pub fn to_v1(v2: &Value) -> Value {
    let mut v1 = v2.clone();
    v1["apiVersion"] = "autoscaling/v1".into();
    drop_annotations(&mut v1);
    let (spec, status) = (take(&mut v1, "spec"), take(&mut v1, "status"));
    let (cpu, others): (Vec<&Value>, Vec<&Value>) =
        list(&spec, "metrics").partition(|metric| is_utilization(metric, "target"));
    v1["spec"] = kept(&spec, &["scaleTargetRef", "minReplicas", "maxReplicas"]);
    if let Some(first) = cpu.first() {
        v1["spec"]["targetCPUUtilizationPercentage"] =
            first["resource"]["target"]["averageUtilization"].clone();
    }
    v1["status"] =
        kept(&status, &["observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"]);
    if let Some(last) = list(&status, "currentMetrics").filter(|m| is_utilization(m, "current")).last() {
        v1["status"]["currentCPUUtilizationPercentage"] =
            last["resource"]["current"]["averageUtilization"].clone();
    }
    let current: Vec<&Value> = list(&status, "currentMetrics").collect();
    let conditions: Vec<&Value> = list(&status, "conditions").collect();
    let texts = [
        (METRICS, (!others.is_empty()).then(|| array(&others, metrics::source))),
        (CURRENT_METRICS, (!current.is_empty()).then(|| array(&current, metrics::status))),
        (BEHAVIOR, spec["behavior"].is_object().then(|| behavior(&spec["behavior"]))),
        (CONDITIONS, (!conditions.is_empty()).then(|| array(&conditions, condition))),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            v1["metadata"]["annotations"][name] = text.into();
        }
    }
    v1
}

/// An object of v1 as v2 shows it and as it is stored. What an annotation says is left out if it cannot be read.
pub fn to_v2(v1: &Value) -> Value {
    let mut v2 = v1.clone();
    v2["apiVersion"] = "autoscaling/v2".into();
    drop_annotations(&mut v2);
    let (spec, status) = (take(&mut v2, "spec"), take(&mut v2, "status"));
    v2["spec"] = kept(&spec, &["scaleTargetRef", "minReplicas", "maxReplicas"]);
    v2["status"] =
        kept(&status, &["observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"]);
    let of_cpu =
        |field: &str, value: &Value| json!({"type": "Resource", "resource": {"name": "cpu", field: value}});
    let utilization = &spec["targetCPUUtilizationPercentage"];
    let target =
        |percent: &Value| of_cpu("target", &json!({"type": "Utilization", "averageUtilization": percent}));
    let own: Vec<Value> = (!utilization.is_null()).then(|| target(utilization)).into_iter().collect();
    if !own.is_empty() {
        v2["spec"]["metrics"] = own.clone().into();
    }
    let used = &status["currentCPUUtilizationPercentage"];
    if !used.is_null() {
        v2["status"]["currentMetrics"] = json!([of_cpu("current", &json!({"averageUtilization": used}))]);
    }
    let annotation = |name: &str| -> Option<Value> {
        serde_json::from_str(v1["metadata"]["annotations"][name].as_str()?).ok()
    };
    if let Some(Value::Array(others)) = annotation(METRICS) {
        let all = others.iter().map(metrics::source_of).chain(own).collect();
        adopt(&mut v2, "spec", "metrics", all);
    }
    if let Some(given) = annotation(BEHAVIOR).map(|given| behavior_of(&given)).filter(|b| *b != json!({})) {
        adopt(&mut v2, "spec", "behavior", given);
    }
    if let Some(Value::Array(current)) = annotation(CURRENT_METRICS) {
        adopt(&mut v2, "status", "currentMetrics", current.iter().map(metrics::status_of).collect());
    }
    if let Some(conditions @ Value::Array(_)) = annotation(CONDITIONS) {
        adopt(&mut v2, "status", "conditions", conditions);
    }
    if list(&v2["spec"], "metrics").next().is_none() {
        v2["spec"]["metrics"] = json!([target(&DEFAULT_UTILIZATION.into())]);
    }
    v2
}

/// Sets a field, unless the object is then none of its type.
fn adopt(v2: &mut Value, part: &str, field: &str, value: Value) {
    let mut with = v2.clone();
    with[part][field] = value;
    if normalize(&mut with, TYPE_V2).is_ok() {
        *v2 = with;
    }
}

fn take(object: &mut Value, field: &str) -> Value {
    object.get_mut(field).map(Value::take).unwrap_or_default()
}

fn list<'a>(part: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    part[field].as_array().into_iter().flatten()
}

fn kept(part: &Value, fields: &[&str]) -> Value {
    let given =
        fields.iter().filter_map(|field| part.get(*field).map(|value| ((*field).to_owned(), value.clone())));
    given.collect::<Map<_, _>>().into()
}

/// The metric that v1 has a field for.
fn is_utilization(metric: &Value, part: &str) -> bool {
    let resource = &metric["resource"];
    metric["type"] == "Resource" && resource["name"] == "cpu" && resource[part]["averageUtilization"].is_i64()
}

fn drop_annotations(object: &mut Value) {
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    annotations.retain(|name, _| ![METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR].contains(&name.as_str()));
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

fn condition(condition: &Value) -> String {
    object(&[
        ("type", plain(&condition["type"])),
        ("status", plain(&condition["status"])),
        ("lastTransitionTime", Some(condition["lastTransitionTime"].to_string())),
        ("reason", plain(&condition["reason"])),
        ("message", plain(&condition["message"])),
    ])
}

/// The behavior is written as Kubernetes' internal type, whose fields have Go's names.
fn behavior(behavior: &Value) -> String {
    let rules = |rules: &Value| {
        if !rules.is_object() {
            return "null".to_owned();
        }
        let policies: Vec<&Value> = list(rules, "policies").collect();
        let policies =
            if rules["policies"].is_array() { array(&policies, policy) } else { "null".to_owned() };
        object(&[
            ("StabilizationWindowSeconds", Some(rules["stabilizationWindowSeconds"].to_string())),
            ("SelectPolicy", Some(rules["selectPolicy"].to_string())),
            ("Policies", Some(policies)),
            ("Tolerance", Some(rules["tolerance"].to_string())),
        ])
    };
    let (up, down) = (rules(&behavior["scaleUp"]), rules(&behavior["scaleDown"]));
    object(&[("ScaleUp", Some(up)), ("ScaleDown", Some(down))])
}

fn policy(policy: &Value) -> String {
    object(&[
        ("Type", Some(policy["type"].to_string())),
        ("Value", Some(policy["value"].to_string())),
        ("PeriodSeconds", Some(policy["periodSeconds"].to_string())),
    ])
}

/// Go reads names of fields without regard to case.
fn behavior_of(given: &Value) -> Value {
    match given {
        Value::Object(map) => {
            let lowered = map.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| {
                let mut name = name.clone();
                name.get_mut(..1).map(str::make_ascii_lowercase);
                (name, behavior_of(value))
            });
            lowered.collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(behavior_of).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rich() -> Value {
        let selector = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]});
        json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "h", "annotations": {"mine": "kept"}},
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}, "minReplicas": 1, "maxReplicas": 5,
                "metrics": [
                    {"type": "Object", "object": {"describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"},
                        "metric": {"name": "hits", "selector": selector}, "target": {"type": "Value", "value": "10"}}},
                    {"type": "Object", "object": {"describedObject": {"kind": "Service", "name": "s"},
                        "metric": {"name": "hits"}, "target": {"type": "AverageValue", "averageValue": "3"}}},
                    {"type": "Pods", "pods": {"metric": {"name": "packets"}, "target": {"type": "AverageValue", "averageValue": "1k"}}},
                    {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
                    {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c",
                        "target": {"type": "Utilization", "averageUtilization": 60}}},
                    {"type": "External", "external": {"metric": {"name": "queue<1>"}, "target": {"type": "Value", "value": "30"}}},
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
                ],
                "behavior": {
                    "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max",
                        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}], "tolerance": "50m"},
                    "scaleDown": {"selectPolicy": "Min", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]},
                },
            },
            "status": {
                "currentReplicas": 2, "desiredReplicas": 3, "observedGeneration": 1,
                "currentMetrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 40, "averageValue": "400m"}}},
                    {"type": "External", "external": {"metric": {"name": "queue"}, "current": {"value": "7", "averageValue": "2"}}},
                    {"type": "Pods", "pods": {"metric": {"name": "packets"}, "current": {"averageValue": "900"}}},
                ],
                "conditions": [{"type": "AbleToScale", "status": "True", "reason": "Ready", "message": "m",
                    "lastTransitionTime": "2024-01-01T00:00:00Z"}],
            },
        })
    }

    #[test]
    fn v1_has_the_use_of_processors_and_annotations_for_the_rest() {
        let v1 = to_v1(&rich());
        assert_eq!(
            (&v1["apiVersion"], &v1["spec"]["targetCPUUtilizationPercentage"]),
            (&json!("autoscaling/v1"), &json!(50))
        );
        assert_eq!(v1["status"]["currentCPUUtilizationPercentage"], 40);
        let annotation = |name: &str| v1["metadata"]["annotations"][name].as_str().unwrap();
        assert_eq!(annotation("mine"), "kept");
        assert_eq!(
            annotation(METRICS),
            concat!(
                r#"[{"type":"Object","object":{"target":{"kind":"Service","name":"s","apiVersion":"v1"},"metricName":"hits","targetValue":"10","#,
                r#""selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}}},"#,
                r#"{"type":"Object","object":{"target":{"kind":"Service","name":"s"},"metricName":"hits","targetValue":"0","averageValue":"3"}},"#,
                r#"{"type":"Pods","pods":{"metricName":"packets","targetAverageValue":"1k"}},"#,
                r#"{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}},"#,
                r#"{"type":"ContainerResource","containerResource":{"name":"cpu","targetAverageUtilization":60,"container":"c"}},"#,
                r#"{"type":"External","external":{"metricName":"queue\u003c1\u003e","targetValue":"30"}}]"#,
            )
        );
        assert_eq!(
            annotation(BEHAVIOR),
            concat!(
                r#"{"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":"50m"},"#,
                r#""ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Min","Policies":[{"Type":"Percent","Value":100,"PeriodSeconds":15}],"Tolerance":null}}"#,
            )
        );
        assert_eq!(
            annotation(CONDITIONS),
            r#"[{"type":"AbleToScale","status":"True","lastTransitionTime":"2024-01-01T00:00:00Z","reason":"Ready","message":"m"}]"#
        );
    }

    #[test]
    fn nothing_is_lost_on_the_way_there_and_back() {
        let (mut there, mut back) = (rich(), to_v2(&to_v1(&rich())));
        normalize(&mut there, TYPE_V2).unwrap();
        normalize(&mut back, TYPE_V2).unwrap();
        assert_eq!(back, there);
    }

    #[test]
    fn an_annotation_that_cannot_be_read_is_left_out() {
        let mut v1 = to_v1(&rich());
        for name in [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR] {
            for text in ["nonsense", "[1]", r#"{"ScaleUp":7}"#, r#"[{"type":1}]"#] {
                v1["metadata"]["annotations"][name] = text.into();
                assert!(normalize(&mut to_v2(&v1), TYPE_V2).is_ok(), "{name}: {text}");
            }
        }
        assert_eq!(list(&to_v2(&v1)["spec"], "metrics").count(), 1);
    }

    #[test]
    fn without_metrics_the_default_is_the_use_of_processors() {
        let v1 = json!({"spec": {"maxReplicas": 3}});
        assert_eq!(
            to_v2(&v1)["spec"]["metrics"],
            json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}])
        );
    }
}
