//! status, scale, finalize and token; and reviews.

use crate::client::{Client, Reply, widgets};
use http::Method;
use serde_json::{Value, json};
use transom_apiserver::Identity;

#[tokio::test]
async fn a_status_is_written_apart_from_the_object() {
    let client = Client::in_memory().await;
    let (path, mut widget) = widgets(&client).await;
    widget["status"] = json!({"replicas": 9});
    let created = client.post(&path, &widget).await.expect(201).json();
    assert!(created.get("status").is_none(), "not set through the object");
    let (object, status) = (format!("{path}/w"), format!("{path}/w/status"));
    let both = json!({"spec": {"replicas": 7}, "status": {"replicas": 1}});
    let patched = client.merge(&status, &both).await.expect(200).json();
    assert_eq!((&patched["spec"]["replicas"], &patched["status"]["replicas"]), (&json!(2), &json!(1)));
    assert_eq!(patched["metadata"]["generation"], 1);
    let patched = client.merge(&object, &both).await.expect(200).json();
    assert_eq!((&patched["spec"]["replicas"], &patched["metadata"]["generation"]), (&json!(7), &json!(2)));
    assert_eq!(client.get(&status).await.expect(200).json(), patched);
    let mut replaced = patched.clone();
    replaced["status"]["replicas"] = 3.into();
    assert_eq!(client.put(&status, &replaced).await.expect(200).json()["status"]["replicas"], 3);
    let apply = json!({
        "apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}, "status": {"replicas": 3},
    });
    let path = format!("{status}?fieldManager=me");
    client.send(Method::PATCH, &path, "application/apply-patch+yaml", &apply).await.expect(200);
    client.delete(&status).await.expect(405);
}

#[tokio::test]
async fn a_scale_reads_and_writes_the_count() {
    let client = Client::in_memory().await;
    let (path, widget) = widgets(&client).await;
    client.post(&path, &widget).await.expect(201);
    let scale = format!("{path}/w/scale");
    let mut read = client.get(&scale).await.expect(200).json();
    assert_eq!((&read["kind"], &read["spec"]), (&json!("Scale"), &json!({"replicas": 2})));
    read["spec"]["replicas"] = 4.into();
    assert_eq!(client.put(&scale, &read).await.expect(200).json()["spec"]["replicas"], 4);
    client.put(&scale, &read).await.expect(409);
    client.merge(&scale, &json!({"spec": {"replicas": 5}})).await.expect(200);
    let apply = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "w"}, "spec": {"replicas": 6},
    });
    let send = |query: &str| {
        let (client, path, apply) = (client.clone(), format!("{scale}?{query}"), apply.clone());
        async move { client.send(Method::PATCH, &path, "application/apply-patch+yaml", &apply).await }
    };
    send("fieldManager=me").await.expect(409);
    send("fieldManager=me&force=true").await.expect(200);
    let object = client.get(&format!("{path}/w")).await.json();
    assert_eq!(object["spec"]["replicas"], 6);
    let owners = object["metadata"]["managedFields"].as_array().unwrap();
    assert!(
        owners.iter().any(|m| m["manager"] == "me" && m["fieldsV1"]["f:spec"].get("f:replicas").is_some())
    );
    client.merge(&scale, &json!({"spec": {"replicas": -1}})).await.expect(422);
}

#[tokio::test]
async fn what_has_no_such_subresource_is_not_found() {
    let client = Client::in_memory().await;
    let (path, widget) = widgets(&client).await;
    client.post(&path, &widget).await.expect(201);
    for path in [format!("{path}/w/token"), format!("{path}/w/exec")] {
        client.get(&path).await.expect(404);
    }
    client.get("/api/v1/namespaces/default/configmaps/a/status").await.expect(404);
}

#[tokio::test]
async fn finalize_removes_what_holds_a_namespace() {
    let client = Client::in_memory().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let mut created = client.post("/api/v1/namespaces", &namespace).await.expect(201).json();
    assert_eq!(created["spec"]["finalizers"], json!(["kubernetes"]));
    created["spec"] = json!({});
    let kept = client.put("/api/v1/namespaces/n", &created).await.expect(200).json();
    assert_eq!(kept["spec"]["finalizers"], json!(["kubernetes"]), "not through the object");
    let deleting = client.delete("/api/v1/namespaces/n").await.expect(200).json();
    assert_eq!(deleting["status"]["phase"], "Terminating");
    client.put("/api/v1/namespaces/n/finalize", &namespace).await.expect(200);
    client.get("/api/v1/namespaces/n").await.expect(404);
}

async fn account(client: &Client) -> String {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa"}});
    client.post("/api/v1/namespaces/default/serviceaccounts", &account).await.expect(201);
    "/api/v1/namespaces/default/serviceaccounts/sa".to_owned()
}

#[tokio::test]
async fn a_token_authenticates_while_its_account_exists() {
    let client = Client::in_memory().await;
    let account = account(&client).await;
    let issued = client.post(&format!("{account}/token"), &json!({})).await.expect(201).json();
    assert_eq!(issued["spec"]["expirationSeconds"], 3600);
    let token = issued["status"]["token"].as_str().unwrap().to_owned();
    let anonymous = client.seen_by(None);
    let bearer = [("authorization", format!("Bearer {token}"))];
    let with_token = |path: &'static str| {
        let (anonymous, bearer) = (anonymous.clone(), bearer.clone());
        async move { anonymous.send_with(Method::GET, path, &bearer, &Value::Null).await.status }
    };
    assert_eq!(with_token("/api").await, 200);
    assert_eq!(with_token("/api/v1/secrets").await, 403);
    let review = json!({"spec": {"token": token}});
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let status = client.post(path, &review).await.expect(201).json()["status"].clone();
    assert_eq!(status["user"]["username"], "system:serviceaccount:default:sa");
    client.delete(&account).await.expect(200);
    assert_eq!(with_token("/api").await, 401);
    assert_eq!(
        client.post(path, &review).await.expect(201).json()["status"]["error"],
        "invalid bearer token"
    );
}

#[tokio::test]
async fn token_requests_are_validated() {
    let client = Client::in_memory().await;
    let token = format!("{}/token", account(&client).await);
    client.post(&token, &json!({"spec": {"expirationSeconds": 60}})).await.expect(422);
    let bound = json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "none"}}});
    client.post(&token, &bound).await.expect(404);
    client.post("/api/v1/namespaces/default/serviceaccounts/none/token", &json!({})).await.expect(404);
    client.get(&token).await.expect(405);
}

#[tokio::test]
async fn reviews_report_identity_and_rights() {
    let client = Client::in_memory().await;
    let jane = client.seen_by(Some(Identity::new("jane", ["devs".to_owned()])));
    let status = |reply: Reply| reply.expect(201).json()["status"].clone();
    let myself = jane.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({})).await;
    let groups = json!(["devs", "system:authenticated"]);
    assert_eq!(status(myself), json!({"userInfo": {"username": "jane", "groups": groups}}));
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let about = |user: &str, groups: Value| json!({"spec": {"user": user, "groups": groups, "nonResourceAttributes": {"verb": "get", "path": "/metrics"}}});
    let allowed = client.post(path, &about("root", json!(["system:masters"]))).await;
    assert_eq!(status(allowed), json!({"allowed": true}));
    assert_eq!(status(client.post(path, &about("jane", json!([]))).await), json!({"allowed": false}));
    client.post(path, &about("", json!([]))).await.expect(422);
    let rules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let all = status(client.post(rules, &json!({"spec": {"namespace": "default"}})).await);
    assert_eq!(all["resourceRules"], json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]));
    let few = status(jane.post(rules, &json!({"spec": {"namespace": "default"}})).await);
    assert_eq!(few["resourceRules"], json!([]));
    client.get(rules).await.expect(405);
}
