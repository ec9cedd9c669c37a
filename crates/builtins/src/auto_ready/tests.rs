//! What the function decides of readiness, kind by kind.

use super::*;
use crate::upstream;
use serde_json::{Value, json};
use transom_function::testing::{RequestBuilder, run};

fn kinded(api_version: &str, kind: &str, rest: &Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}});
    for (key, value) in rest.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

fn verdict(api_version: &str, kind: &str, rest: &Value) -> Ready {
    judge(&kinded(api_version, kind, rest), &Expressions::new(), &mut Vec::new())
}

const YES: Ready = Ready::True;
const NO: Ready = Ready::Unspecified;

#[test]
#[expect(clippy::too_many_lines, reason = "one row a verdict")]
fn kubernetes_own_kinds_are_judged() {
    let available = json!([{"type": "Available", "status": "True"}]);
    let ready = json!([{"type": "Ready", "status": "True"}]);
    for (api_version, kind, rest, expected) in [
        ("v1", "ConfigMap", json!({}), YES),
        ("v1", "Namespace", json!({"status": {"phase": "Terminating"}}), YES),
        ("v1", "Node", json!({}), NO),
        ("v2", "ConfigMap", json!({}), NO),
        ("v1", "Service", json!({}), YES),
        ("v1", "Service", json!({"spec": {"type": "LoadBalancer"}}), NO),
        (
            "v1",
            "Service",
            json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": []}}}),
            NO,
        ),
        (
            "v1",
            "Service",
            json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{}]}}}),
            YES,
        ),
        ("networking.k8s.io/v1", "Ingress", json!({}), NO),
        (
            "networking.k8s.io/v1",
            "Ingress",
            json!({"status": {"loadBalancer": {"ingress": [{"ip": "::1"}]}}}),
            YES,
        ),
        ("v1", "PersistentVolumeClaim", json!({"status": {"phase": "Bound"}}), YES),
        ("v1", "PersistentVolumeClaim", json!({"status": {"phase": "Lost"}}), NO),
        ("v1", "Pod", json!({"status": {"phase": "Succeeded"}}), YES),
        ("v1", "Pod", json!({"status": {"phase": "Running"}}), NO),
        ("v1", "Pod", json!({"spec": {"restartPolicy": "Always"}, "status": {"phase": "Running"}}), NO),
        (
            "v1",
            "Pod",
            json!({"spec": {"restartPolicy": "Always"}, "status": {"phase": "Running", "conditions": ready}}),
            YES,
        ),
        // Not by the check for pods, but by the condition.
        (
            "v1",
            "Pod",
            json!({"spec": {"restartPolicy": "Never"}, "status": {"phase": "Running", "conditions": ready}}),
            YES,
        ),
        (
            "apps/v1",
            "Deployment",
            json!({"status": {"updatedReplicas": 1, "availableReplicas": 1, "conditions": available}}),
            YES,
        ),
        ("apps/v1", "Deployment", json!({"status": {"updatedReplicas": 1, "availableReplicas": 1}}), NO),
        (
            "apps/v1",
            "Deployment",
            json!({"spec": {"replicas": 2}, "status": {"updatedReplicas": 2, "availableReplicas": 1, "conditions": available}}),
            NO,
        ),
        ("apps/v1", "Deployment", json!({"spec": {"replicas": 0}, "status": {"conditions": available}}), NO),
        (
            "apps/v1",
            "StatefulSet",
            json!({"status": {"readyReplicas": 1, "currentReplicas": 1, "currentRevision": "a", "updateRevision": "a"}}),
            YES,
        ),
        (
            "apps/v1",
            "StatefulSet",
            json!({"status": {"readyReplicas": 1, "currentReplicas": 1, "currentRevision": "a", "updateRevision": "b"}}),
            NO,
        ),
        (
            "apps/v1",
            "DaemonSet",
            json!({"status": {"desiredNumberScheduled": 2, "numberReady": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}}),
            YES,
        ),
        (
            "apps/v1",
            "DaemonSet",
            json!({"status": {"desiredNumberScheduled": 2, "numberReady": 2, "updatedNumberScheduled": 2}}),
            NO,
        ),
        ("apps/v1", "ReplicaSet", json!({"spec": {"replicas": 0}}), YES),
        ("apps/v1", "ReplicaSet", json!({}), NO),
        (
            "apps/v1",
            "ReplicaSet",
            json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1, "availableReplicas": 1}}),
            NO,
        ),
        (
            "apps/v1",
            "ReplicaSet",
            json!({"status": {"availableReplicas": 2, "conditions": [{"type": "ReplicaFailure", "status": "True"}]}}),
            NO,
        ),
        ("apps/v1", "ReplicaSet", json!({"status": {"availableReplicas": "2"}}), NO),
        (
            "batch/v1",
            "Job",
            json!({"status": {"conditions": [{"type": "Complete", "status": "True"}, {"type": "Failed", "status": "True"}]}}),
            YES,
        ),
        (
            "batch/v1",
            "Job",
            json!({"status": {"conditions": [{"type": "Suspended", "status": "True"}, {"type": "Complete", "status": "True"}]}}),
            NO,
        ),
        ("batch/v1", "CronJob", json!({"spec": {"suspend": true}}), YES),
        ("batch/v1", "CronJob", json!({}), NO),
        (
            "batch/v1",
            "CronJob",
            json!({"status": {"lastScheduleTime": "2024-01-01T10:00:00Z", "active": [{}]}}),
            YES,
        ),
        (
            "batch/v1",
            "CronJob",
            json!({"status": {"lastScheduleTime": "2024-01-01T10:00:00Z", "lastSuccessfulTime": "2024-01-01T11:00:00+01:00"}}),
            YES,
        ),
        (
            "batch/v1",
            "CronJob",
            json!({"status": {"lastScheduleTime": "2024-01-01T10:00:00Z", "lastSuccessfulTime": "2024-01-01T09:00:00Z"}}),
            NO,
        ),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({"status": {"conditions": [{"type": "ScalingLimited", "status": "True"}]}}),
            YES,
        ),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({"status": {"conditions": [{"type": "InvalidSelector", "status": "True"}, {"type": "ScalingActive", "status": "True"}]}}),
            NO,
        ),
        ("example.org/v1", "Bucket", json!({"status": {"conditions": ready}}), YES),
        ("example.org/v1", "Bucket", json!({"status": {"conditions": available}}), NO),
        ("a/b/c", "Bucket", json!({"status": {"conditions": ready}}), YES),
    ] {
        assert_eq!(verdict(api_version, kind, &rest), expected, "{api_version} {kind} {rest}");
    }
}

fn bucket(ready: &str) -> Value {
    kinded(
        "example.org/v1",
        "Bucket",
        &json!({"status": {"conditions": [{"type": "Ready", "status": ready}]}}),
    )
}

#[tokio::test]
async fn only_what_exists_and_has_no_readiness_is_judged() {
    let mut request = RequestBuilder::new(json!({}))
        .observed("ready", bucket("True"))
        .observed("waiting", bucket("False"))
        .observed("decided", bucket("True"))
        .observed("unwanted", bucket("True"))
        .desired("ready", json!({}))
        .desired("waiting", json!({}))
        .desired("decided", json!({}))
        .desired("missing", json!({}))
        .build();
    let decided = request.desired.as_mut().unwrap().resources.get_mut("decided").unwrap();
    decided.set_ready(Ready::False);
    decided.connection_details.insert("k".into(), b"v".to_vec());
    let response = run(&AutoReady, request, &[]).await;
    let readiness = response.desired.unwrap().resources.into_iter().map(|(name, resource)| {
        assert!(resource.connection_details.is_empty());
        (name, resource.ready())
    });
    let expected = [("decided", Ready::False), ("missing", NO), ("ready", YES), ("waiting", NO)];
    assert_eq!(readiness.collect::<Vec<_>>(), expected.map(|(name, ready)| (name.to_owned(), ready)));
    assert!(response.results.is_empty());
}

async fn with_input(input: Value) -> RunFunctionResponse {
    let request = RequestBuilder::new(json!({}))
        .context("env", json!({"checks": {"example.org_v1_Bucket": "false", "_v1_Pod": "object.x == 1"}}))
        .observed("bucket", bucket("True"))
        .desired("bucket", json!({}))
        .input(input)
        .build();
    run(&AutoReady, request, &[]).await
}

#[tokio::test]
async fn expressions_decide_first() {
    for (input, expected, warnings) in [
        (json!({"celHealthCheckCustomization": {"example.org_v1_Bucket": "false"}}), Ready::False, 0),
        (json!({"celHealthCheckCustomizationFrom": "env.checks"}), Ready::False, 0),
        (json!({"celHealthCheckCustomizationFrom": "env.none"}), YES, 0),
        (
            json!({"celHealthCheckCustomizationFrom": "env.checks",
                "celHealthCheckCustomization": {"example.org_v1_Bucket": "object.kind == 'Bucket'"}}),
            YES,
            0,
        ),
        (json!({"celHealthCheckCustomization": {"example.org_v1_Bucket": "object.none"}}), YES, 1),
        (json!({"celHealthCheckCustomization": {"example.org_v1_Bucket": "object.none == 1"}}), YES, 1),
    ] {
        let response = with_input(input.clone()).await;
        assert_eq!(response.results.len(), warnings, "{input}");
        assert_eq!(response.desired.unwrap().resources["bucket"].ready(), expected, "{input}");
    }
}

#[tokio::test]
async fn the_input_is_read_strictly() {
    let ttl = |response: RunFunctionResponse| response.meta.unwrap().ttl.unwrap();
    let hour = ttl(with_input(json!({"apiVersion": "x", "kind": "y", "metadata": {}, "ttl": "1h"})).await);
    assert_eq!(hour.seconds, 3600);
    assert_eq!(ttl(with_input(json!({"ttl": null})).await).seconds, 60);
    for (input, expected) in [
        (json!({"ttl": "soon"}), "cannot set ttl: time: invalid duration \"soon\""),
        (
            json!({"tll": "1h"}),
            "cannot get Function input from *v1.RunFunctionRequest: cannot get function input *v1beta1.Input from \
             *v1.RunFunctionRequest: cannot unmarshal JSON from *structpb.Struct into *v1beta1.Input: json: ",
        ),
    ] {
        let response = with_input(input).await;
        assert!(response.results[0].message.starts_with(expected), "{}", response.results[0].message);
        assert_eq!(response.desired.unwrap().resources["bucket"].ready(), NO);
    }
}

#[test]
fn upstream_tables_of_kinds() {
    for (folder, kind) in [
        ("cronjob", "CronJob"),
        ("daemonset", "DaemonSet"),
        ("deployment", "Deployment"),
        ("horizontalpodautoscaler", "HorizontalPodAutoscaler"),
        ("ingress", "Ingress"),
        ("job", "Job"),
        ("persistentvolumeclaim", "PersistentVolumeClaim"),
        ("pod", "Pod"),
        ("replicaset", "ReplicaSet"),
        ("service", "Service"),
        ("statefulset", "StatefulSet"),
    ] {
        for case in upstream::cases(&format!("function-auto-ready/{folder}/TestCheck{kind}Health")) {
            let object = &case["inputs"]["obj"];
            let expected = case["expected"]["expected"].as_bool().unwrap_or_default();
            assert_eq!(checks::is_ready(&kind_of(object), object), Some(expected), "{case}");
        }
    }
}

#[tokio::test]
async fn upstream_tables_of_expressions_and_times() {
    for case in upstream::cases("function-auto-ready/fn/TestCELHealthcheckCustomizations") {
        let request = RunFunctionRequest::deserialize(&case["inputs"]["req"]).unwrap();
        let response = run(&AutoReady, request, &[]).await;
        assert_eq!(serde_json::to_value(response).unwrap(), case["expected"]["rsp"], "{case}");
    }
    for case in upstream::cases("function-auto-ready/fn/TestRunFunctionCacheTTL") {
        let request = RequestBuilder::new(json!({})).input(case["inputs"]["input"].clone()).build();
        let response = serde_json::to_value(run(&AutoReady, request, &[]).await).unwrap();
        assert_eq!(response["meta"]["ttl"], case["expected"]["meta"]["ttl"], "{case}");
    }
}
