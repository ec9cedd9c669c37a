//! One metric of an autoscaler, between v2 and the form that annotations of v1 have. Texts have their fields in the order
//! of Go's types.

use serde_json::{Value, json};
use transom_object::json::encode_escaped;

/// A field, if it has a value.
pub(super) fn plain(value: &Value) -> Option<String> {
    (!value.is_null()).then(|| encode_escaped(value))
}

/// An object of the fields that are given.
pub(super) fn object(fields: &[(&str, Option<String>)]) -> String {
    let given =
        fields.iter().filter_map(|(name, text)| text.as_ref().map(|text| format!("\"{name}\":{text}")));
    format!("{{{}}}", given.collect::<Vec<_>>().join(","))
}

pub(super) fn array(items: &[&Value], text: impl Fn(&Value) -> String) -> String {
    format!("[{}]", items.iter().map(|item| text(item)).collect::<Vec<_>>().join(","))
}

/// A quantity that is always there.
fn quantity(value: &Value) -> Option<String> {
    Some(plain(value).unwrap_or_else(|| "\"0\"".to_owned()))
}

fn reference(target: &Value) -> Option<String> {
    Some(object(&[
        ("kind", plain(&target["kind"])),
        ("name", plain(&target["name"])),
        ("apiVersion", plain(&target["apiVersion"])),
    ]))
}

fn selector(selector: &Value) -> Option<String> {
    let expressions: Option<Vec<&Value>> =
        selector["matchExpressions"].as_array().map(|all| all.iter().collect());
    let expression = |e: &Value| {
        object(&[
            ("key", plain(&e["key"])),
            ("operator", plain(&e["operator"])),
            ("values", plain(&e["values"])),
        ])
    };
    selector.is_object().then(|| {
        object(&[
            ("matchLabels", plain(&selector["matchLabels"])),
            ("matchExpressions", expressions.map(|all| array(&all, expression))),
        ])
    })
}

/// A metric of the spec.
pub(super) fn source(metric: &Value) -> String {
    let part = |name: &str, fields: &dyn Fn(&Value, &Value, &Value) -> String| {
        let of = &metric[name];
        of.is_object().then(|| fields(of, &of["metric"], &of["target"]))
    };
    let of_object = part("object", &|of, m, target| {
        object(&[
            ("target", reference(&of["describedObject"])),
            ("metricName", plain(&m["name"])),
            ("targetValue", quantity(&target["value"])),
            ("selector", selector(&m["selector"])),
            ("averageValue", plain(&target["averageValue"])),
        ])
    });
    let of_pods = part("pods", &|_, m, target| {
        object(&[
            ("metricName", plain(&m["name"])),
            ("targetAverageValue", quantity(&target["averageValue"])),
            ("selector", selector(&m["selector"])),
        ])
    });
    let of_resource = |of: &Value, _: &Value, target: &Value| {
        object(&[
            ("name", plain(&of["name"])),
            ("targetAverageUtilization", plain(&target["averageUtilization"])),
            ("targetAverageValue", plain(&target["averageValue"])),
            ("container", plain(&of["container"])),
        ])
    };
    let of_external = part("external", &|_, m, target| {
        object(&[
            ("metricName", plain(&m["name"])),
            ("metricSelector", selector(&m["selector"])),
            ("targetValue", plain(&target["value"])),
            ("targetAverageValue", plain(&target["averageValue"])),
        ])
    });
    object(&[
        ("type", plain(&metric["type"])),
        ("object", of_object),
        ("pods", of_pods),
        ("resource", part("resource", &of_resource)),
        ("containerResource", part("containerResource", &of_resource)),
        ("external", of_external),
    ])
}

/// A metric of the status.
pub(super) fn status(metric: &Value) -> String {
    let part = |name: &str, fields: &dyn Fn(&Value, &Value, &Value) -> String| {
        let of = &metric[name];
        of.is_object().then(|| fields(of, &of["metric"], &of["current"]))
    };
    let of_object = part("object", &|of, m, current| {
        object(&[
            ("target", reference(&of["describedObject"])),
            ("metricName", plain(&m["name"])),
            ("currentValue", quantity(&current["value"])),
            ("selector", selector(&m["selector"])),
            ("averageValue", plain(&current["averageValue"])),
        ])
    });
    let of_pods = part("pods", &|_, m, current| {
        object(&[
            ("metricName", plain(&m["name"])),
            ("currentAverageValue", quantity(&current["averageValue"])),
            ("selector", selector(&m["selector"])),
        ])
    });
    let of_resource = |of: &Value, _: &Value, current: &Value| {
        object(&[
            ("name", plain(&of["name"])),
            ("currentAverageUtilization", plain(&current["averageUtilization"])),
            ("currentAverageValue", quantity(&current["averageValue"])),
            ("container", plain(&of["container"])),
        ])
    };
    let of_external = part("external", &|_, m, current| {
        object(&[
            ("metricName", plain(&m["name"])),
            ("metricSelector", selector(&m["selector"])),
            ("currentValue", quantity(&current["value"])),
            ("currentAverageValue", plain(&current["averageValue"])),
        ])
    });
    object(&[
        ("type", plain(&metric["type"])),
        ("object", of_object),
        ("pods", of_pods),
        ("resource", part("resource", &of_resource)),
        ("containerResource", part("containerResource", &of_resource)),
        ("external", of_external),
    ])
}

/// Values of the one or the other, `0` standing for a quantity that is not given.
fn or_zero(value: &Value) -> Value {
    if value.is_null() { json!("0") } else { value.clone() }
}

/// A metric of the spec in v2.
pub(super) fn source_of(given: &Value) -> Value {
    let mut metric = json!({"type": given["type"]});
    for (name, of) in given.as_object().into_iter().flatten() {
        let identifier = |selector: &str| json!({"name": of["metricName"], "selector": of[selector]});
        let utilization = &of["targetAverageUtilization"];
        metric[name] = match name.as_str() {
            "object" => {
                let average = &of["averageValue"];
                let (value, by) =
                    (or_zero(&of["targetValue"]), if average.is_null() { "Value" } else { "AverageValue" });
                // v1 cannot leave the value out.
                let value = if average.is_null() || value != "0" { value } else { Value::Null };
                json!({"describedObject": of["target"], "metric": identifier("selector"),
                    "target": {"type": by, "value": value, "averageValue": average}})
            }
            "pods" => json!({"metric": identifier("selector"),
                "target": {"type": "AverageValue", "averageValue": or_zero(&of["targetAverageValue"])}}),
            "resource" | "containerResource" => {
                let by = if utilization.is_null() { "AverageValue" } else { "Utilization" };
                json!({"name": of["name"], "container": of["container"],
                    "target": {"type": by, "averageUtilization": utilization, "averageValue": of["targetAverageValue"]}})
            }
            "external" => {
                let by = if of["targetValue"].is_null() { "AverageValue" } else { "Value" };
                json!({"metric": identifier("metricSelector"),
                    "target": {"type": by, "value": of["targetValue"], "averageValue": of["targetAverageValue"]}})
            }
            _ => continue,
        };
        forget_container(&mut metric, name);
    }
    metric
}

/// A metric of the status in v2.
pub(super) fn status_of(given: &Value) -> Value {
    let mut metric = json!({"type": given["type"]});
    for (name, of) in given.as_object().into_iter().flatten() {
        let identifier = |selector: &str| json!({"name": of["metricName"], "selector": of[selector]});
        metric[name] = match name.as_str() {
            "object" => json!({"describedObject": of["target"], "metric": identifier("selector"),
                "current": {"value": or_zero(&of["currentValue"]), "averageValue": of["averageValue"]}}),
            "pods" => json!({"metric": identifier("selector"),
                "current": {"averageValue": or_zero(&of["currentAverageValue"])}}),
            "resource" | "containerResource" => json!({"name": of["name"], "container": of["container"],
                "current": {"averageUtilization": of["currentAverageUtilization"], "averageValue": or_zero(&of["currentAverageValue"])}}),
            "external" => json!({"metric": identifier("metricSelector"),
                "current": {"value": or_zero(&of["currentValue"]), "averageValue": of["currentAverageValue"]}}),
            _ => continue,
        };
        forget_container(&mut metric, name);
    }
    metric
}

/// Only one of the two kinds of resources has a container.
fn forget_container(metric: &mut Value, name: &str) {
    if name == "resource"
        && let Some(resource) = metric[name].as_object_mut()
    {
        resource.remove("container");
    }
}
