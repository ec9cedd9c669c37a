//! Deployments, ReplicaSets and the pods they describe.

use super::At;
use super::service::port_or_name;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use transom_object::field::Error;
use transom_object::labels::{Labels, Selector, validate_label, validate_label_selector};
use transom_object::quantity::Quantity;
use transom_object::{meta, names};

pub(super) fn deployment(object: &At<'_>, old: Option<&Value>, errors: &mut Vec<Error>) {
    let spec = object.get("spec");
    spec.get("replicas").not_negative(errors);
    selected_template(&spec, "deployment", errors);
    strategy(&spec.get("strategy"), errors);
    spec.get("minReadySeconds").not_negative(errors);
    spec.get("revisionHistoryLimit").not_negative(errors);
    let deadline = spec.get("progressDeadlineSeconds");
    deadline.not_negative(errors);
    if deadline.value.as_i64().is_some_and(|d| d <= spec.int("minReadySeconds").unwrap_or_default()) {
        deadline.invalid(vec!["must be greater than minReadySeconds".into()], errors);
    }
    unchanged_selector(&spec, old, errors);
}

/// Counts are not negative, and none of the parts is more than the whole.
pub(super) fn deployment_status(status: &At<'_>, errors: &mut Vec<Error>) {
    let counts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    for name in ["observedGeneration", "replicas"].into_iter().chain(counts).chain([
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ]) {
        status.get(name).not_negative(errors);
    }
    let count = |name: &str| status.int(name).unwrap_or(0);
    for name in counts.into_iter().filter(|name| count(name) > count("replicas")) {
        let why = "cannot be greater than status.replicas";
        errors.push(Error::invalid(&status.path.child(name), count(name), why));
    }
    if count("availableReplicas") > count("readyReplicas") {
        let path = status.path.child("availableReplicas");
        errors.push(Error::invalid(
            &path,
            count("availableReplicas"),
            "cannot be greater than readyReplicas",
        ));
    }
}

pub(super) fn replica_set(object: &At<'_>, old: Option<&Value>, errors: &mut Vec<Error>) {
    let spec = object.get("spec");
    spec.get("replicas").not_negative(errors);
    spec.get("minReadySeconds").not_negative(errors);
    selected_template(&spec, "replicaset", errors);
    unchanged_selector(&spec, old, errors);
}

pub(super) fn unchanged_selector(spec: &At<'_>, old: Option<&Value>, errors: &mut Vec<Error>) {
    if let Some(old) = old {
        spec.get("selector").immutable(old.pointer("/spec/selector").unwrap_or(&Value::Null), errors);
    }
}

/// The selector must select the pods of the template.
pub(super) fn selected_template(spec: &At<'_>, owner: &str, errors: &mut Vec<Error>) {
    let selector = spec.get("selector");
    if selector.is_null() {
        errors.push(Error::required(&selector.path, ""));
    } else {
        errors.extend(validate_label_selector(selector.value, &selector.path));
        if *selector.value == json!({}) {
            selector.invalid(vec![format!("empty selector is invalid for {owner}")], errors);
        }
    }
    let template = spec.get("template");
    match Selector::from_label_selector(selector.value) {
        Err(_) => selector.invalid(vec!["invalid label selector".into()], errors),
        Ok(parsed) => {
            let labels: Labels = meta::labels(template.value);
            if !parsed.is_everything() && !parsed.matches(&labels) {
                let path = template.path.child("metadata").child("labels");
                let shown = template.value.pointer("/metadata/labels").cloned().unwrap_or_default();
                errors.push(Error::invalid(&path, shown, "`selector` does not match template `labels`"));
            }
            pod_template(&template, errors);
            template.get("spec").get("restartPolicy").one_of(&["Always"], errors);
            let deadline = template.get("spec").get("activeDeadlineSeconds");
            if !deadline.is_null() {
                let why = "activeDeadlineSeconds in ReplicaSet is not Supported";
                errors.push(Error::forbidden(&deadline.path, why));
            }
        }
    }
}

fn strategy(strategy: &At<'_>, errors: &mut Vec<Error>) {
    let update = strategy.get("rollingUpdate");
    match strategy.text("type") {
        "Recreate" if !update.is_null() => {
            errors.push(Error::forbidden(
                &update.path,
                "may not be specified when strategy `type` is 'Recreate'",
            ));
        }
        "Recreate" => {}
        "RollingUpdate" => rolling_update(&update, errors),
        other => {
            let shown = json!({"Type": other, "RollingUpdate": null});
            errors.push(Error::not_supported(&strategy.path, shown, &["Recreate", "RollingUpdate"]));
        }
    }
}

fn rolling_update(update: &At<'_>, errors: &mut Vec<Error>) {
    let (unavailable, surge) = (update.get("maxUnavailable"), update.get("maxSurge"));
    for bound in [&unavailable, &surge] {
        match bound.value {
            Value::String(percent) => bound.invalid(names::is_percent(percent), errors),
            _ => bound.not_negative(errors),
        }
    }
    if amount(unavailable.value) == 0 && amount(surge.value) == 0 {
        unavailable.invalid(vec!["may not be 0 when `maxSurge` is 0".into()], errors);
    }
    let percent = unavailable.value.as_str().and_then(|p| p.strip_suffix('%')?.parse::<i64>().ok());
    if percent.is_some_and(|p| p > 100) {
        unavailable.invalid(vec!["must not be greater than 100%".into()], errors);
    }
}

/// The number in an absolute or a percentage; 0 for what is neither.
fn amount(value: &Value) -> i64 {
    let percent = || value.as_str()?.strip_suffix('%')?.parse().ok();
    value.as_i64().or_else(percent).unwrap_or_default()
}

pub(super) fn pod_template(template: &At<'_>, errors: &mut Vec<Error>) {
    let labels = template.get("metadata").get("labels");
    for (key, value) in labels.entries() {
        errors.extend(validate_label(key, value.as_str().unwrap_or_default(), &labels.path));
    }
    pod_spec(&template.get("spec"), errors);
}

pub(super) fn pod(object: &At<'_>, errors: &mut Vec<Error>) {
    pod_spec(&object.get("spec"), errors);
}

fn pod_spec(spec: &At<'_>, errors: &mut Vec<Error>) {
    let volumes = volumes(&spec.get("volumes"), errors);
    let containers = spec.get("containers");
    if containers.items().len() == 0 {
        errors.push(Error::required(&containers.path, ""));
    }
    let mut names = BTreeSet::new();
    for list in ["containers", "initContainers"] {
        for c in spec.get(list).items() {
            container(&c, &volumes, &mut names, errors);
        }
    }
    let restart = spec.get("restartPolicy");
    if restart.str().is_empty() {
        errors.push(Error::required(&restart.path, ""));
    } else if !["Always", "Never", "OnFailure"].contains(&restart.str()) {
        restart.one_of(&["Always", "OnFailure", "Never"], errors);
    }
    spec.get("terminationGracePeriodSeconds").not_negative(errors);
}

const VOLUME_SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

fn volumes<'a>(volumes: &At<'a>, errors: &mut Vec<Error>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    for volume in volumes.items() {
        // The first source in upstream's order is the one; each further one is too many.
        let sources = VOLUME_SOURCES.iter().filter(|source| !volume.get(source).is_null());
        errors.extend(sources.skip(1).map(|source| {
            let path = volume.path.child(if *source == "downwardAPI" { "downwarAPI" } else { source });
            Error::forbidden(&path, "may not specify more than 1 volume type")
        }));
        let name = volume.get("name");
        label_name(&name, errors);
        if !name.str().is_empty() && !seen.insert(name.str()) {
            errors.push(Error::duplicate(&name.path, name.str()));
        }
    }
    seen
}

/// A name that must be there and be a DNS label.
fn label_name(name: &At<'_>, errors: &mut Vec<Error>) {
    match name.str() {
        "" => errors.push(Error::required(&name.path, "")),
        text => name.invalid(names::is_dns1123_label(text), errors),
    }
}

fn container<'a>(
    container: &At<'a>,
    volumes: &BTreeSet<&str>,
    names: &mut BTreeSet<&'a str>,
    errors: &mut Vec<Error>,
) {
    let name = container.get("name");
    label_name(&name, errors);
    if !name.str().is_empty() && !names.insert(name.str()) {
        errors.push(Error::duplicate(&name.path, name.str()));
    }
    if container.text("image").is_empty() {
        errors.push(Error::required(&container.path.child("image"), ""));
    }
    ports(&container.get("ports"), errors);
    for variable in container.get("env").items() {
        let name = variable.get("name");
        match name.str() {
            "" => errors.push(Error::required(&name.path, "")),
            text => name.invalid(names::is_relaxed_env_var_name(text), errors),
        }
    }
    for mount in container.get("volumeMounts").items() {
        let name = mount.get("name");
        match name.str() {
            "" => errors.push(Error::required(&name.path, "")),
            text if !volumes.contains(text) => errors.push(Error::not_found(&name.path, text)),
            _ => {}
        }
        if mount.text("mountPath").is_empty() {
            errors.push(Error::required(&mount.path.child("mountPath"), ""));
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let action = container.get(probe).get("httpGet");
        if !action.is_null() {
            port_or_name(&action.get("port"), errors);
        }
    }
    let policy = container.get("imagePullPolicy");
    policy.one_of(&["Always", "IfNotPresent", "Never"], errors);
    resources(&container.get("resources"), errors);
}

fn ports(ports: &At<'_>, errors: &mut Vec<Error>) {
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        let name = port.get("name");
        if !name.str().is_empty() {
            name.invalid(names::is_port_name(name.str()), errors);
            if names::is_port_name(name.str()).is_empty() && !seen.insert(name.str()) {
                errors.push(Error::duplicate(&name.path, name.str()));
            }
        }
        let number = port.get("containerPort");
        match number.value.as_i64() {
            None | Some(0) => errors.push(Error::required(&number.path, "")),
            Some(n) => number.invalid(names::is_port_num(n), errors),
        }
        let host = port.get("hostPort");
        if let Some(n) = host.value.as_i64().filter(|n| *n != 0) {
            host.invalid(names::is_port_num(n), errors);
        }
        port.get("protocol").one_of(&["SCTP", "TCP", "UDP"], errors);
    }
}

/// A request must not exceed the limit.
fn resources(resources: &At<'_>, errors: &mut Vec<Error>) {
    let (limits, requests) = (resources.get("limits"), resources.get("requests"));
    for (name, request) in requests.entries() {
        let limit = limits.text(name);
        let request = request.as_str().unwrap_or_default();
        let (Ok(wanted), Ok(allowed)) = (Quantity::parse(request), Quantity::parse(limit)) else { continue };
        if wanted > allowed {
            let why = format!("must be less than or equal to {name} limit of {limit}");
            errors.push(Error::invalid(&requests.path, request, why));
        }
    }
}
