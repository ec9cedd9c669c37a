//! LimitRanges: what they fill into pods, and what they refuse.

use crate::quota::{Amounts, amounts};
use serde_json::{Value, json};
use transom_object::quantity::Quantity;

fn items<'a>(range: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    range["spec"]["limits"].as_array().into_iter().flatten().filter(move |item| item["type"] == kind)
}

/// Fills limits and requests of containers that give none. Returns whether it changed the pod.
pub fn fill_pod(range: &Value, pod: &mut Value) -> bool {
    let mut changed = false;
    for item in items(range, "Container") {
        for list in ["containers", "initContainers"] {
            let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                changed |= fill(container, "limits", &item["default"]);
                changed |= fill(container, "requests", &item["defaultRequest"]);
            }
        }
    }
    changed
}

fn fill(container: &mut Value, field: &str, defaults: &Value) -> bool {
    let mut changed = false;
    for (name, amount) in defaults.as_object().into_iter().flatten() {
        if container["resources"][field].get(name).is_none() {
            if !container["resources"].is_object() {
                container["resources"] = json!({});
            }
            container["resources"][field][name] = amount.clone();
            changed = true;
        }
    }
    changed
}

/// What a LimitRange refuses of a pod, in Kubernetes' words.
pub fn check_pod(range: &Value, pod: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    let containers = || {
        ["containers", "initContainers"]
            .into_iter()
            .flat_map(move |list| pod["spec"][list].as_array().into_iter().flatten())
    };
    for item in items(range, "Container") {
        for container in containers() {
            let resources = &container["resources"];
            bounds(
                item,
                "Container",
                &amounts(&resources["requests"]),
                &amounts(&resources["limits"]),
                &mut errors,
            );
        }
    }
    for item in items(range, "Pod") {
        let sum = |field: &str| {
            let mut total = Amounts::new();
            for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
                for (name, amount) in amounts(&container["resources"][field]) {
                    let sum =
                        total.get(&name).and_then(|t: &Quantity| t.checked_add(&amount)).unwrap_or(amount);
                    total.insert(name, sum);
                }
            }
            total
        };
        bounds(item, "Pod", &sum("requests"), &sum("limits"), &mut errors);
    }
    errors
}

/// What a LimitRange refuses of a claim of a volume.
pub fn check_claim(range: &Value, claim: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    let requests = amounts(&claim["spec"]["resources"]["requests"]);
    for item in items(range, "PersistentVolumeClaim") {
        for (name, least) in amounts(&item["min"]) {
            if requests.get(&name).is_none_or(|amount| *amount < least) {
                errors.push(below("PersistentVolumeClaim", &name, &least, requests.get(&name), "request"));
            }
        }
        for (name, most) in amounts(&item["max"]) {
            match requests.get(&name) {
                Some(amount) if *amount <= most => {}
                amount => errors.push(above("PersistentVolumeClaim", &name, &most, amount, "request")),
            }
        }
    }
    errors
}

fn below(kind: &str, name: &str, least: &Quantity, found: Option<&Quantity>, what: &str) -> String {
    let least = least.canonical();
    match found {
        None => format!("minimum {name} usage per {kind} is {least}.  No {what} is specified"),
        Some(found) => {
            format!("minimum {name} usage per {kind} is {least}, but {what} is {}", found.canonical())
        }
    }
}

fn above(kind: &str, name: &str, most: &Quantity, found: Option<&Quantity>, what: &str) -> String {
    let most = most.canonical();
    match found {
        None => format!("maximum {name} usage per {kind} is {most}.  No {what} is specified"),
        Some(found) => {
            format!("maximum {name} usage per {kind} is {most}, but {what} is {}", found.canonical())
        }
    }
}

fn bounds(item: &Value, kind: &str, requests: &Amounts, limits: &Amounts, errors: &mut Vec<String>) {
    for (name, least) in amounts(&item["min"]) {
        match (requests.get(&name), limits.get(&name)) {
            (Some(request), _) if *request < least => {
                errors.push(below(kind, &name, &least, Some(request), "request"));
            }
            (_, Some(limit)) if *limit < least => {
                errors.push(below(kind, &name, &least, Some(limit), "limit"));
            }
            (None, _) => errors.push(below(kind, &name, &least, None, "request")),
            _ => {}
        }
    }
    for (name, most) in amounts(&item["max"]) {
        match (limits.get(&name), requests.get(&name)) {
            (Some(limit), _) if *limit > most => errors.push(above(kind, &name, &most, Some(limit), "limit")),
            (_, Some(request)) if *request > most => {
                errors.push(above(kind, &name, &most, Some(request), "request"));
            }
            (None, _) => errors.push(above(kind, &name, &most, None, "limit")),
            _ => {}
        }
    }
    for (name, ratio) in amounts(&item["maxLimitRequestRatio"]) {
        let (Some(limit), Some(request)) = (limits.get(&name), requests.get(&name)) else {
            errors.push(format!("{name} max limit to request ratio per {kind} is {}, but no request is specified or request is 0", ratio.canonical()));
            continue;
        };
        let actual = limit.as_f64() / request.as_f64();
        if actual > ratio.as_f64() {
            let ratio = ratio.canonical();
            errors.push(format!(
                "{name} max limit to request ratio per {kind} is {ratio}, but provided ratio is {actual:.6}"
            ));
        }
    }
}
