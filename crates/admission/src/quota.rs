//! What objects use of a ResourceQuota. All amounts are quantities; names of resources are those of `spec.hard`.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use transom_object::quantity::{Format, Quantity};

/// Amounts by the name of the resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// The kind of an object that is counted.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural name.
    pub resource: &'a str,
}

/// Resources of the core group that are counted under their own name as well.
const PLAIN: [&str; 8] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "endpoints",
];

/// Whether objects of the kind can count towards a resource of a quota, regardless of their content.
pub fn counts(kind: Counted<'_>, resource: &str) -> bool {
    if resource == count_name(kind) {
        return true;
    }
    if !kind.group.is_empty() {
        return false;
    }
    match kind.resource {
        "pods" => {
            let name = resource.strip_prefix("requests.").or_else(|| resource.strip_prefix("limits."));
            resource == "pods"
                || matches!(resource, "cpu" | "memory" | "ephemeral-storage")
                || name.is_some_and(|n| n != "storage")
        }
        "persistentvolumeclaims" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
                || resource.contains(".storageclass.storage.k8s.io/")
        }
        "services" => matches!(resource, "services" | "services.loadbalancers" | "services.nodeports"),
        plain => PLAIN.contains(&plain) && resource == plain,
    }
}

fn count_name(kind: Counted<'_>) -> String {
    match kind.group {
        "" => format!("count/{}", kind.resource),
        group => format!("count/{}.{group}", kind.resource),
    }
}

/// What one object uses of each resource that it counts towards.
pub fn usage(kind: Counted<'_>, object: &Value) -> Amounts {
    let one = || Quantity::new(1, Format::DecimalSi);
    let mut used = Amounts::from([(count_name(kind), one())]);
    if !kind.group.is_empty() {
        return used;
    }
    if PLAIN.contains(&kind.resource) && !(kind.resource == "pods" && is_finished(object)) {
        used.insert(kind.resource.to_owned(), one());
    }
    match kind.resource {
        "pods" if !is_finished(object) => pod(object, &mut used),
        "services" => service(object, &mut used),
        "persistentvolumeclaims" => claim(object, &mut used),
        _ => {}
    }
    used
}

fn is_finished(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

fn add(used: &mut Amounts, name: String, amount: &Quantity) {
    let sum = used.get(&name).and_then(|before| before.checked_add(amount)).unwrap_or_else(|| amount.clone());
    used.insert(name, sum);
}

/// Requests and limits of all containers; those of init containers where they are more.
fn pod(pod: &Value, used: &mut Amounts) {
    for (field, prefix) in [("requests", "requests."), ("limits", "limits.")] {
        let total = pod_amounts(&pod["spec"], field);
        for (name, amount) in total {
            if field == "requests" && matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
                used.insert(name.clone(), amount.clone());
            }
            used.insert(format!("{prefix}{name}"), amount);
        }
    }
}

fn pod_amounts(spec: &Value, field: &str) -> Amounts {
    let mut total = Amounts::new();
    for container in spec["containers"].as_array().into_iter().flatten() {
        for (name, amount) in amounts(&container["resources"][field]) {
            add(&mut total, name, &amount);
        }
    }
    for container in spec["initContainers"].as_array().into_iter().flatten() {
        for (name, amount) in amounts(&container["resources"][field]) {
            if total.get(&name).is_none_or(|before| *before < amount) {
                total.insert(name, amount);
            }
        }
    }
    total
}

fn service(service: &Value, used: &mut Amounts) {
    let spec = &service["spec"];
    let ports = i64::try_from(spec["ports"].as_array().map_or(0, Vec::len)).unwrap_or(i64::MAX);
    let number = |n: i64| Quantity::new(n, Format::DecimalSi);
    let (balancers, node_ports) = match spec["type"].as_str() {
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => (1, 0),
        Some("LoadBalancer") => (1, ports),
        Some("NodePort") => (0, ports),
        _ => (0, 0),
    };
    used.insert("services.loadbalancers".into(), number(balancers));
    used.insert("services.nodeports".into(), number(node_ports));
}

fn claim(claim: &Value, used: &mut Amounts) {
    let class = claim["spec"]["storageClassName"].as_str().unwrap_or_default();
    if !class.is_empty() {
        let name = format!("{class}.storageclass.storage.k8s.io/persistentvolumeclaims");
        used.insert(name, Quantity::new(1, Format::DecimalSi));
    }
    let Some(size) = amounts(&claim["spec"]["resources"]["requests"]).remove("storage") else { return };
    if !class.is_empty() {
        used.insert(format!("{class}.storageclass.storage.k8s.io/requests.storage"), size.clone());
    }
    used.insert("requests.storage".into(), size);
}

/// The quantities of a map.
pub fn amounts(map: &Value) -> Amounts {
    let entries = map.as_object().into_iter().flatten();
    entries
        .filter_map(|(name, amount)| Some((name.clone(), Quantity::parse(amount.as_str()?).ok()?)))
        .collect()
}

/// The amounts as the JSON of `status.hard` and `status.used`.
pub fn to_value(amounts: &Amounts) -> Value {
    Value::Object(
        amounts.iter().map(|(name, amount)| (name.clone(), amount.canonical().into())).collect::<Map<_, _>>(),
    )
}

/// Whether a quota is for an object: all of its scopes hold.
pub fn in_scope(quota: &Value, kind: Counted<'_>, object: &Value) -> bool {
    let spec = &quota["spec"];
    let scopes = spec["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let pod = kind.group.is_empty() && kind.resource == "pods";
    let expressions = spec["scopeSelector"]["matchExpressions"].as_array().into_iter().flatten();
    let mut all = scopes
        .map(|scope| (scope, None))
        .chain(expressions.filter_map(|e| Some((e["scopeName"].as_str()?, Some(e)))));
    all.all(|(scope, expression)| pod && holds(scope, expression, object))
}

fn holds(scope: &str, expression: Option<&Value>, pod: &Value) -> bool {
    let spec = &pod["spec"];
    let containers = || {
        ["containers", "initContainers"]
            .into_iter()
            .flat_map(move |list| spec[list].as_array().into_iter().flatten())
    };
    let best_effort = || {
        containers().all(|c| {
            amounts(&c["resources"]["requests"]).is_empty() && amounts(&c["resources"]["limits"]).is_empty()
        })
    };
    let terminating = spec["activeDeadlineSeconds"].as_i64().is_some_and(|s| s >= 0);
    match scope {
        "BestEffort" => best_effort(),
        "NotBestEffort" => !best_effort(),
        "Terminating" => terminating,
        "NotTerminating" => !terminating,
        "PriorityClass" => {
            let class = spec["priorityClassName"].as_str().unwrap_or_default();
            let Some(expression) = expression else { return !class.is_empty() };
            let listed =
                expression["values"].as_array().is_some_and(|values| values.iter().any(|v| v == class));
            match expression["operator"].as_str() {
                Some("In") => listed,
                Some("NotIn") => !listed,
                Some("Exists") => !class.is_empty(),
                _ => class.is_empty(),
            }
        }
        _ => false,
    }
}

/// What a change adds to each limited resource of a quota: nothing that it leaves alone or lessens.
pub fn increase(kind: Counted<'_>, hard: &Amounts, new: &Amounts, old: Option<&Amounts>) -> Amounts {
    let mut added = Amounts::new();
    for (name, amount) in new.iter().filter(|(name, _)| hard.contains_key(*name) && counts(kind, name)) {
        let before = old.and_then(|old| old.get(name));
        let difference = before.map_or_else(|| Some(amount.clone()), |before| amount.checked_sub(before));
        if let Some(difference) = difference.filter(|d| d.sign() > 0) {
            added.insert(name.clone(), difference);
        }
    }
    added
}

/// A quota that a request would exceed, in Kubernetes' words. Amounts are lists such as `pods=1,cpu=2`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("exceeded quota: {quota}, requested: {requested}, used: {used}, limited: {limited}")]
pub struct ExceededError {
    /// The name of the ResourceQuota.
    pub quota: String,
    /// What the request adds.
    pub requested: String,
    /// What is used without it.
    pub used: String,
    /// What may be used.
    pub limited: String,
}

/// What a quota must be charged with: its new usage.
pub fn charge(name: &str, hard: &Amounts, used: &Amounts, added: &Amounts) -> Result<Amounts, ExceededError> {
    let mut next = used.clone();
    let mut exceeded = Vec::new();
    for (resource, amount) in added {
        add(&mut next, resource.clone(), amount);
        if hard.get(resource).zip(next.get(resource)).is_some_and(|(hard, next)| next > hard) {
            exceeded.push(resource);
        }
    }
    if exceeded.is_empty() {
        return Ok(next);
    }
    let zero = Quantity::new(0, Format::DecimalSi);
    let list = |of: &Amounts| {
        let each = exceeded.iter().map(|r| format!("{r}={}", of.get(*r).unwrap_or(&zero).canonical()));
        each.collect::<Vec<_>>().join(",")
    };
    Err(ExceededError {
        quota: name.to_owned(),
        requested: list(added),
        used: list(used),
        limited: list(hard),
    })
}

/// The compute resources that a quota limits and the containers of a pod do not give, in Kubernetes' words.
pub fn missing(name: &str, hard: &Amounts, pod: &Value) -> Option<String> {
    let mut lacking: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for resource in hard.keys() {
        let (field, of) = match resource.split_once('.') {
            Some((field @ ("requests" | "limits"), of)) => (field, of),
            None if matches!(resource.as_str(), "cpu" | "memory") => ("requests", resource.as_str()),
            _ => continue,
        };
        if !matches!(of, "cpu" | "memory" | "ephemeral-storage") {
            continue;
        }
        for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
            if container["resources"][field].get(of).is_none() {
                lacking.entry(resource).or_default().push(container["name"].as_str().unwrap_or_default());
            }
        }
    }
    if lacking.is_empty() {
        return None;
    }
    let each: Vec<String> =
        lacking.iter().map(|(r, names)| format!("{r} for: {}", names.join(","))).collect();
    Some(format!("failed quota: {name}: must specify {}", each.join("; ")))
}
