//! Columns and cells of what a cluster is administered with: nodes, quotas, certificates, priorities, devices, policies.

use super::{AGE, Column, NAME, Printed, column, integer, wide};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use transom_object::time;

const PARAM_KIND: Column = column("ParamKind", "The kind of parameters.");

/// The columns of a kind, if it is one of these.
pub(super) fn columns(kind: &str) -> Option<&'static [Column]> {
    Some(match kind {
        "Node" => NODE,
        "ResourceQuota" => RESOURCE_QUOTA_COLUMNS,
        "CertificateSigningRequest" => CERTIFICATE_SIGNING_REQUEST_COLUMNS,
        "PriorityClass" => PRIORITY_CLASS_COLUMNS,
        "RuntimeClass" => RUNTIME_CLASS_COLUMNS,
        "FlowSchema" => FLOW_SCHEMA_COLUMNS,
        "PriorityLevelConfiguration" => PRIORITY_LEVEL_CONFIGURATION_COLUMNS,
        "ResourceClaim" => RESOURCE_CLAIM_COLUMNS,
        "DeviceClass" | "ResourceClaimTemplate" => DEVICE_CLASS_COLUMNS,
        "ResourceSlice" => RESOURCE_SLICE_COLUMNS,
        "ValidatingAdmissionPolicy" => VALIDATING_ADMISSION_POLICY_COLUMNS,
        "MutatingAdmissionPolicy" => MUTATING_ADMISSION_POLICY_COLUMNS,
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            VALIDATING_ADMISSION_POLICY_BINDING_COLUMNS
        }
        _ => return None,
    })
}

const RESOURCE_QUOTA_COLUMNS: &[Column] = &[
    NAME,
    column("Request", "What is used of each limit on requests."),
    column("Limit", "What is used of each limit on limits."),
    AGE,
];

const CERTIFICATE_SIGNING_REQUEST_COLUMNS: &[Column] = &[
    NAME,
    AGE,
    column("SignerName", "The signer of the request."),
    column("Requestor", "The user that created the request."),
    column("RequestedDuration", "How long the certificate should be valid."),
    column("Condition", "Whether it is approved, denied or issued."),
];

const PRIORITY_CLASS_COLUMNS: &[Column] = &[
    NAME,
    integer("Value", "The priority."),
    Column { ty: "boolean", ..column("Global-Default", "Whether pods without a class have it.") },
    AGE,
    column("PreemptionPolicy", "Whether pods of lower priority make room."),
];

const RUNTIME_CLASS_COLUMNS: &[Column] = &[NAME, column("Handler", "The configuration of the runtime."), AGE];

const FLOW_SCHEMA_COLUMNS: &[Column] = &[
    NAME,
    column("PriorityLevel", "The priority level."),
    column("MatchingPrecedence", "The precedence of the schema; lower values are used first."),
    column("DistinguisherMethod", "What makes a flow."),
    AGE,
    column("MissingPL", "Whether the priority level is missing."),
];

const PRIORITY_LEVEL_CONFIGURATION_COLUMNS: &[Column] = &[
    NAME,
    column("Type", "Whether requests are limited."),
    column("NominalConcurrencyShares", "The share of requests."),
    column("Queues", "The number of queues."),
    column("HandSize", "Queues for one flow."),
    column("QueueLengthLimit", "Requests in one queue."),
    AGE,
];

const RESOURCE_CLAIM_COLUMNS: &[Column] = &[NAME, column("State", "Whether devices are allocated."), AGE];

const DEVICE_CLASS_COLUMNS: &[Column] = &[NAME, AGE];

const RESOURCE_SLICE_COLUMNS: &[Column] = &[
    NAME,
    column("Node", "The node with the devices."),
    column("Driver", "The driver."),
    column("Pool", "The pool of devices."),
    AGE,
];

const VALIDATING_ADMISSION_POLICY_COLUMNS: &[Column] =
    &[NAME, integer("Validations", "The number of validations."), PARAM_KIND, AGE];

const MUTATING_ADMISSION_POLICY_COLUMNS: &[Column] =
    &[NAME, integer("Mutations", "The number of mutations."), PARAM_KIND, AGE];

const VALIDATING_ADMISSION_POLICY_BINDING_COLUMNS: &[Column] =
    &[NAME, column("PolicyName", "The policy."), column("ParamRef", "The parameters."), AGE];

const NODE: &[Column] = &[
    NAME,
    column("Status", "Whether the node is ready."),
    column("Roles", "The roles of the node."),
    AGE,
    column("Version", "The version of the kubelet."),
    wide("Internal-IP", "The address within the cluster."),
    wide("External-IP", "The address outside of the cluster."),
    wide("OS-Image", "The operating system."),
    wide("Kernel-Version", "The version of the kernel."),
    wide("Container-Runtime", "The version of the container runtime."),
];

/// The cells of an object of one of these kinds.
pub(super) fn cells(kind: &str, o: &Printed<'_>, name: Value, age: Value) -> Option<Vec<Value>> {
    Some(match kind {
        "Node" => node(o, name, age),
        "ResourceQuota" => {
            let (requests, limits) = quota(o);
            vec![name, json!(requests), json!(limits), age]
        }
        "CertificateSigningRequest" => signing_request(o, name, age),
        "PriorityClass" => vec![
            name,
            json!(o.number("/value")),
            json!(o.object.get("globalDefault").and_then(Value::as_bool).unwrap_or(false)),
            age,
            json!(o.text("/preemptionPolicy")),
        ],
        "RuntimeClass" => vec![name, json!(o.text("/handler")), age],
        "FlowSchema" => flow_schema(o, name, age),
        "PriorityLevelConfiguration" => {
            let of = |at: &str| {
                o.object.pointer(&format!("/spec/limited{at}")).cloned().unwrap_or(json!("<none>"))
            };
            let queuing = |field: &str| of(&format!("/limitResponse/queuing/{field}"));
            vec![
                name,
                json!(o.text("/spec/type")),
                of("/nominalConcurrencyShares"),
                queuing("queues"),
                queuing("handSize"),
                queuing("queueLengthLimit"),
                age,
            ]
        }
        "ResourceClaim" => vec![name, json!(claim_state(o)), age],
        "DeviceClass" | "ResourceClaimTemplate" => vec![name, age],
        "ResourceSlice" => vec![
            name,
            json!(o.text("/spec/nodeName")),
            json!(o.text("/spec/driver")),
            json!(o.text("/spec/pool/name")),
            age,
        ],
        "ValidatingAdmissionPolicy" => {
            vec![name, json!(o.count("/spec/validations")), json!(param_kind(o)), age]
        }
        "MutatingAdmissionPolicy" => vec![name, json!(o.count("/spec/mutations")), json!(param_kind(o)), age],
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            vec![name, json!(o.text("/spec/policyName")), json!(param_ref(o)), age]
        }
        _ => return None,
    })
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

fn node(o: &Printed<'_>, name: Value, age: Value) -> Vec<Value> {
    let ready = o.list("/status/conditions").iter().rev().find(|c| c["type"] == "Ready");
    let mut status = vec![match ready {
        None => "Unknown",
        Some(c) if c["status"] == "True" => "Ready",
        Some(_) => "NotReady",
    }];
    if o.object.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        status.push("SchedulingDisabled");
    }
    let labels = o.object.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    let roles = roles.into_iter().collect::<Vec<_>>().join(",");
    let address = |wanted: &str| {
        let found = o.list("/status/addresses").iter().find(|a| a["type"] == wanted);
        found.and_then(|a| a["address"].as_str()).unwrap_or("<none>").to_owned()
    };
    let info = |field: &str| o.text(&format!("/status/nodeInfo/{field}"));
    let mut kernel = or(info("kernelVersion"), "<unknown>").to_owned();
    if !info("architecture").is_empty() {
        kernel = format!("{kernel} ({})", info("architecture"));
    }
    vec![
        name,
        json!(status.join(",")),
        json!(or(&roles, "<none>")),
        age,
        json!(info("kubeletVersion")),
        json!(address("InternalIP")),
        json!(address("ExternalIP")),
        json!(or(info("osImage"), "<unknown>")),
        json!(kernel),
        json!(or(info("containerRuntimeVersion"), "<unknown>")),
    ]
}

/// What is used of each limit: those on limits apart from all others.
fn quota(o: &Printed<'_>) -> (String, String) {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in o.object.pointer("/status/hard").and_then(Value::as_object).into_iter().flatten()
    {
        let used = o.object.pointer("/status/used").and_then(|used| used.get(resource)?.as_str());
        let line = format!("{resource}: {}/{}", used.unwrap_or("0"), hard.as_str().unwrap_or_default());
        if resource.starts_with("limits.") { limits.push(line) } else { requests.push(line) }
    }
    (requests.join(", "), limits.join(", "))
}

fn signing_request(o: &Printed<'_>, name: Value, age: Value) -> Vec<Value> {
    let has = |wanted: &str| o.list("/status/conditions").iter().any(|c| c["type"] == wanted);
    let mut status = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !o.text("/status/certificate").is_empty() {
        status.push_str(",Issued");
    }
    let seconds = o.object.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    let lasts = seconds.map_or("<none>".to_owned(), time::human_duration);
    vec![
        name,
        age,
        json!(or(o.text("/spec/signerName"), "<none>")),
        json!(o.text("/spec/username")),
        json!(lasts),
        json!(status),
    ]
}

fn flow_schema(o: &Printed<'_>, name: Value, age: Value) -> Vec<Value> {
    let dangling = o.list("/status/conditions").iter().find(|c| c["type"] == "Dangling");
    vec![
        name,
        json!(o.text("/spec/priorityLevelConfiguration/name")),
        json!(o.number("/spec/matchingPrecedence")),
        json!(or(o.text("/spec/distinguisherMethod/type"), "<none>")),
        age,
        json!(dangling.and_then(|c| c["status"].as_str()).unwrap_or("?")),
    ]
}

fn claim_state(o: &Printed<'_>) -> String {
    let deleted = !o.text("/metadata/deletionTimestamp").is_empty();
    let allocated = o.object.pointer("/status/allocation").is_some_and(Value::is_object);
    let reserved = allocated && !o.list("/status/reservedFor").is_empty();
    let states = [
        (deleted, "deleted"),
        (!allocated && !deleted, "pending"),
        (allocated, "allocated"),
        (reserved, "reserved"),
    ];
    states.iter().filter(|(holds, _)| *holds).map(|(_, state)| *state).collect::<Vec<_>>().join(",")
}

fn param_kind(o: &Printed<'_>) -> String {
    match o.object.pointer("/spec/paramKind") {
        Some(Value::Object(_)) => {
            format!("{}/{}", o.text("/spec/paramKind/apiVersion"), o.text("/spec/paramKind/kind"))
        }
        _ => "<unset>".to_owned(),
    }
}

fn param_ref(o: &Printed<'_>) -> String {
    match (o.text("/spec/paramRef/namespace"), o.text("/spec/paramRef/name")) {
        (_, "") => "<unset>".to_owned(),
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}
