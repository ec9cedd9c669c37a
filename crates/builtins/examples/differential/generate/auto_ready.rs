//! Questions for `function-auto-ready`: every kind it knows, with statuses that are complete, half there, or odd.

use super::Dice;
use super::world::conditions;
use serde_json::{Value, json};

const KINDS: [(&str, &str); 19] = [
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "ServiceAccount"),
    ("v1", "Namespace"),
    ("v1", "Service"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "Pod"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("networking.k8s.io/v1", "Ingress"),
    ("example.org/v1", "Thing"),
    ("example.org/v1beta1", "Deployment"),
    ("", "ConfigMap"),
    ("apps/v1", "Unheard"),
];

pub(super) fn question(dice: &mut Dice) -> Value {
    let (mut observed, mut desired) = (json!({}), json!({}));
    for i in 0..1 + dice.below(6) {
        let name = format!("r{i}");
        let (api_version, kind) = dice.one(&KINDS);
        if dice.percent(85) {
            observed[&name] = json!({"resource": object(dice, api_version, kind)});
        }
        if dice.percent(90) {
            desired[&name] = json!({"resource": {"apiVersion": api_version, "kind": kind}});
            if dice.percent(15) {
                desired[&name]["ready"] = json!(dice.pick(&["READY_TRUE", "READY_FALSE"]));
            }
            if dice.percent(5) {
                desired[&name]["connectionDetails"] = json!({"k": "dg=="});
            }
        }
    }
    let mut question =
        json!({"observed": {"composite": {"resource": {"kind": "X"}}, "resources": observed}, "input": {}});
    if dice.percent(95) {
        question["desired"] = json!({"resources": desired});
        if dice.percent(30) {
            question["desired"]["composite"] =
                json!({"resource": {"status": {"a": 1}}, "ready": "READY_TRUE"});
        }
    }
    if dice.percent(30) {
        question["input"] = json!({"apiVersion": "autoready.fn.crossplane.io/v1beta1", "kind": "Input"});
        if dice.percent(60) {
            question["input"]["ttl"] =
                json!(dice.pick(&["5m", "30s", "1h30m", "soon", "", "-1s", "1.5s", "90"]));
        }
    }
    if dice.percent(25) {
        question["input"]["celHealthCheckCustomization"] = expressions(dice);
    }
    if dice.percent(20) {
        question["context"] = json!({"kept": {"a": [1, null]}});
    }
    question
}

/// Expressions for some kinds. Whether a type is right is decided before they run.
fn expressions(dice: &mut Dice) -> Value {
    let keys = ["_v1_ConfigMap", "apps_v1_Deployment", "example.org_v1_Thing", "_v1_Pod", "batch_v1_Job"];
    let texts = [
        "true",
        "false",
        "object.status.phase == 'Bound'",
        "has(object.status) && has(object.status.phase)",
        "object.status.replicas > 1.0",
        "object.spec.replicas",
        "object.status.missing == 1",
        "size(object.status.conditions) > 0",
        "nonsense(",
        "object.status.phase",
        "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
        "object.metadata.name == 'x'",
        "1 + 1",
    ];
    let mut expressions = json!({});
    for _ in 0..1 + dice.below(3) {
        expressions[dice.pick(&keys)] = json!(dice.pick(&texts));
    }
    expressions
}

fn object(dice: &mut Dice, api_version: &str, kind: &str) -> Value {
    let mut object =
        json!({"metadata": {"name": "x"}, "spec": spec(dice), "status": status(dice, api_version, kind)});
    if !api_version.is_empty() {
        object["apiVersion"] = json!(api_version);
    }
    object["kind"] = json!(kind);
    if dice.percent(40) {
        object["metadata"]["generation"] = json!(dice.below(4));
    }
    // No API server stores a built-in kind with fields of the wrong type; the original, which decodes those kinds into
    // types of its own, stumbles over any of them, wherever it is.
    let odd = super::hostile::odd(dice);
    let ours = api_version.starts_with("example.org");
    match dice.below(20) {
        0 if ours => object["status"] = odd,
        1 if ours => object["spec"] = odd,
        2 => drop(object.as_object_mut().map(|object| object.remove("status"))),
        3 if ours => super::hostile::damage(dice, &mut object["status"]),
        4 => object["status"] = Value::Null,
        _ => {}
    }
    object
}

fn spec(dice: &mut Dice) -> Value {
    let mut spec = json!({});
    if dice.percent(60) {
        spec["replicas"] = json!(dice.below(4));
    }
    if dice.percent(60) {
        spec["type"] = json!(dice.pick(&["LoadBalancer", "ClusterIP", "NodePort"]));
    }
    if dice.percent(60) {
        spec["restartPolicy"] = json!(dice.pick(&["Always", "Never", "OnFailure"]));
    }
    if dice.percent(30) {
        spec["suspend"] = json!(dice.percent(50));
    }
    if dice.percent(30) {
        spec["minReplicas"] = json!(1);
    }
    spec
}

fn status(dice: &mut Dice, api_version: &str, kind: &str) -> Value {
    let mut status = json!({});
    let most = dice.below(4);
    for field in [
        "replicas",
        "readyReplicas",
        "updatedReplicas",
        "availableReplicas",
        "currentReplicas",
        "desiredNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
        "currentNumberScheduled",
        "observedGeneration",
    ] {
        if dice.percent(80) {
            // Mostly all the same, which is what ready looks like.
            status[field] = json!(if dice.percent(85) { most } else { dice.below(4) });
        }
    }
    if dice.percent(70) {
        status["phase"] = json!(dice.pick(&["Bound", "Running", "Succeeded", "Pending", "Failed"]));
    }
    if dice.percent(60) {
        status["loadBalancer"] = dice.one(&[
            json!({}),
            json!({"ingress": []}),
            json!({"ingress": [{"ip": "1.2.3.4"}]}),
            json!({"ingress": [{}]}),
            json!(null),
        ]);
    }
    for field in ["currentRevision", "updateRevision"] {
        if dice.percent(80) {
            status[field] = json!(dice.pick(&["a", "a", "a", "b", ""]));
        }
    }
    for field in ["lastScheduleTime", "lastSuccessfulTime"] {
        if dice.percent(60) {
            status[field] = json!(dice.pick(&[
                "2024-01-01T00:00:00Z",
                "2024-01-02T00:00:00Z",
                "2024-01-01T00:00:00+02:00"
            ]));
        }
    }
    if kind == "CronJob" && dice.percent(50) {
        status["active"] = dice.one(&[json!([{"name": "j"}]), json!([])]);
    }
    if dice.percent(80) {
        status["conditions"] =
            if api_version.starts_with("example.org") { conditions(dice) } else { of_workloads(dice) };
    }
    status
}

fn of_workloads(dice: &mut Dice) -> Value {
    let kinds = [
        "Available",
        "Progressing",
        "ReplicaFailure",
        "Complete",
        "Failed",
        "Suspended",
        "ScalingActive",
        "ScalingLimited",
        "AbleToScale",
        "FailedGetScale",
        "InvalidSelector",
        "Ready",
        "SuccessCriteriaMet",
    ];
    (0..dice.below(4)).map(|_| json!({"type": dice.pick(&kinds), "status": dice.pick(&["True", "True", "False", "Unknown"])})).collect()
}
