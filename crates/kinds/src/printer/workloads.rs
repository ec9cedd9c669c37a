//! Columns and cells of workloads, what scales them and what guards them.

use super::cells::{containers, label_selector, labels};
use super::{AGE, CONTAINERS, Column, IMAGES, NAME, Printed, SELECTOR, age_between, column, integer};
use serde_json::{Value, json};

/// The columns of a kind, if it is one of these.
pub(super) fn columns(kind: &str) -> Option<&'static [Column]> {
    Some(match kind {
        "ReplicationController" => REPLICATION_CONTROLLER_COLUMNS,
        "DaemonSet" => DAEMON_SET_COLUMNS,
        "StatefulSet" => STATEFUL_SET_COLUMNS,
        "Job" => JOB_COLUMNS,
        "CronJob" => CRON_JOB_COLUMNS,
        "PodDisruptionBudget" => POD_DISRUPTION_BUDGET_COLUMNS,
        "HorizontalPodAutoscaler" => HORIZONTAL_POD_AUTOSCALER_COLUMNS,
        "ControllerRevision" => CONTROLLER_REVISION_COLUMNS,
        _ => return None,
    })
}

const REPLICATION_CONTROLLER_COLUMNS: &[Column] =
    &[NAME, DESIRED, CURRENT, READY, AGE, CONTAINERS, IMAGES, SELECTOR];

const DAEMON_SET_COLUMNS: &[Column] = &[
    NAME,
    DESIRED,
    CURRENT,
    READY,
    integer("Up-to-date", "Number of nodes that run the current pod."),
    integer("Available", "Number of nodes whose pod has been ready long enough."),
    column("Node Selector", "The labels of nodes that run a pod."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const STATEFUL_SET_COLUMNS: &[Column] =
    &[NAME, column("Ready", "Number of pods that are ready, of those wanted."), AGE, CONTAINERS, IMAGES];

const JOB_COLUMNS: &[Column] = &[
    NAME,
    STATUS,
    column("Completions", "Pods that succeeded, of those wanted."),
    column("Duration", "Time from start to completion."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const CRON_JOB_COLUMNS: &[Column] = &[
    NAME,
    column("Schedule", "When jobs are started, in cron's format."),
    column("Timezone", "The time zone of the schedule."),
    Column { ty: "boolean", ..column("Suspend", "Whether no further jobs are started.") },
    integer("Active", "Number of jobs that run."),
    column("Last Schedule", "When a job was last started."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const POD_DISRUPTION_BUDGET_COLUMNS: &[Column] = &[
    NAME,
    column("Min Available", "The minimum number of pods that must be available."),
    column("Max Unavailable", "The maximum number of pods that may be unavailable."),
    integer("Allowed Disruptions", "Number of pods that may be disrupted now."),
    AGE,
];

const HORIZONTAL_POD_AUTOSCALER_COLUMNS: &[Column] = &[
    NAME,
    column("Reference", "What is scaled."),
    column("Targets", "The metrics, current and wanted."),
    column("MinPods", "The fewest replicas."),
    column("MaxPods", "The most replicas."),
    column("Replicas", "The current number of replicas."),
    AGE,
];

const CONTROLLER_REVISION_COLUMNS: &[Column] =
    &[NAME, column("Controller", "Controller of the object."), column("Revision", "The revision."), AGE];

const STATUS: Column = column("Status", "Status of the job.");

const DESIRED: Column = integer("Desired", "Number of pods that are wanted.");
const CURRENT: Column = integer("Current", "Number of pods that exist.");
const READY: Column = integer("Ready", "Number of pods that are ready.");

/// The cells of an object of one of these kinds.
pub(super) fn cells(kind: &str, o: &Printed<'_>, name: Value, age: Value) -> Option<Vec<Value>> {
    let template = |at: &str| containers(o, &format!("{at}/spec/containers"));
    Some(match kind {
        "ReplicationController" => {
            let (names, images) = template("/spec/template");
            let counts = ["/spec/replicas", "/status/replicas", "/status/readyReplicas"];
            let [desired, current, ready] = counts.map(|at| json!(o.number(at)));
            vec![
                name,
                desired,
                current,
                ready,
                age,
                names,
                images,
                json!(labels(o.object.pointer("/spec/selector"))),
            ]
        }
        "DaemonSet" => {
            let counts =
                ["desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled"];
            let mut cells = vec![name];
            cells.extend(counts.iter().map(|c| json!(o.number(&format!("/status/{c}")))));
            cells.push(json!(o.number("/status/numberAvailable")));
            let (names, images) = template("/spec/template");
            cells.push(json!(labels(o.object.pointer("/spec/template/spec/nodeSelector"))));
            cells.extend([age, names, images, json!(selector(o, "/spec/selector"))]);
            cells
        }
        "StatefulSet" => {
            let (names, images) = template("/spec/template");
            let ready = format!("{}/{}", o.number("/status/readyReplicas"), o.number("/spec/replicas"));
            vec![name, json!(ready), age, names, images]
        }
        "Job" => {
            let (names, images) = template("/spec/template");
            let (status, done, took) = (job_status(o), completions(o), duration(o));
            vec![
                name,
                json!(status),
                json!(done),
                json!(took),
                age,
                names,
                images,
                json!(selector(o, "/spec/selector")),
            ]
        }
        "CronJob" => cron_job(o, name, age),
        "PodDisruptionBudget" => {
            let bound = |at: &str| o.object.pointer(at).map_or("N/A".to_owned(), plain);
            let (least, most) = (bound("/spec/minAvailable"), bound("/spec/maxUnavailable"));
            vec![name, json!(least), json!(most), json!(o.number("/status/disruptionsAllowed")), age]
        }
        "HorizontalPodAutoscaler" => {
            let target =
                format!("{}/{}", o.text("/spec/scaleTargetRef/kind"), o.text("/spec/scaleTargetRef/name"));
            let least = o.object.pointer("/spec/minReplicas").map_or("<unset>".to_owned(), plain);
            let (most, now) = (o.number("/spec/maxReplicas"), o.number("/status/currentReplicas"));
            vec![name, json!(target), json!(metrics(o)), json!(least), json!(most), json!(now), age]
        }
        "ControllerRevision" => {
            vec![name, json!(controller(o)), json!(o.number("/revision")), age]
        }
        _ => return None,
    })
}

fn cron_job(o: &Printed<'_>, name: Value, age: Value) -> Vec<Value> {
    let (names, images) = containers(o, "/spec/jobTemplate/spec/template/spec/containers");
    let or_none = |text: &str| if text.is_empty() { "<none>".to_owned() } else { text.to_owned() };
    let last = match o.text("/status/lastScheduleTime") {
        "" => "<none>".to_owned(),
        _ => o.since("/status/lastScheduleTime"),
    };
    let suspended = match o.object.pointer("/spec/suspend") {
        Some(Value::Bool(true)) => "True",
        Some(Value::Bool(false)) => "False",
        _ => "<unset>",
    };
    vec![
        name,
        json!(o.text("/spec/schedule")),
        json!(or_none(o.text("/spec/timeZone"))),
        json!(suspended),
        json!(o.count("/status/active")),
        json!(last),
        age,
        names,
        images,
        json!(selector(o, "/spec/jobTemplate/spec/selector")),
    ]
}

/// A number or a text as it is.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn selector(o: &Printed<'_>, at: &str) -> String {
    match label_selector(o.object.pointer(at)) {
        s if s.is_empty() => "<none>".to_owned(),
        s => s,
    }
}

fn completions(o: &Printed<'_>) -> String {
    let done = o.number("/status/succeeded");
    match (o.object.pointer("/spec/completions").and_then(Value::as_i64), o.number("/spec/parallelism")) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, parallel) if parallel > 1 => format!("{done}/1 of {parallel}"),
        (None, _) => format!("{done}/1"),
    }
}

fn duration(o: &Printed<'_>) -> String {
    match (o.text("/status/startTime"), o.text("/status/completionTime")) {
        ("", _) => String::new(),
        (_, "") => o.since("/status/startTime"),
        (start, end) => age_between(start, end),
    }
}

fn job_status(o: &Printed<'_>) -> &'static str {
    let holds = |wanted: &str| {
        o.list("/status/conditions").iter().any(|c| c["type"] == wanted && c["status"] == "True")
    };
    if holds("Complete") {
        "Complete"
    } else if holds("Failed") {
        "Failed"
    } else if !o.text("/metadata/deletionTimestamp").is_empty() {
        "Terminating"
    } else if holds("Suspended") {
        "Suspended"
    } else if holds("FailureTarget") {
        "FailureTarget"
    } else if holds("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn controller(o: &Printed<'_>) -> String {
    let owner = o.list("/metadata/ownerReferences").iter().find(|r| r["controller"] == true);
    let Some(owner) = owner else { return "<none>".to_owned() };
    let text = |key: &str| owner[key].as_str().unwrap_or_default();
    let kind = match text("apiVersion").split_once('/') {
        Some((group, _)) => format!("{}.{group}", text("kind")),
        None => text("kind").to_owned(),
    };
    format!("{}/{}", kind.to_lowercase(), text("name"))
}

const MAX_PRINTED_METRICS: usize = 2;

/// The metrics of an autoscaler: current values and targets.
fn metrics(o: &Printed<'_>) -> String {
    let specs = o.list("/spec/metrics");
    if specs.is_empty() {
        return "<none>".to_owned();
    }
    let current = o.list("/status/currentMetrics");
    let mut each: Vec<String> =
        specs.iter().enumerate().map(|(i, spec)| metric(spec, current.get(i))).collect();
    let more = each.len().saturating_sub(MAX_PRINTED_METRICS);
    each.truncate(MAX_PRINTED_METRICS);
    match more {
        0 => each.join(", "),
        more => format!("{} + {more} more...", each.join(", ")),
    }
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let (source, averages) = match spec["type"].as_str() {
        Some("External") => ("external", false),
        Some("Pods") => ("pods", false),
        Some("Object") => ("object", false),
        Some("Resource") => ("resource", true),
        Some("ContainerResource") => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let (target, now) = (&spec[source]["target"], status.map_or(&Value::Null, |s| &s[source]["current"]));
    let known = |value: &Value, percent: &str| match value {
        Value::Null => "<unknown>".to_owned(),
        value => format!("{}{percent}", plain(value)),
    };
    let average = &target["averageValue"];
    if averages {
        let name = spec[source]["name"].as_str().unwrap_or_default();
        if !average.is_null() {
            return format!("{name}: {}/{}", known(&now["averageValue"], ""), plain(average));
        }
        let wanted = match &target["averageUtilization"] {
            Value::Null => "<auto>".to_owned(),
            value => format!("{value}%"),
        };
        return format!("{name}: {}/{wanted}", known(&now["averageUtilization"], "%"));
    }
    match (source, average.is_null()) {
        ("pods", _) => format!("{}/{}", known(&now["averageValue"], ""), plain(average)),
        (_, false) => format!("{}/{} (avg)", known(&now["averageValue"], ""), plain(average)),
        (_, true) => format!("{}/{}", known(&now["value"], ""), plain(&target["value"])),
    }
}
