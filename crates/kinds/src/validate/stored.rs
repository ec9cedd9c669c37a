//! Workloads besides Deployments, volumes, ingresses, autoscalers, budgets, quotas: the fields that matter most.

use super::At;
use super::workload::{pod_template, selected_template, unchanged_selector};
use serde_json::{Value, json};
use transom_object::field::Error;
use transom_object::labels::validate_label_selector;
use transom_object::names;
use transom_object::quantity::Quantity;

pub(super) fn daemon_set(object: &At<'_>, old: Option<&Value>, errors: &mut Vec<Error>) {
    let spec = object.get("spec");
    selected_template(&spec, "daemonset", errors);
    spec.get("minReadySeconds").not_negative(errors);
    spec.get("revisionHistoryLimit").not_negative(errors);
    unchanged_selector(&spec, old, errors);
}

/// What may change in the spec of a StatefulSet, as its error lists it.
const STATEFUL_CHANGES: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

pub(super) fn stateful_set(object: &At<'_>, old: Option<&Value>, errors: &mut Vec<Error>) {
    let spec = object.get("spec");
    let policy = spec.get("podManagementPolicy");
    match policy.str() {
        "" => errors.push(Error::required(&policy.path, "")),
        "OrderedReady" | "Parallel" => {}
        _ => policy.invalid(vec!["must be 'OrderedReady' or 'Parallel'".into()], errors),
    }
    spec.get("replicas").not_negative(errors);
    spec.get("minReadySeconds").not_negative(errors);
    selected_template(&spec, "statefulset", errors);
    let Some(before) = old.and_then(|old| old.get("spec")) else { return };
    let changeable = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let rest = |value: &Value| {
        let mut rest = value.clone();
        if let Some(map) = rest.as_object_mut() {
            map.retain(|key, _| !changeable.contains(&key.as_str()));
        }
        rest
    };
    if rest(spec.value) != rest(before) {
        errors.push(Error::forbidden(&spec.path, STATEFUL_CHANGES));
    }
}

pub(super) fn replication_controller(object: &At<'_>, errors: &mut Vec<Error>) {
    let spec = object.get("spec");
    spec.get("minReadySeconds").not_negative(errors);
    let selector = spec.get("selector");
    if selector.entries().next().is_none() {
        errors.push(Error::required(&selector.path, ""));
    }
    spec.get("replicas").not_negative(errors);
    let template = spec.get("template");
    if template.is_null() {
        errors.push(Error::required(&template.path, ""));
        return;
    }
    let labels = template.value.pointer("/metadata/labels").unwrap_or(&Value::Null);
    if selector.entries().any(|(key, value)| labels.get(key) != Some(value)) {
        let path = template.path.child("metadata").child("labels");
        errors.push(Error::invalid(&path, labels.clone(), "`selector` does not match template `labels`"));
    }
    pod_template(&template, errors);
    template.get("spec").get("restartPolicy").one_of(&["Always"], errors);
}

pub(super) fn job(object: &At<'_>, old: Option<&Value>, errors: &mut Vec<Error>) {
    let spec = object.get("spec");
    job_spec(&spec, errors);
    if let Some(old) = old {
        spec.get("selector").immutable(old.pointer("/spec/selector").unwrap_or(&Value::Null), errors);
        spec.get("completionMode")
            .immutable(old.pointer("/spec/completionMode").unwrap_or(&Value::Null), errors);
    }
}

fn job_spec(spec: &At<'_>, errors: &mut Vec<Error>) {
    for count in
        ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"]
    {
        spec.get(count).not_negative(errors);
    }
    let template = spec.get("template");
    pod_template(&template, errors);
    let restart = template.get("spec").get("restartPolicy");
    match restart.str() {
        "Always" => errors.push(Error::required(&restart.path, "valid values: \"OnFailure\", \"Never\"")),
        "OnFailure" | "Never" | "" => {}
        _ => restart.one_of(&["OnFailure", "Never"], errors),
    }
}

pub(super) fn cron_job(object: &At<'_>, errors: &mut Vec<Error>) {
    let spec = object.get("spec");
    let schedule = spec.get("schedule");
    if schedule.str().is_empty() {
        errors.push(Error::required(&schedule.path, ""));
    } else if let Some(why) = cron_problem(schedule.str()) {
        schedule.invalid(vec![why], errors);
    }
    spec.get("startingDeadlineSeconds").not_negative(errors);
    spec.get("concurrencyPolicy").one_of(&["Allow", "Forbid", "Replace"], errors);
    job_spec(&spec.get("jobTemplate").get("spec"), errors);
    spec.get("successfulJobsHistoryLimit").not_negative(errors);
    spec.get("failedJobsHistoryLimit").not_negative(errors);
}

/// What is wrong with a schedule, as the parser that Kubernetes uses reports it; only the number of its fields.
fn cron_problem(schedule: &str) -> Option<String> {
    if schedule.starts_with('@') {
        return None;
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    let found = fields.len();
    (found != 5).then(|| format!("expected exactly 5 fields, found {found}: [{}]", fields.join(" ")))
}

pub(super) fn ingress(object: &At<'_>, errors: &mut Vec<Error>) {
    let spec = object.get("spec");
    let (rules, backend) = (spec.get("rules"), spec.get("defaultBackend"));
    if rules.items().len() == 0 && backend.is_null() {
        let why = "either `defaultBackend` or `rules` must be specified";
        errors.push(Error::invalid(&spec.path, Value::Null, why));
    }
    if !backend.is_null() {
        ingress_backend(&backend, errors);
    }
    for rule in rules.items() {
        let host = rule.get("host");
        if !host.str().is_empty() && !host.str().contains('*') {
            host.invalid(names::is_dns1123_subdomain(host.str()), errors);
        }
        let http = rule.get("http");
        if http.is_null() {
            continue;
        }
        let paths = http.get("paths");
        if paths.items().len() == 0 {
            errors.push(Error::required(&paths.path, ""));
        }
        for path in paths.items() {
            ingress_path(&path, errors);
        }
    }
}

fn ingress_path(rule: &At<'_>, errors: &mut Vec<Error>) {
    let (path, kind) = (rule.get("path"), rule.get("pathType"));
    if kind.is_null() {
        errors.push(Error::required(&kind.path, "pathType must be specified"));
        return;
    }
    match kind.str() {
        "Exact" | "Prefix" if !path.str().starts_with('/') => {
            path.invalid(vec!["must be an absolute path".into()], errors);
        }
        "Exact" | "Prefix" | "ImplementationSpecific" => {}
        _ => kind.one_of(&["Exact", "ImplementationSpecific", "Prefix"], errors),
    }
    ingress_backend(&rule.get("backend"), errors);
}

fn ingress_backend(backend: &At<'_>, errors: &mut Vec<Error>) {
    let (service, resource) = (backend.get("service"), backend.get("resource"));
    if !resource.is_null() {
        if !service.is_null() {
            let why = "cannot set both resource and service backends";
            errors.push(Error::invalid(&backend.path, "", why));
        }
        return;
    }
    if service.is_null() {
        errors.push(Error::invalid(&backend.path, "", "resource or service backend is required"));
        return;
    }
    match service.get("name").str() {
        "" => errors.push(Error::required(&service.path.child("name"), "")),
        name => service.get("name").invalid(names::is_dns1035_label(name), errors),
    }
    let port = service.get("port");
    let (name, number) = (port.text("name"), port.int("number").unwrap_or(0));
    if name.is_empty() && number == 0 {
        errors.push(Error::required(&backend.path, "port name or number is required"));
    } else if !name.is_empty() && number != 0 {
        errors.push(Error::invalid(&backend.path, "", "cannot set both port name & port number"));
    } else if number != 0 {
        port.get("number").invalid(names::is_port_num(number), errors);
    }
}

pub(super) fn network_policy(object: &At<'_>, errors: &mut Vec<Error>) {
    let spec = object.get("spec");
    let selector = spec.get("podSelector");
    errors.extend(validate_label_selector(selector.value, &selector.path));
    for kind in spec.get("policyTypes").items() {
        kind.one_of(&["Ingress", "Egress"], errors);
    }
}

pub(super) fn disruption_budget(object: &At<'_>, errors: &mut Vec<Error>) {
    let spec = object.get("spec");
    let (least, most) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if !least.is_null() && !most.is_null() {
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.push(Error::invalid(&spec.path, "", why));
    }
    for bound in [&least, &most] {
        match bound.value {
            Value::String(percent) => bound.invalid(names::is_percent(percent), errors),
            _ => bound.not_negative(errors),
        }
    }
    let selector = spec.get("selector");
    errors.extend(validate_label_selector(selector.value, &selector.path));
}

pub(super) fn autoscaler(object: &At<'_>, errors: &mut Vec<Error>) {
    let spec = object.get("spec");
    let (least, most) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    least.at_least(1, "must be greater than or equal to 1", errors);
    let max = most.value.as_i64().unwrap_or(0);
    if max < 1 {
        errors.push(Error::required(&most.path, "must be set and greater than 0"));
    }
    if least.value.as_i64().is_some_and(|min| max < min) {
        errors.push(Error::invalid(&most.path, max, "must be greater than or equal to `minReplicas`"));
    }
    let target = spec.get("scaleTargetRef");
    for field in ["kind", "name"] {
        if target.text(field).is_empty() {
            errors.push(Error::required(&target.path.child(field), ""));
        }
    }
    if !target.text("apiVersion").contains('/') && target.text("kind") != "ReplicationController" {
        let (path, value) = (target.path.child("apiVersion"), target.text("apiVersion"));
        errors.push(Error::invalid(&path, value, "apiVersion must specify API group"));
    }
}

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

fn access_modes(spec: &At<'_>, required: &str, errors: &mut Vec<Error>) {
    let modes = spec.get("accessModes");
    if modes.items().len() == 0 {
        errors.push(Error::required(&modes.path, required));
    }
    for mode in modes.items() {
        if !ACCESS_MODES.contains(&mode.str()) {
            errors.push(Error::not_supported(&modes.path, mode.str(), &ACCESS_MODES));
        }
    }
}

pub(super) fn volume_claim(object: &At<'_>, old: Option<&Value>, errors: &mut Vec<Error>) {
    let spec = object.get("spec");
    access_modes(&spec, "at least 1 access mode is required", errors);
    let storage = spec.get("resources").get("requests").get("storage");
    if storage.is_null() {
        errors.push(Error::required(&spec.path.child("resources").key("storage"), ""));
    } else if Quantity::parse(storage.str()).is_ok_and(|q| Quantity::parse("0").is_ok_and(|zero| q <= zero)) {
        let path = spec.path.child("resources").key("storage");
        errors.push(Error::invalid(&path, storage.str(), "must be greater than zero"));
    }
    let Some(before) = old.and_then(|old| old.get("spec")) else { return };
    let rest = |value: &Value| {
        let mut rest = value.clone();
        if let Some(map) = rest.as_object_mut() {
            map.retain(|key, _| {
                !matches!(key.as_str(), "resources" | "volumeName" | "volumeAttributesClassName")
            });
        }
        rest
    };
    if rest(spec.value) != rest(before) {
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.push(Error::forbidden(&spec.path, why));
    }
}

const VOLUME_SOURCES: &[&str] = &[
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "csi",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

pub(super) fn volume(object: &At<'_>, errors: &mut Vec<Error>) {
    let spec = object.get("spec");
    access_modes(&spec, "", errors);
    let capacity = spec.get("capacity");
    if capacity.entries().next().is_none() {
        errors.push(Error::required(&capacity.path, ""));
    }
    if capacity.get("storage").is_null() || capacity.entries().count() > 1 {
        let shown = if capacity.is_null() { json!({}) } else { capacity.value.clone() };
        errors.push(Error::not_supported(&capacity.path, shown, &["storage"]));
    }
    let sources = VOLUME_SOURCES.iter().filter(|source| !spec.get(source).is_null()).count();
    if sources == 0 {
        errors.push(Error::required(&spec.path, "must specify a volume type"));
    }
    let policy = spec.get("persistentVolumeReclaimPolicy");
    policy.one_of(&["Delete", "Recycle", "Retain"], errors);
}

pub(super) fn storage_class(object: &At<'_>, old: Option<&Value>, errors: &mut Vec<Error>) {
    if object.text("provisioner").is_empty() {
        errors.push(Error::required(&object.path.child("provisioner"), ""));
    }
    object.get("volumeBindingMode").one_of(&["Immediate", "WaitForFirstConsumer"], errors);
    object.get("reclaimPolicy").one_of(&["Delete", "Retain"], errors);
    let Some(old) = old else { return };
    for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        object.get(field).immutable(old.get(field).unwrap_or(&Value::Null), errors);
    }
}

/// The highest value that users may give; above are the classes of the system.
const MAX_PRIORITY: i64 = 1_000_000_000;

pub(super) fn priority_class(object: &At<'_>, old: Option<&Value>, errors: &mut Vec<Error>) {
    let value = object.get("value");
    let name = object.value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if name.starts_with("system-") {
        let known = ["system-cluster-critical", "system-node-critical"];
        if !known.contains(&name) {
            let path = object.path.child("metadata").child("name");
            let why = "priority class names with 'system-' prefix are reserved for system use only. error: system- is not a known system priority class";
            errors.push(Error::forbidden(&path, why));
        }
    } else if value.value.as_i64().is_some_and(|v| v > MAX_PRIORITY) {
        errors.push(Error::forbidden(
            &value.path,
            format!("maximum allowed value of a user defined priority is {MAX_PRIORITY}"),
        ));
    }
    if old.is_some_and(|old| old.get("value").and_then(Value::as_i64) != value.value.as_i64()) {
        errors.push(Error::forbidden(&value.path, "may not be changed in an update."));
    }
}

pub(super) fn resource_quota(object: &At<'_>, old: Option<&Value>, errors: &mut Vec<Error>) {
    let spec = object.get("spec");
    let hard = spec.get("hard");
    for (name, amount) in hard.entries() {
        let path = hard.path.key(name);
        let negative = amount.as_str().is_some_and(|a| a.starts_with('-'));
        if negative {
            errors.push(Error::invalid(&path, amount.clone(), "must be greater than or equal to 0"));
        }
    }
    if let Some(old) = old
        && spec.value.get("scopes") != old.pointer("/spec/scopes")
    {
        let scopes = spec.get("scopes");
        errors.push(Error::invalid(&scopes.path, scopes.value.clone(), "field is immutable"));
    }
}

pub(super) fn limit_range(object: &At<'_>, errors: &mut Vec<Error>) {
    let limits = object.get("spec").get("limits");
    let mut seen = std::collections::BTreeSet::new();
    for limit in limits.items() {
        let kind = limit.get("type");
        if !seen.insert(kind.str()) {
            errors.push(Error::duplicate(&kind.path, kind.str()));
        }
        if kind.str() == "Pod" {
            for field in ["default", "defaultRequest"] {
                if limit.get(field).entries().next().is_some() {
                    let why = "may not be specified when `type` is 'Pod'";
                    errors.push(Error::forbidden(&limit.path.child(field), why));
                }
            }
        }
        for (name, most) in limit.get("max").entries() {
            let least = limit.get("min").value.get(name).and_then(Value::as_str).unwrap_or_default();
            let most = most.as_str().unwrap_or_default();
            let (Ok(least_q), Ok(most_q)) = (Quantity::parse(least), Quantity::parse(most)) else { continue };
            if least_q > most_q {
                let path = limit.path.child("min").key(name);
                let why = format!("min value {least} is greater than max value {most}");
                errors.push(Error::invalid(&path, least, why));
            }
        }
    }
}

pub(super) fn endpoint_slice(object: &At<'_>, old: Option<&Value>, errors: &mut Vec<Error>) {
    let kind = object.get("addressType");
    if kind.str().is_empty() {
        errors.push(Error::required(&kind.path, ""));
    } else {
        kind.one_of(&["FQDN", "IPv4", "IPv6"], errors);
    }
    for endpoint in object.get("endpoints").items() {
        let addresses = endpoint.get("addresses");
        if addresses.items().len() == 0 {
            errors.push(Error::required(&addresses.path, "must contain at least 1 address"));
        }
    }
    if let Some(old) = old {
        kind.immutable(old.get("addressType").unwrap_or(&Value::Null), errors);
    }
}
