//! Who may do what: the admin everything, the anonymous nothing but health and version.

use http::Method;
use serde_json::json;
use std::time::{Duration, Instant};
use transom_testkit::process::{Client, Home, Plane};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

async fn until_ready(client: &Client) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while client.get("/readyz").await.expect("it answers").status != 200 {
        assert!(Instant::now() < deadline, "it does not become ready");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn readiness_waits_for_the_controllers() {
    let home = Home::new();
    let plane = Plane::start_with(&home, &["--with-controllers"]);
    let client = Client::connect(&plane.access).await.unwrap();
    until_ready(&client).await;
    let ready = client.get("/readyz?verbose").await.unwrap().text();
    assert!(ready.lines().any(|line| line == "[+]controllers ok"), "{ready}");
    assert_eq!(client.get("/readyz/controllers").await.unwrap().text(), "ok");
    let alive = client.get("/healthz?verbose").await.unwrap().text();
    assert!(!alive.contains("controllers"), "{alive}");
    drop(plane);
    let plane = Plane::start(&home);
    let client = Client::connect(&plane.access).await.unwrap();
    let ready = client.get("/readyz?verbose").await.unwrap();
    assert_eq!(ready.status, 200);
    assert!(!ready.text().contains("controllers"), "there are none");
}

#[tokio::test]
async fn the_anonymous_see_health_and_version_alone() {
    let home = Home::new();
    let plane = Plane::start(&home);
    let client = Client::connect(&plane.access.anonymous()).await.unwrap();
    until_ready(&client).await;
    for path in ["/healthz", "/livez", "/readyz", "/version", "/readyz?verbose"] {
        assert_eq!(client.get(path).await.unwrap().status, 200, "{path}");
    }
    for path in [
        "/",
        "/api",
        "/apis",
        "/api/v1",
        "/api/v1/namespaces",
        "/api/v1/namespaces/default/secrets?watch=1",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/openapi/v2",
        "/openapi/v3",
        "/metrics",
        "/healthzz",
        "/nothing/here",
        "/livez/ping",
    ] {
        client.get(path).await.unwrap().assert_status(403, path);
    }
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        for path in ["/api/v1/namespaces", "/healthz", "/version"] {
            let reply = client.send(client.request(method.clone(), path), "{}").await.unwrap();
            reply.assert_status(403, &format!("{method} {path}"));
        }
    }
    home.assert_no_panic();
}

#[tokio::test]
async fn a_credential_that_proves_nothing_is_refused() {
    let home = Home::new();
    let plane = Plane::start(&home);
    let client = Client::connect(&plane.access.anonymous()).await.unwrap();
    let forged = "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.e30.AAAA";
    for credential in ["Bearer nonsense", &format!("Bearer {forged}")] {
        for path in ["/api/v1/namespaces", "/healthz"] {
            let request = client.request(Method::GET, path).header("authorization", credential);
            client.send(request, "").await.unwrap().assert_status(401, credential);
        }
    }
    // Other schemes are not credentials here: the request is anonymous.
    for credential in ["Bearer", "Basic YWRtaW46YWRtaW4=", "", forged] {
        let request = |path: &str| client.request(Method::GET, path).header("authorization", credential);
        client.send(request("/api/v1/namespaces"), "").await.unwrap().assert_status(403, credential);
        assert_eq!(client.send(request("/healthz"), "").await.unwrap().status, 200, "{credential}");
    }
    let forged = plane.access.with_token(forged);
    Client::connect(&forged).await.unwrap().get("/api").await.unwrap().assert_status(401, "forged");
    home.assert_no_panic();
}

#[tokio::test]
async fn a_service_account_is_known_by_its_token_while_it_exists() {
    let home = Home::new();
    let plane = Plane::start(&home);
    let admin = plane.client().await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    assert_eq!(admin.post(ACCOUNTS, &account).await.unwrap().status, 201);
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let reply = admin.post(&format!("{ACCOUNTS}/robot/token"), &request).await.unwrap();
    assert_eq!(reply.status, 201, "{}", reply.text());
    let token = reply.json()["status"]["token"].as_str().unwrap().to_owned();

    let robot = Client::connect(&plane.access.with_token(&token)).await.unwrap();
    let reply = robot.get("/api/v1/namespaces").await.unwrap();
    reply.assert_status(403, "known, without rights");
    assert!(reply.text().contains("system:serviceaccount:default:robot"), "{}", reply.text());
    assert_eq!(robot.get("/healthz").await.unwrap().status, 200);

    let tampered = format!("{}A{}", &token[..40], &token[41..]);
    let tampered = Client::connect(&plane.access.with_token(&tampered)).await.unwrap();
    tampered.get("/api/v1/namespaces").await.unwrap().assert_status(401, "tampered");

    assert_eq!(admin.delete(&format!("{ACCOUNTS}/robot")).await.unwrap().status, 200);
    robot.get("/api/v1/namespaces").await.unwrap().assert_status(401, "the account is gone");
    home.assert_no_panic();
}

#[tokio::test]
async fn tokens_and_kubeconfigs_outlive_a_restart() {
    let home = Home::new();
    let plane = Plane::start(&home);
    let admin = plane.client().await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    assert_eq!(admin.post(ACCOUNTS, &account).await.unwrap().status, 201);
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let reply = admin.post(&format!("{ACCOUNTS}/robot/token"), &request).await.unwrap();
    let token = reply.json()["status"]["token"].as_str().unwrap().to_owned();
    let (address, before) = (plane.access.address.to_string(), plane.access.clone());
    drop(plane);

    let plane = Plane::start_with(&home, &["--listen", &address]);
    let admin = Client::connect(&before).await.unwrap();
    assert_eq!(admin.get("/api/v1/namespaces").await.unwrap().status, 200, "the kubeconfig from before");
    let robot = Client::connect(&plane.access.with_token(&token)).await.unwrap();
    robot.get("/api/v1/namespaces").await.unwrap().assert_status(403, "still known");
}
