//! Cells of the kinds that need more than a field or two.

use super::Printed;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Where the two representations of an event keep what the columns show.
pub(super) struct EventPaths {
    about: &'static str,
    message: &'static str,
    source: &'static str,
    controller: &'static str,
    first: &'static str,
    last: &'static str,
    count: &'static str,
}

pub(super) const CORE_EVENT: EventPaths = EventPaths {
    about: "/involvedObject",
    message: "/message",
    source: "/source",
    controller: "/reportingComponent",
    first: "/firstTimestamp",
    last: "/lastTimestamp",
    count: "/count",
};

pub(super) const NEW_EVENT: EventPaths = EventPaths {
    about: "/regarding",
    message: "/note",
    source: "/deprecatedSource",
    controller: "/reportingController",
    first: "/deprecatedFirstTimestamp",
    last: "/deprecatedLastTimestamp",
    count: "/deprecatedCount",
};

pub(super) fn event(o: &Printed<'_>, paths: &EventPaths) -> Vec<Value> {
    let first = if o.text(paths.first).is_empty() { o.since("/eventTime") } else { o.since(paths.first) };
    let mut last = if o.text(paths.last).is_empty() { first.clone() } else { o.since(paths.last) };
    let mut count = o.number(paths.count);
    if o.object.get("series").is_some_and(Value::is_object) {
        last = o.since("/series/lastObservedTime");
        count = o.number("/series/count");
    } else if count == 0 {
        count = 1;
    }
    let kind = o.text(&format!("{}/kind", paths.about)).to_lowercase();
    let target = match o.text(&format!("{}/name", paths.about)) {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let first_of = |a: &'static str, b: &'static str| {
        let own = o.text(&format!("{}{a}", paths.source));
        if own.is_empty() { o.text(b) } else { own }
    };
    let source = match first_of("/host", "/reportingInstance") {
        "" => first_of("/component", paths.controller).to_owned(),
        host => format!("{}, {host}", first_of("/component", paths.controller)),
    };
    vec![
        json!(last),
        json!(o.text("/type")),
        json!(o.text("/reason")),
        json!(target),
        json!(o.text(&format!("{}/fieldPath", paths.about))),
        json!(source),
        json!(o.text(paths.message).trim()),
        json!(first),
        json!(count),
        json!(o.text("/metadata/name")),
    ]
}

pub(super) fn service(o: &Printed<'_>, name: Value, age: Value) -> Vec<Value> {
    let cluster_ip = match (o.text("/spec/clusterIPs/0"), o.text("/spec/clusterIP")) {
        ("", "") => "<none>",
        ("", single) => single,
        (first, _) => first,
    };
    let ports: Vec<String> = o
        .list("/spec/ports")
        .iter()
        .map(|port| service_port(&Printed { object: port, now: o.now }))
        .collect();
    let ports = if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") };
    let selector = labels(o.object.pointer("/spec/selector"));
    vec![
        name,
        json!(o.text("/spec/type")),
        json!(cluster_ip),
        json!(external_ip(o)),
        json!(ports),
        age,
        json!(selector),
    ]
}

fn service_port(port: &Printed<'_>) -> String {
    let (number, protocol) = (port.number("/port"), port.text("/protocol"));
    match port.number("/nodePort") {
        node if node > 0 => format!("{number}:{node}/{protocol}"),
        _ => format!("{number}/{protocol}"),
    }
}

fn external_ip(o: &Printed<'_>) -> String {
    let external: Vec<&str> = o.list("/spec/externalIPs").iter().filter_map(Value::as_str).collect();
    let or = |list: Vec<&str>, none: &str| if list.is_empty() { none.to_owned() } else { list.join(",") };
    match o.text("/spec/type") {
        "ClusterIP" | "NodePort" => or(external, "<none>"),
        "LoadBalancer" => {
            let address = |i: &'_ Value| {
                let of = |key: &str| {
                    i.get(key).and_then(Value::as_str).filter(|s| !s.is_empty()).map(str::to_owned)
                };
                of("ip").or_else(|| of("hostname"))
            };
            let own: BTreeSet<String> =
                o.list("/status/loadBalancer/ingress").iter().filter_map(address).collect();
            or(own.iter().map(String::as_str).chain(external).collect(), "<pending>")
        }
        "ExternalName" => o.text("/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

pub(super) fn deployment(o: &Printed<'_>, name: Value, age: Value) -> Vec<Value> {
    let (names, images) = containers(o, "/spec/template/spec/containers");
    vec![
        name,
        json!(format!("{}/{}", o.number("/status/readyReplicas"), o.number("/spec/replicas"))),
        json!(o.number("/status/updatedReplicas")),
        json!(o.number("/status/availableReplicas")),
        age,
        names,
        images,
        json!(label_selector(o.object.pointer("/spec/selector"))),
    ]
}

pub(super) fn replica_set(o: &Printed<'_>, name: Value, age: Value) -> Vec<Value> {
    let (names, images) = containers(o, "/spec/template/spec/containers");
    let selector = match label_selector(o.object.pointer("/spec/selector")) {
        s if s.is_empty() => "<none>".to_owned(),
        s => s,
    };
    vec![
        name,
        json!(o.number("/spec/replicas")),
        json!(o.number("/status/replicas")),
        json!(o.number("/status/readyReplicas")),
        age,
        names,
        images,
        json!(selector),
    ]
}

pub(super) fn pod_template(o: &Printed<'_>, name: Value) -> Vec<Value> {
    let (names, images) = containers(o, "/template/spec/containers");
    vec![name, names, images, json!(labels(o.object.pointer("/template/metadata/labels")))]
}

pub(super) fn containers(o: &Printed<'_>, pointer: &str) -> (Value, Value) {
    let all = |key: &str| {
        let each: Vec<&str> =
            o.list(pointer).iter().map(|c| c.get(key).and_then(Value::as_str).unwrap_or_default()).collect();
        Value::from(each.join(","))
    };
    (all("name"), all("image"))
}

pub(super) fn endpoints(o: &Printed<'_>) -> String {
    const MAX_PRINTED_ENDPOINTS: usize = 3;
    let mut all = Vec::new();
    for subset in o.list("/subsets") {
        let subset = Printed { object: subset, now: o.now };
        let addresses = subset.list("/addresses").iter().filter_map(|a| a.get("ip")?.as_str());
        let ports: Vec<i64> = subset.list("/ports").iter().filter_map(|p| p.get("port")?.as_i64()).collect();
        if ports.is_empty() {
            all.extend(addresses.map(str::to_owned));
            continue;
        }
        for port in ports {
            all.extend(addresses.clone().map(|ip| match ip.contains(':') {
                true => format!("[{ip}]:{port}"),
                false => format!("{ip}:{port}"),
            }));
        }
    }
    match all.len() {
        0 if o.list("/subsets").is_empty() => "<none>".to_owned(),
        n if n > MAX_PRINTED_ENDPOINTS => {
            format!("{} + {} more...", all[..MAX_PRINTED_ENDPOINTS].join(","), n - MAX_PRINTED_ENDPOINTS)
        }
        _ => all.join(","),
    }
}

pub(super) fn binding(o: &Printed<'_>, name: Value, age: Value) -> Vec<Value> {
    let subjects = |kind: &str| {
        let of_kind = o.list("/subjects").iter().map(|s| Printed { object: s, now: o.now });
        let each: Vec<String> = of_kind
            .filter(|s| s.text("/kind") == kind)
            .map(|s| match kind {
                "ServiceAccount" => format!("{}/{}", s.text("/namespace"), s.text("/name")),
                _ => s.text("/name").to_owned(),
            })
            .collect();
        Value::from(each.join(", "))
    };
    let role = format!("{}/{}", o.text("/roleRef/kind"), o.text("/roleRef/name"));
    vec![name, json!(role), age, subjects("User"), subjects("Group"), subjects("ServiceAccount")]
}

pub(super) fn labels(map: Option<&Value>) -> String {
    let pairs: Vec<String> = map
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// A label selector in its query form, requirements sorted by key.
pub(super) fn label_selector(selector: Option<&Value>) -> String {
    let Some(selector) = selector else { return String::new() };
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for e in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = e.get("key").and_then(Value::as_str).unwrap_or_default();
        let mut values: Vec<&str> = e
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let text = match e.get("operator").and_then(Value::as_str) {
            Some("In") => format!("{key} in ({})", values.join(",")),
            Some("NotIn") => format!("{key} notin ({})", values.join(",")),
            Some("Exists") => key.to_owned(),
            Some("DoesNotExist") => format!("!{key}"),
            _ => return "<invalid>".to_owned(),
        };
        parts.push((key.to_owned(), text));
    }
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    let texts: Vec<String> = parts.into_iter().map(|(_, text)| text).collect();
    texts.join(",")
}
