//! When a resource of a kind that Kubernetes itself defines is ready. These kinds have no condition `Ready`, or one
//! that has less information than their counts.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use transom_object::GroupVersionKind;
use transom_object::time;

/// Whether an object of a kind is ready: `None` when the kind is not one of Kubernetes' own.
pub(super) fn is_ready(kind: &GroupVersionKind, object: &Value) -> Option<bool> {
    let check = match (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str()) {
        ("", "v1", "ConfigMap" | "Secret" | "ServiceAccount" | "Namespace") => return Some(true),
        ("", "v1", "Service") => service,
        ("", "v1", "PersistentVolumeClaim") => volume_claim,
        ("", "v1", "Pod") => pod,
        ("apps", "v1", "Deployment") => deployment,
        ("apps", "v1", "StatefulSet") => stateful_set,
        ("apps", "v1", "DaemonSet") => daemon_set,
        ("apps", "v1", "ReplicaSet") => replica_set,
        ("batch", "v1", "Job") => job,
        ("batch", "v1", "CronJob") => cron_job,
        ("autoscaling", "v2", "HorizontalPodAutoscaler") => autoscaler,
        ("networking.k8s.io", "v1", "Ingress") => has_address,
        _ => return None,
    };
    Some(check(object).unwrap_or(false))
}

/// The whole number at a path; of a fraction only the whole part.
fn number(object: &Value, path: &str) -> Option<i64> {
    let value = object.pointer(path)?;
    #[expect(clippy::cast_possible_truncation, reason = "the fraction is meant to be cut off")]
    value.as_i64().or_else(|| value.as_f64().map(|float| float as i64))
}

/// How many replicas are wanted: one by default.
fn wanted(object: &Value) -> i64 {
    number(object, "/spec/replicas").unwrap_or(1)
}

fn has_address(object: &Value) -> Option<bool> {
    let addresses = object.pointer("/status/loadBalancer/ingress")?.as_array()?;
    Some(!addresses.is_empty())
}

fn service(object: &Value) -> Option<bool> {
    match object.pointer("/spec/type").and_then(Value::as_str) {
        Some("LoadBalancer") => has_address(object),
        _ => Some(true),
    }
}

fn deployment(object: &Value) -> Option<bool> {
    let (updated, available) =
        (number(object, "/status/updatedReplicas")?, number(object, "/status/availableReplicas")?);
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    let is_available = conditions.iter().any(|c| c["type"] == "Available" && c["status"] == "True");
    Some(is_available && updated == wanted(object) && available == wanted(object))
}

fn stateful_set(object: &Value) -> Option<bool> {
    let (ready, current) =
        (number(object, "/status/readyReplicas")?, number(object, "/status/currentReplicas")?);
    let revision = |path| object.pointer(path).and_then(Value::as_str);
    let (current_revision, update_revision) =
        (revision("/status/currentRevision")?, revision("/status/updateRevision")?);
    Some(ready == wanted(object) && current == wanted(object) && current_revision == update_revision)
}

fn daemon_set(object: &Value) -> Option<bool> {
    let desired = number(object, "/status/desiredNumberScheduled")?;
    let counts = ["numberReady", "updatedNumberScheduled", "numberAvailable"];
    let counts = counts.map(|count| number(object, &format!("/status/{count}")));
    Some(counts.iter().all(|count| *count == Some(desired)))
}

/// The parts of the kinds below that their checks read. An object that does not have them in this form is not ready.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "Spec: DeserializeOwned, Status: DeserializeOwned")]
struct Object<Spec, Status> {
    metadata: Option<Metadata>,
    spec: Option<Spec>,
    status: Option<Status>,
}

fn read<Spec, Status>(object: &Value) -> Option<Object<Spec, Status>>
where
    Object<Spec, Status>: DeserializeOwned,
{
    Object::deserialize(object).ok()
}

#[derive(Deserialize)]
struct Metadata {
    generation: Option<i64>,
}

#[derive(Deserialize)]
struct Condition {
    r#type: Option<String>,
    status: Option<String>,
}

impl Condition {
    /// The type of a condition that is true.
    fn holds(&self) -> Option<&str> {
        self.r#type.as_deref().filter(|_| self.status.as_deref() == Some("True"))
    }
}

#[derive(Deserialize)]
struct NoSpec {}

fn volume_claim(object: &Value) -> Option<bool> {
    #[derive(Deserialize)]
    struct Status {
        phase: Option<String>,
    }
    let status = read::<NoSpec, Status>(object)?.status?;
    Some(status.phase.as_deref() == Some("Bound"))
}

fn pod(object: &Value) -> Option<bool> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        restart_policy: Option<String>,
    }
    #[derive(Deserialize)]
    struct Status {
        phase: Option<String>,
        conditions: Option<Vec<Condition>>,
    }
    let pod = read::<Spec, Status>(object)?;
    let status = pod.status?;
    match status.phase.as_deref()? {
        "Succeeded" => Some(true),
        "Running" if pod.spec?.restart_policy.as_deref() == Some("Always") => {
            Some(status.conditions?.iter().any(|condition| condition.holds() == Some("Ready")))
        }
        _ => Some(false),
    }
}

fn replica_set(object: &Value) -> Option<bool> {
    #[derive(Deserialize)]
    struct Spec {
        replicas: Option<i64>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Status {
        observed_generation: Option<i64>,
        available_replicas: Option<i64>,
        conditions: Option<Vec<Condition>>,
    }
    let set = read::<Spec, Status>(object)?;
    let generation = set.metadata.and_then(|metadata| metadata.generation).unwrap_or_default();
    let wanted = set.spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let status = set.status.unwrap_or_default();
    let failed = status.conditions.iter().flatten().any(|c| c.holds() == Some("ReplicaFailure"));
    let observed = status.observed_generation.unwrap_or_default();
    Some(!failed && observed >= generation && status.available_replicas.unwrap_or_default() >= wanted)
}

#[derive(Deserialize)]
struct OnlyConditions {
    conditions: Option<Vec<Condition>>,
}

/// The first condition that holds and decides, decides.
fn decided(object: &Value, decide: fn(&str) -> Option<bool>) -> Option<bool> {
    let conditions = read::<NoSpec, OnlyConditions>(object)?.status?.conditions?;
    conditions.iter().filter_map(Condition::holds).find_map(decide)
}

fn job(object: &Value) -> Option<bool> {
    decided(object, |condition| match condition {
        "Failed" | "Suspended" => Some(false),
        "Complete" => Some(true),
        _ => None,
    })
}

fn autoscaler(object: &Value) -> Option<bool> {
    decided(object, |condition| match condition {
        "FailedGetScale" | "FailedUpdateScale" | "FailedGetResourceMetric" | "InvalidSelector" => Some(false),
        "ScalingActive" | "ScalingLimited" => Some(true),
        _ => None,
    })
}

fn cron_job(object: &Value) -> Option<bool> {
    #[derive(Deserialize)]
    struct Spec {
        suspend: Option<bool>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Status {
        active: Option<Vec<Value>>,
        last_schedule_time: Option<String>,
        last_successful_time: Option<String>,
    }
    let job = read::<Spec, Status>(object)?;
    if job.spec.and_then(|spec| spec.suspend) == Some(true) {
        return Some(true);
    }
    let status = job.status?;
    let scheduled = time::parse(&status.last_schedule_time?).ok()?;
    let succeeded = status.last_successful_time.map(|text| time::parse(&text)).transpose().ok()?;
    let running = status.active.is_some_and(|active| !active.is_empty());
    Some(running || succeeded.is_some_and(|succeeded| succeeded >= scheduled))
}
