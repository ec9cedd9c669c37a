//! The subresources of pods, for the programs that expect them: nothing here runs pods.

use crate::client::Client;
use http::Method;
use serde_json::{Value, json};
use transom_apiserver::{Identity, Options};
use transom_store::Store;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}})
}

/// A pod that a kubelet has reported as running.
async fn running(client: &Client, name: &str) {
    client.post(PODS, &pod(name)).await.expect(201);
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let status = json!({"status": {"phase": "Running", "conditions": ready}});
    client.merge(&format!("{PODS}/{name}/status"), &status).await.expect(200);
}

async fn budget(client: &Client, name: &str, status: &Value) {
    let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}});
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec});
    client.post(BUDGETS, &budget).await.expect(201);
    let mut status = status.clone();
    status["observedGeneration"] = json!(1);
    client.merge(&format!("{BUDGETS}/{name}/status"), &json!({"status": status})).await.expect(200);
}

fn binding(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}})
}

fn eviction(name: &str) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
}

#[tokio::test]
async fn they_are_discovered_and_described() {
    let client = Client::in_memory().await;
    let listed = client.get("/api/v1").await.expect(200).json();
    let find = |name: &str| {
        listed["resources"].as_array().unwrap().iter().find(|r| r["name"] == name).cloned().unwrap()
    };
    assert_eq!(find("pods/eviction")["verbs"], json!(["create"]));
    assert_eq!(
        (&find("pods/eviction")["group"], &find("pods/eviction")["kind"]),
        (&json!("policy"), &json!("Eviction"))
    );
    assert_eq!(find("pods/binding")["kind"], "Binding");
    assert_eq!(find("bindings")["verbs"], json!(["create"]));
    for name in ["pods/ephemeralcontainers", "pods/resize"] {
        assert_eq!(find(name)["verbs"], json!(["get", "patch", "update"]));
    }
    let document = client.get("/openapi/v3/api/v1").await.expect(200).json();
    let path = "/api/v1/namespaces/{namespace}/pods/{name}";
    for (sub, methods) in
        [("binding", &["post"][..]), ("eviction", &["post"]), ("resize", &["get", "put", "patch"])]
    {
        for method in methods {
            assert!(document["paths"][format!("{path}/{sub}")][method].is_object(), "{sub} {method}");
        }
    }
    assert!(document["components"]["schemas"]["io.k8s.api.policy.v1.Eviction"].is_object());
}

#[tokio::test]
async fn a_binding_assigns_a_pod_to_a_node_once() {
    let client = Client::in_memory().await;
    let made = client.post(PODS, &pod("p")).await.expect(201).json();
    let path = format!("{PODS}/p/binding");
    let other = client.post(&path, &binding("q")).await.expect(400).json();
    assert_eq!(other["message"], "name in URL does not match name in Binding object");
    let mut nowhere = binding("p");
    nowhere["target"]["name"] = "".into();
    assert_eq!(
        client.post(&path, &nowhere).await.expect(500).json()["message"],
        "target.name: Required value"
    );
    let mut stale = binding("p");
    stale["metadata"]["uid"] = "another".into();
    client.post(&path, &stale).await.expect(409);
    client.post(&format!("{path}?dryRun=All"), &binding("p")).await.expect(201);
    let mut labelled = binding("p");
    labelled["metadata"]["labels"] = json!({"zone": "z"});
    let done = client.post(&path, &labelled).await.expect(201).json();
    assert_eq!(
        (&done["kind"], &done["status"], &done["code"]),
        (&json!("Status"), &json!("Success"), &json!(201))
    );
    let bound = client.get(&format!("{PODS}/p")).await.json();
    assert_eq!(
        (&bound["spec"]["nodeName"], &bound["metadata"]["labels"]["zone"]),
        (&json!("n"), &json!("z"))
    );
    assert_eq!(bound["status"]["conditions"][0]["status"], "True");
    assert_eq!(bound["metadata"]["generation"], made["metadata"]["generation"]);
    assert_eq!(bound["metadata"]["managedFields"], made["metadata"]["managedFields"]);
    let again = client.post(&path, &binding("p")).await.expect(409).json();
    let why = "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n\"";
    assert_eq!(again["message"], why);
    client.post(&format!("{PODS}/q/binding"), &binding("q")).await.expect(404);
    client.get(&path).await.expect(405);
    // The older form has the name of the pod in the body.
    client.post(PODS, &pod("q")).await.expect(201);
    client.post("/api/v1/namespaces/default/bindings", &binding("q")).await.expect(201);
    assert_eq!(client.get(&format!("{PODS}/q")).await.json()["spec"]["nodeName"], "n");
    client.get("/api/v1/namespaces/default/bindings").await.expect(405);
}

#[tokio::test]
async fn an_eviction_deletes_a_pod_that_no_budget_needs() {
    let client = Client::in_memory().await;
    running(&client, "p").await;
    client.post(&format!("{PODS}/p/eviction"), &eviction("q")).await.expect(400);
    client.post(&format!("{PODS}/p/eviction?dryRun=All"), &eviction("p")).await.expect(201);
    let mut stale = eviction("p");
    stale["deleteOptions"] = json!({"preconditions": {"resourceVersion": "1"}});
    client.post(&format!("{PODS}/p/eviction"), &stale).await.expect(409);
    client.get(&format!("{PODS}/p")).await.expect(200);
    let done = client.post(&format!("{PODS}/p/eviction"), &eviction("p")).await.expect(201).json();
    assert_eq!(done["status"], "Success");
    client.get(&format!("{PODS}/p")).await.expect(404);
    client.post(&format!("{PODS}/p/eviction"), &eviction("p")).await.expect(404);
    client.get(&format!("{PODS}/p/eviction")).await.expect(405);
    // One that something still holds says why it goes.
    let mut held = pod("held");
    held["metadata"]["finalizers"] = json!(["example.org/hold"]);
    client.post(PODS, &held).await.expect(201);
    client.post(&format!("{PODS}/held/eviction"), &eviction("held")).await.expect(201);
    let going = client.get(&format!("{PODS}/held")).await.expect(200).json();
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    let conditions = going["status"]["conditions"].as_array().unwrap();
    assert!(
        conditions.iter().any(|c| c["type"] == "DisruptionTarget" && c["reason"] == "EvictionByEvictionAPI"),
        "{going}"
    );
}

#[tokio::test]
async fn a_budget_refuses_evictions_until_it_allows_one() {
    let client = Client::in_memory().await;
    budget(
        &client,
        "b",
        &json!({"currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2, "disruptionsAllowed": 0}),
    )
    .await;
    for name in ["one", "two"] {
        running(&client, name).await;
    }
    let refused = client.post(&format!("{PODS}/one/eviction"), &eviction("one")).await.expect(429).json();
    assert_eq!(refused["message"], "Cannot evict pod as it would violate the pod's disruption budget.");
    assert_eq!(
        refused["details"]["causes"][0],
        json!({"reason": "DisruptionBudget", "message": "The disruption budget b needs 2 healthy pods and has 2 currently"})
    );
    let status = json!({"status": {"disruptionsAllowed": 1, "currentHealthy": 3}});
    client.merge(&format!("{BUDGETS}/b/status"), &status).await.expect(200);
    client.post(&format!("{PODS}/one/eviction?dryRun=All"), &eviction("one")).await.expect(201);
    client.post(&format!("{PODS}/one/eviction"), &eviction("one")).await.expect(201);
    let used = client.get(&format!("{BUDGETS}/b")).await.json()["status"].clone();
    assert_eq!(used["disruptionsAllowed"], 0);
    assert!(used["disruptedPods"]["one"].is_string(), "{used}");
    client.post(&format!("{PODS}/two/eviction"), &eviction("two")).await.expect(429);
    // Pods that are not running disturb nothing.
    client.post(PODS, &pod("pending")).await.expect(201);
    client.post(&format!("{PODS}/pending/eviction"), &eviction("pending")).await.expect(201);
    budget(
        &client,
        "second",
        &json!({"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0, "disruptionsAllowed": 1}),
    )
    .await;
    let two = client.post(&format!("{PODS}/two/eviction"), &eviction("two")).await.expect(500).json();
    assert!(two["message"].as_str().unwrap().contains("more than one PodDisruptionBudget"), "{two}");
}

#[tokio::test]
async fn each_is_a_right_of_its_own() {
    let store = Store::in_memory(transom_store::Options::default());
    let admin = Client::with(&store, Options { rbac: true, ..Options::default() }).await;
    let jane = admin.seen_by(Some(Identity::new("jane", [])));
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"},
        "rules": [{"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}]});
    admin.post(&format!("{rbac}/roles"), &role).await.expect(201);
    let bound = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"}]});
    admin.post(&format!("{rbac}/rolebindings"), &bound).await.expect(201);
    admin.post(PODS, &pod("p")).await.expect(201);
    jane.post(&format!("{PODS}/p/binding"), &binding("p")).await.expect(403);
    jane.post("/api/v1/namespaces/default/bindings", &binding("p")).await.expect(403);
    for part in ["ephemeralcontainers", "resize"] {
        jane.get(&format!("{PODS}/p/{part}")).await.expect(403);
        jane.merge(&format!("{PODS}/p/{part}"), &json!({})).await.expect(403);
    }
    jane.delete(&format!("{PODS}/p")).await.expect(403);
    jane.post(&format!("{PODS}/p/eviction"), &eviction("p")).await.expect(201);
    admin.get(&format!("{PODS}/p")).await.expect(404);
}

#[tokio::test]
async fn ephemeral_containers_are_added_and_nothing_else_changes() {
    let client = Client::in_memory().await;
    let made = client.post(PODS, &pod("p")).await.expect(201).json();
    let path = format!("{PODS}/p/ephemeralcontainers");
    let debugger = json!({"name": "d", "image": "busybox", "targetContainerName": "c"});
    let patch = json!({"metadata": {"labels": {"app": "other"}}, "status": {"phase": "Running"},
        "spec": {"nodeName": "n", "ephemeralContainers": [debugger]}});
    let changed = client.merge(&path, &patch).await.expect(200).json();
    assert_eq!(changed["spec"]["ephemeralContainers"][0]["image"], "busybox");
    assert_eq!((&changed["metadata"]["labels"]["app"], changed["spec"].get("nodeName")), (&json!("a"), None));
    assert_eq!(
        (&changed["status"]["phase"], &changed["metadata"]["generation"]),
        (&json!("Pending"), &json!(2))
    );
    let managers = changed["metadata"]["managedFields"].as_array().unwrap();
    let part = managers.iter().find(|m| m["subresource"] == "ephemeralcontainers").unwrap();
    assert_eq!(
        part["fieldsV1"]["f:spec"].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["f:ephemeralContainers"]
    );
    assert_eq!(part["fieldsV1"].as_object().unwrap().len(), 1, "{part}");
    assert_eq!(client.get(&path).await.expect(200).json(), changed);
    let strategic = json!({"spec": {"ephemeralContainers": [{"name": "e", "image": "busybox"}]}});
    let two = client
        .send(Method::PATCH, &path, "application/strategic-merge-patch+json", &strategic)
        .await
        .expect(200)
        .json();
    assert_eq!(two["spec"]["ephemeralContainers"].as_array().unwrap().len(), 2);
    let removed = client.put(&path, &made).await.expect(409).json();
    assert!(removed["message"].as_str().unwrap().contains("has been modified"), "{removed}");
    let removed = client.merge(&path, &json!({"spec": {"ephemeralContainers": []}})).await.expect(422).json();
    assert!(
        removed["message"]
            .as_str()
            .unwrap()
            .contains("existing ephemeral containers \"d\" may not be removed"),
        "{removed}"
    );
    client.get(&format!("{PODS}/q/ephemeralcontainers")).await.expect(404);
    client.post(&path, &json!({})).await.expect(405);
    client.delete(&path).await.expect(405);
}

#[tokio::test]
async fn a_resize_changes_processors_and_memory_and_nothing_else() {
    let client = Client::in_memory().await;
    client.post(PODS, &pod("p")).await.expect(201);
    let path = format!("{PODS}/p/resize");
    let mut wanted = client.get(&path).await.expect(200).json();
    wanted["spec"]["containers"][0]["resources"]["requests"] = json!({"cpu": "2", "memory": "1Gi"});
    wanted["spec"]["containers"][0]["image"] = "other".into();
    wanted["metadata"]["labels"] = json!({});
    let changed = client.put(&path, &wanted).await.expect(200).json();
    let container = &changed["spec"]["containers"][0];
    assert_eq!((&container["resources"]["requests"]["cpu"], &container["image"]), (&json!("2"), &json!("i")));
    assert_eq!(
        (&changed["metadata"]["labels"]["app"], &changed["metadata"]["generation"]),
        (&json!("a"), &json!(2))
    );
    let refused = |containers: Value| {
        let (client, path) = (&client, &path);
        async move {
            let reply =
                client.merge(path, &json!({"spec": {"containers": containers}})).await.expect(422).json();
            reply["message"].as_str().unwrap().to_owned()
        }
    };
    let removed = refused(json!([{"name": "c", "image": "i"}])).await;
    assert!(removed.contains("resource requests cannot be removed"), "{removed}");
    let renamed = refused(
        json!([{"name": "x", "image": "i", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}]),
    )
    .await;
    assert!(renamed.contains("may not be renamed or reordered on resize"), "{renamed}");
    let applied = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"x": "y"}},
        "spec": {"containers": [{"name": "c", "image": "z", "resources": {"limits": {"memory": "2Gi"}}}]}});
    let media = "application/apply-patch+yaml";
    let done = client
        .send(Method::PATCH, &format!("{path}?fieldManager=me"), media, &applied)
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&done["spec"]["containers"][0]["image"], &done["metadata"]["labels"]),
        (&json!("i"), &json!({"app": "a"}))
    );
    assert_eq!(done["spec"]["containers"][0]["resources"]["limits"]["memory"], "2Gi");
}
