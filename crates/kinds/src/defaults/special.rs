//! Defaults that depend on other fields of the same struct.

use super::workloads;
use crate::scalars;
use serde_json::{Map, Value, json};

const DEFINITION: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";

pub(super) type Fields = Map<String, Value>;

/// Applies what the type with this name (without `io.k8s.api.`) needs beyond constants.
pub(super) fn apply(type_name: &str, map: &mut Fields) {
    match type_name {
        "core.v1.Container" | "core.v1.EphemeralContainer" => pull_policy(map, "image", "imagePullPolicy"),
        "core.v1.ImageVolumeSource" => pull_policy(map, "reference", "pullPolicy"),
        "core.v1.ResourceRequirements" | "core.v1.VolumeResourceRequirements" => {
            round_resources(map, &["limits", "requests"]);
        }
        "core.v1.PodSpec" => round_resources(map, &["overhead"]),
        "core.v1.Volume" => volume(map),
        "core.v1.Pod" => pod(map),
        "core.v1.Namespace" => namespace(map),
        "core.v1.ServiceSpec" => service(map),
        "core.v1.ServicePort" => target_port(map),
        "core.v1.Service" => load_balancer_ingress(map),
        "apps.v1.DeploymentStrategy" => rolling_update(map),
        "rbac.v1.Subject" => subject(map),
        DEFINITION => definition(map),
        "core.v1.PersistentVolumeSpec" => round_resources(map, &["capacity"]),
        "core.v1.PersistentVolumeClaimStatus" => round_resources(map, &["capacity", "allocatedResources"]),
        "core.v1.ResourceQuotaSpec" => round_resources(map, &["hard"]),
        "core.v1.ResourceQuotaStatus" => round_resources(map, &["hard", "used"]),
        "core.v1.NodeStatus" => node_status(map),
        "core.v1.LimitRangeItem" => limit_range_item(map),
        "networking.v1.NetworkPolicySpec" => policy_types(map),
        "resource.v1.ExactDeviceRequest" | "resource.v1.DeviceSubRequest" => exact_count(map),
        _ => workloads::apply(type_name, map),
    }
}

pub(super) fn text<'a>(map: &'a Fields, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn pull_policy(map: &mut Fields, image: &str, policy: &str) {
    if !text(map, policy).is_empty() {
        return;
    }
    let value = if tag(text(map, image)) == "latest" { "Always" } else { "IfNotPresent" };
    map.insert(policy.to_owned(), value.into());
}

/// The tag of an image reference; `latest` when it has neither tag nor digest, empty when it is not a reference.
fn tag(image: &str) -> &str {
    let (name, digest) = image.split_once('@').map_or((image, ""), |(name, digest)| (name, digest));
    let last = name.rfind('/').map_or(0, |i| i + 1);
    let (path, tag) = match name[last..].find(':') {
        Some(colon) => (&name[..last + colon], &name[last + colon + 1..]),
        None => (name, ""),
    };
    let domain = path.find('/').map_or(0, |i| i + 1);
    let valid = !path.is_empty()
        && path[domain..].bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'/'));
    match (valid, tag.is_empty() && digest.is_empty()) {
        (false, _) => "",
        (true, true) => "latest",
        (true, false) => tag,
    }
}

/// Resource amounts finer than a milli are rounded up to one.
fn round_resources(map: &mut Fields, lists: &[&str]) {
    for list in lists {
        let Some(Value::Object(amounts)) = map.get_mut(*list) else { continue };
        for amount in amounts.values_mut() {
            if let Some(rounded) = amount.as_str().and_then(scalars::round_up_to_milli) {
                *amount = rounded.into();
            }
        }
    }
}

fn volume(map: &mut Fields) {
    if map.keys().all(|k| k == "name") {
        map.insert("emptyDir".into(), json!({}));
    }
}

/// Only Pods, not pod templates: limits imply requests, host networking implies host ports.
fn pod(map: &mut Fields) {
    let Some(Value::Object(spec)) = map.get_mut("spec") else { return };
    let host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers"] {
        let Some(Value::Array(containers)) = spec.get_mut(list) else { continue };
        for container in containers {
            requests_from_limits(container);
            if host_network {
                host_ports(container);
            }
        }
    }
    spec.entry("enableServiceLinks").or_insert(Value::Bool(true));
}

fn requests_from_limits(container: &mut Value) {
    let Some(Value::Object(limits)) = container.pointer("/resources/limits").cloned() else { return };
    let Some(Value::Object(resources)) = container.get_mut("resources") else { return };
    let Value::Object(requests) = resources.entry("requests").or_insert_with(|| json!({})) else { return };
    for (name, amount) in limits {
        requests.entry(name).or_insert(amount);
    }
}

fn host_ports(container: &mut Value) {
    let Some(Value::Array(ports)) = container.get_mut("ports") else { return };
    for port in ports.iter_mut().filter_map(Value::as_object_mut) {
        if let Some(number) = port.get("containerPort").cloned() {
            port.entry("hostPort").or_insert(number);
        }
    }
}

fn namespace(map: &mut Fields) {
    let Some(Value::Object(metadata)) = map.get_mut("metadata") else { return };
    let Some(name) = metadata.get("name").cloned() else { return };
    if let Value::Object(labels) = metadata.entry("labels").or_insert_with(|| json!({})) {
        labels.insert("kubernetes.io/metadata.name".into(), name);
    }
}

fn service(map: &mut Fields) {
    let kind = text(map, "type").to_owned();
    match text(map, "sessionAffinity") {
        "None" => {
            map.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let given = map.get("sessionAffinityConfig").and_then(|c| c.pointer("/clientIP/timeoutSeconds"));
            if given.is_none() {
                map.insert("sessionAffinityConfig".into(), json!({"clientIP": {"timeoutSeconds": 10_800}}));
            }
        }
        _ => {}
    }
    let external_ips = map.get("externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty());
    let external = matches!(&*kind, "NodePort" | "LoadBalancer") || (kind == "ClusterIP" && external_ips);
    if external && text(map, "externalTrafficPolicy").is_empty() {
        map.insert("externalTrafficPolicy".into(), "Cluster".into());
    }
    if matches!(&*kind, "NodePort" | "LoadBalancer" | "ClusterIP") {
        map.entry("internalTrafficPolicy").or_insert_with(|| "Cluster".into());
        families(map);
    }
    if kind == "LoadBalancer" {
        map.entry("allocateLoadBalancerNodePorts").or_insert(Value::Bool(true));
    }
}

/// The address families of a cluster that has IPv4 only. A headless service without a selector may have
/// endpoints of any family.
fn families(map: &mut Fields) {
    let no_selector = map.get("selector").and_then(Value::as_object).is_none_or(Map::is_empty);
    let dual = text(map, "clusterIP") == "None" && no_selector;
    if dual && !map.contains_key("ipFamilyPolicy") && !map.contains_key("ipFamilies") {
        map.insert("ipFamilies".into(), json!(["IPv4", "IPv6"]));
        map.insert("ipFamilyPolicy".into(), "RequireDualStack".into());
        return;
    }
    map.entry("ipFamilies").or_insert_with(|| json!(["IPv4"]));
    map.entry("ipFamilyPolicy").or_insert_with(|| "SingleStack".into());
}

fn target_port(map: &mut Fields) {
    let unset = map.get("targetPort").is_none_or(|t| *t == 0 || *t == "");
    if let (true, Some(port)) = (unset, map.get("port").cloned()) {
        map.insert("targetPort".into(), port);
    }
}

fn load_balancer_ingress(map: &mut Fields) {
    if map.get("spec").and_then(|s| s.get("type")) != Some(&Value::from("LoadBalancer")) {
        return;
    }
    let ingress = map.get_mut("status").and_then(|s| s.pointer_mut("/loadBalancer/ingress"));
    for point in ingress.and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
    {
        if !text(point, "ip").is_empty() {
            point.entry("ipMode").or_insert_with(|| "VIP".into());
        }
    }
}

fn rolling_update(map: &mut Fields) {
    if text(map, "type") != "RollingUpdate" {
        return;
    }
    if let Value::Object(parameters) = map.entry("rollingUpdate").or_insert_with(|| json!({})) {
        parameters.entry("maxUnavailable").or_insert_with(|| "25%".into());
        parameters.entry("maxSurge").or_insert_with(|| "25%".into());
    }
}

fn subject(map: &mut Fields) {
    if text(map, "apiGroup").is_empty() && matches!(text(map, "kind"), "User" | "Group") {
        map.insert("apiGroup".into(), "rbac.authorization.k8s.io".into());
    }
}

/// Names follow from the kind, and the storage version counts as stored from the start.
fn definition(map: &mut Fields) {
    let mut stored: Vec<Value> = Vec::new();
    if let Some(Value::Object(spec)) = map.get_mut("spec") {
        spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
        if let Some(Value::Object(names)) = spec.get_mut("names") {
            definition_names(names);
        }
        let versions = spec.get("versions").and_then(Value::as_array).into_iter().flatten();
        let storage = versions.filter(|v| v.get("storage") == Some(&Value::Bool(true)));
        stored.extend(storage.filter_map(|v| v.get("name").cloned()));
    }
    let Some(Value::Object(status)) = map.get_mut("status") else { return };
    let none = status.get("storedVersions").and_then(Value::as_array).is_none_or(Vec::is_empty);
    if none && !stored.is_empty() {
        status.insert("storedVersions".into(), stored.into());
    }
}

fn definition_names(names: &mut Fields) {
    let kind = text(names, "kind").to_owned();
    if kind.is_empty() {
        return;
    }
    if text(names, "singular").is_empty() {
        names.insert("singular".into(), kind.to_lowercase().into());
    }
    if text(names, "listKind").is_empty() {
        names.insert("listKind".into(), format!("{kind}List").into());
    }
}

fn node_status(map: &mut Fields) {
    round_resources(map, &["capacity", "allocatable"]);
    if let (false, Some(capacity)) = (map.contains_key("allocatable"), map.get("capacity").cloned()) {
        map.insert("allocatable".into(), capacity);
    }
}

/// Limits of containers: the maximum is the default limit, the default limit or the minimum the default request.
fn limit_range_item(map: &mut Fields) {
    round_resources(map, &["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"]);
    if text(map, "type") != "Container" {
        return;
    }
    for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        let source = map.get(from).and_then(Value::as_object).cloned().unwrap_or_default();
        if let Value::Object(target) = map.entry(to).or_insert_with(|| json!({})) {
            for (name, amount) in source {
                target.entry(name).or_insert(amount);
            }
        }
    }
    // Go leaves out empty maps.
    for list in ["default", "defaultRequest"] {
        if map.get(list).and_then(Value::as_object).is_some_and(Map::is_empty) {
            map.remove(list);
        }
    }
}

fn policy_types(map: &mut Fields) {
    let empty = |map: &Fields, key: &str| map.get(key).and_then(Value::as_array).is_none_or(Vec::is_empty);
    if empty(map, "policyTypes") {
        let types = if empty(map, "egress") { json!(["Ingress"]) } else { json!(["Ingress", "Egress"]) };
        map.insert("policyTypes".into(), types);
    }
}

fn exact_count(map: &mut Fields) {
    let none = map.get("count").is_none_or(|count| *count == 0);
    if text(map, "allocationMode") == "ExactCount" && none {
        map.insert("count".into(), 1.into());
    }
}
