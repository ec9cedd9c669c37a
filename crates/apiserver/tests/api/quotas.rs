//! Quotas, limits, and what workloads say that nothing runs.

use crate::client::{Client, config_map};
use futures_util::future::join_all;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

async fn quota(client: &Client, hard: &Value) {
    let object = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}});
    client.post(QUOTAS, &object).await.expect(201);
    until_used(client, &json!({})).await;
}

/// Waits until the status has the limits, and these amounts in use.
async fn until_used(client: &Client, used: &Value) -> Value {
    loop {
        let status = client.get(&format!("{QUOTAS}/q")).await.expect(200).json()["status"].clone();
        let contains = used.as_object().unwrap().iter().all(|(name, amount)| status["used"][name] == *amount);
        if status["hard"].is_object() && contains {
            return status;
        }
        tokio::task::yield_now().await;
    }
}

async fn with_upkeep() -> (Client, tokio::task::JoinHandle<()>) {
    let client = Client::in_memory().await;
    let server = client.server.clone();
    (client, tokio::spawn(async move { server.run_upkeep().await }))
}

#[tokio::test]
async fn a_quota_is_never_exceeded_by_writes_at_once() {
    let (client, upkeep) = with_upkeep().await;
    quota(&client, &json!({"count/configmaps": "10"})).await;
    let names: Vec<Value> = (0..40).map(|i| config_map(&format!("m{i}"))).collect();
    let replies = join_all(names.iter().map(|object| client.post(MAPS, object))).await;
    let refused: Vec<Value> =
        replies.into_iter().filter(|r| r.status != 201).map(|r| r.expect(403).json()).collect();
    let items = client.get(MAPS).await.json()["items"].as_array().unwrap().clone();
    assert_eq!(items.len(), 10, "the namespace may have others");
    let made = items.iter().filter(|o| o["metadata"]["name"].as_str().unwrap().starts_with('m')).count();
    assert_eq!(refused.len(), 40 - made);
    let message = refused[0]["message"].as_str().unwrap();
    assert!(message.contains("is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=10, limited: count/configmaps=10"), "{message}");
    // A refused and a failed write are not charged; a deletion is given back.
    client.delete(&format!("{MAPS}/{}", taken(&client).await)).await.expect(200);
    until_used(&client, &json!({"count/configmaps": "9"})).await;
    client.post(MAPS, &config_map("again")).await.expect(201);
    client.post(MAPS, &config_map("again")).await.expect(403);
    upkeep.abort();
}

/// The name of one that was created.
async fn taken(client: &Client) -> String {
    let items = client.get(MAPS).await.json()["items"].clone();
    let names = items.as_array().unwrap().iter().map(|o| o["metadata"]["name"].as_str().unwrap().to_owned());
    names.clone().find(|name| name.starts_with('m')).unwrap()
}

#[tokio::test]
async fn a_write_that_fails_is_given_back() {
    let (client, upkeep) = with_upkeep().await;
    quota(&client, &json!({"count/configmaps": "50"})).await;
    client.post(MAPS, &config_map("a")).await.expect(201);
    let before = client.get(&format!("{QUOTAS}/q")).await.json()["status"]["used"].clone();
    client.post(MAPS, &config_map("a")).await.expect(409);
    client.post(&format!("{MAPS}?dryRun=All"), &config_map("b")).await.expect(201);
    assert_eq!(client.get(&format!("{QUOTAS}/q")).await.json()["status"]["used"], before);
    upkeep.abort();
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

#[tokio::test]
async fn limit_ranges_fill_pods_and_refuse_them() {
    let client = Client::in_memory().await;
    let range = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "500m"}}]}});
    client.post("/api/v1/namespaces/default/limitranges", &range).await.expect(201);
    let made = client.post("/api/v1/namespaces/default/pods", &pod("p")).await.expect(201).json();
    assert_eq!(
        made["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "500m"}})
    );
    let mut large = pod("large");
    large["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "2".into();
    let refused = client.post("/api/v1/namespaces/default/pods", &large).await.expect(403).json();
    assert!(
        refused["message"].as_str().unwrap().contains("maximum cpu usage per Container is 1, but limit is 2")
    );
}

#[tokio::test]
async fn workloads_say_that_nothing_runs_them() {
    let client = Client::in_memory().await;
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let reply = client.post(path, &deployment).await.expect(201);
    assert!(
        reply.warnings().iter().any(|w| w.contains("stored but has no effect")),
        "{:?}",
        reply.warnings()
    );
    let status = reply.json()["status"].clone();
    assert_eq!(status["conditions"][0]["reason"], "ProgressDeadlineExceeded");
    assert!(status["conditions"][1]["message"].as_str().unwrap().contains("nothing runs pods"));
    let scaled =
        client.merge(&format!("{path}/d"), &json!({"spec": {"replicas": 3}})).await.expect(200).json();
    assert_eq!(
        (&scaled["metadata"]["generation"], &scaled["status"]["observedGeneration"]),
        (&json!(2), &json!(2))
    );
    // A controller that takes the object over has the last word.
    let owned = json!({"status": {"conditions": [{"type": "Available", "status": "True", "reason": "x", "message": "y", "lastTransitionTime": null}]}});
    client.merge(&format!("{path}/d/status"), &owned).await.expect(200);
    let changed =
        client.merge(&format!("{path}/d"), &json!({"spec": {"replicas": 4}})).await.expect(200).json();
    assert_eq!(changed["status"]["observedGeneration"], 2, "{}", changed["status"]);
    let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}});
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    let made = client.post("/apis/batch/v1/namespaces/default/jobs", &job).await.expect(201).json();
    assert_eq!(made["status"]["conditions"][0]["type"], "Failed");
    let uid = made["metadata"]["uid"].clone();
    assert_eq!(made["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"], uid);
    let others = [
        ("StatefulSet", "statefulsets", &["Stalled"][..]),
        ("DaemonSet", "daemonsets", &["Stalled"]),
        ("ReplicaSet", "replicasets", &["ReplicaFailure", "Stalled"]),
    ];
    for (kind, plural, conditions) in others {
        let mut object = deployment.clone();
        (object["kind"], object["spec"]["serviceName"]) = (kind.into(), "s".into());
        let reply =
            client.post(&format!("/apis/apps/v1/namespaces/default/{plural}"), &object).await.expect(201);
        assert!(reply.warnings().iter().any(|w| w.contains("stored but has no effect")), "{kind}");
        let status = reply.json()["status"].clone();
        let made: Vec<&Value> = status["conditions"].as_array().unwrap().iter().collect();
        assert_eq!(made.iter().map(|c| &c["type"]).collect::<Vec<_>>(), conditions, "{kind}");
        for condition in made {
            assert_eq!(
                (&condition["status"], &condition["reason"]),
                (&json!("True"), &json!("NothingRunsPods"))
            );
            assert!(condition["message"].as_str().unwrap().contains("nothing runs pods"), "{kind}");
        }
        assert_eq!(status["observedGeneration"], 1, "{kind}");
    }
}
