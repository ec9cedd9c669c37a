//! The audit log: who did what, and nothing of credentials.

use super::{CONFIG_MAPS, config_map, refused};
use serde_json::{Value, json};
use transom_testkit::process::{Client, Home, Plane};

const POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, verbs: [list]}
- {level: RequestResponse}
";

#[tokio::test]
async fn requests_are_recorded_as_the_policy_says_and_secrets_never() {
    let home = Home::new();
    let (policy, log) = (home.root().join("policy.yaml"), home.root().join("audit.log"));
    std::fs::write(&policy, POLICY).unwrap();
    let args = ["--audit-policy-file", policy.to_str().unwrap(), "--audit-log-path", log.to_str().unwrap()];
    let plane = Plane::start_with(&home, &args);
    let admin = plane.client().await;
    assert_eq!(admin.post(CONFIG_MAPS, &config_map("a")).await.unwrap().status, 201, "a");
    assert_eq!(admin.get(CONFIG_MAPS).await.unwrap().status, 200, "the list");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "hunter2-hunter2"}});
    assert_eq!(admin.post("/api/v1/namespaces/default/secrets", &secret).await.unwrap().status, 201, "s");
    let request = admin
        .request(http::Method::GET, "/api/v1/namespaces/default/configmaps/a")
        .header("impersonate-user", "jane");
    admin.send(request, "").await.unwrap().assert_status(403, "jane");
    let stranger = Client::connect(&plane.access.with_token("nonsense-nonsense")).await.unwrap();
    stranger.get("/api").await.unwrap().assert_status(401, "a stranger");
    let text = std::fs::read_to_string(&log).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |verb: &str, resource: &str| {
        events.iter().find(|e| e["verb"] == verb && e["objectRef"]["resource"] == resource)
    };
    let created = of("create", "configmaps").unwrap();
    assert_eq!(
        (&created["user"]["username"], &created["responseStatus"]["code"]),
        (&json!("transom-admin"), &json!(201))
    );
    assert_eq!(created["requestObject"]["data"], json!({"k": "v"}));
    assert_eq!(created["responseObject"]["metadata"]["name"], "a");
    assert_eq!(created["sourceIPs"], json!(["127.0.0.1"]));
    let why = json!({"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""});
    assert_eq!(created["annotations"], why);
    assert!(of("list", "configmaps").is_none());
    assert_eq!(of("create", "secrets").unwrap()["level"], "Metadata");
    let denied = of("get", "configmaps").unwrap();
    assert_eq!(denied["impersonatedUser"]["username"], "jane");
    assert_eq!(denied["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert!(events.iter().any(|e| e["responseStatus"]["code"] == 401), "a refused credential is recorded");
    for secret in ["hunter2", "aHVudGVyMi", "nonsense-nonsense"] {
        assert!(!text.contains(secret), "{secret}");
    }
    home.assert_no_panic();
}

#[test]
fn a_policy_that_cannot_be_used_prevents_the_start() {
    let home = Home::new();
    let policy = home.root().join("policy.yaml");
    std::fs::write(&policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Everything}]\n")
        .unwrap();
    let log = home.root().join("audit.log");
    let args = ["--audit-policy-file", policy.to_str().unwrap(), "--audit-log-path", log.to_str().unwrap()];
    let why = refused(&home, &args);
    assert!(why.contains("rules[0].level: must be None, Metadata, Request or RequestResponse"), "{why}");
}
