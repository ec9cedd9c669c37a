//! What the audit log has of admission and authorization: annotations with Kubernetes' keys and values.

use crate::client::{Client, config_map};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use transom_apiserver::{
    AuditLog, Identity, Options, WebhookCall, WebhookCallError, WebhookCaller, async_trait,
};
use transom_audit::{Decision, Level, Request};
use transom_store::Store;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

/// Keeps the events of requests for ConfigMaps.
struct Log {
    level: Level,
    events: Mutex<Vec<Value>>,
}

impl AuditLog for Log {
    fn decide(&self, request: &Request<'_>) -> Decision {
        let level = if request.resource == "configmaps" { self.level } else { Level::None };
        Decision { level, omit_stages: vec!["RequestReceived".to_owned()], ..Decision::default() }
    }

    fn write(&self, event: &Value) {
        self.events.lock().unwrap().push(event.clone());
    }
}

impl Log {
    /// The annotations of the last request.
    fn annotations(&self) -> Value {
        self.events.lock().unwrap().last().unwrap()["annotations"].clone()
    }
}

/// Answers by the path of the URL.
struct Hooks;

#[async_trait]
impl WebhookCaller for Hooks {
    async fn call(&self, call: WebhookCall) -> Result<Bytes, WebhookCallError> {
        let review: Value = serde_json::from_slice(&call.body).unwrap();
        let path = call.url.split('?').next().unwrap().rsplit('/').next().unwrap();
        let patch = json!([{"op": "add", "path": "/data/added", "value": "<b>"}]);
        let annotations = json!({"why": format!("{path} says so"), "not a key": "x"});
        let mut response = match path {
            "fail" => return Err(WebhookCallError::connection("connect", "connection refused")),
            "change" => json!({"patchType": "JSONPatch", "patch": STANDARD.encode(patch.to_string())}),
            _ => json!({}),
        };
        (response["uid"], response["allowed"]) = (review["request"]["uid"].clone(), json!(path != "deny"));
        response["auditAnnotations"] = annotations;
        let answer =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        Ok(answer.to_string().into())
    }
}

async fn server(level: Level) -> (Client, Arc<Log>) {
    let log = Arc::new(Log { level, events: Mutex::default() });
    let store = Store::in_step(transom_store::Options::default());
    let audit: Arc<dyn AuditLog> = log.clone();
    let options = Options { webhooks: Some(Arc::new(Hooks)), audit: Some(audit), ..Options::default() };
    (Client::with(&store, options).await, log)
}

async fn write(client: &Client, plural: &str, kind: &str, name: &str, more: &Value) {
    let mut object =
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}});
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.post(&format!("{GROUP}/{plural}"), &object).await.expect(201);
}

async fn policy(client: &Client, name: &str, actions: &Value, more: &Value) {
    let mut spec = json!({"matchConstraints": {"resourceRules": [
        {"operations": ["*"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}]}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let spec = json!({"spec": spec});
    write(client, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", name, &spec).await;
    let spec = json!({"spec": {"policyName": name, "validationActions": actions}});
    let plural = "validatingadmissionpolicybindings";
    write(client, plural, "ValidatingAdmissionPolicyBinding", &format!("{name}-here"), &spec).await;
}

async fn hook(client: &Client, mutating: bool, path: &str, failure_policy: &str) {
    let (plural, kind) = if mutating {
        ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration")
    } else {
        ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration")
    };
    let webhook = json!({
        "name": format!("{path}.example.org"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": format!("https://hooks.example.org/{path}")}, "failurePolicy": failure_policy,
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
    });
    write(client, plural, kind, path, &json!({"webhooks": [webhook]})).await;
}

#[tokio::test]
async fn a_validation_that_fails_is_in_the_event_and_the_write_succeeds() {
    let (client, log) = server(Level::Metadata).await;
    let validations = json!([{"expression": "true"}, {"expression": "size(object.data) < 1", "message": "a & b"},
        {"expression": "false", "message": "another"}]);
    policy(&client, "p", &json!(["Audit", "Warn"]), &json!({"validations": validations})).await;
    client.post(MAPS, &config_map("a")).await.expect(201);
    let value = r#"[{"message":"a \u0026 b","policy":"p","binding":"p-here","expressionIndex":1,"validationActions":["Audit","Warn"]}]"#;
    assert_eq!(log.annotations()[FAILURE], value);
}

#[tokio::test]
async fn a_validation_without_a_value_is_in_the_event_too() {
    let (client, log) = server(Level::Metadata).await;
    let validations = json!([{"expression": "object.data.nothing == 'x'"}]);
    policy(&client, "p", &json!(["Audit"]), &json!({"validations": validations})).await;
    client.post(MAPS, &config_map("a")).await.expect(201);
    let value = log.annotations()[FAILURE].as_str().unwrap().to_owned();
    assert!(value.contains("resulted in error: no such key: nothing"), "{value}");
}

#[tokio::test]
async fn policies_add_annotations_of_their_own() {
    let (client, log) = server(Level::Metadata).await;
    let long = format!("'{}'", "y".repeat(11 * 1024));
    let expressions = [
        ("size", "string(size(object.data)) + ' entries '"),
        ("long", long.as_str()),
        ("empty", "' '"),
        ("none", "null"),
    ];
    let list = |all: &[(&str, &str)]| -> Value {
        all.iter().map(|(key, value)| json!({"key": key, "valueExpression": value})).collect()
    };
    let annotations = json!({"auditAnnotations": list(&expressions)});
    policy(&client, "p", &json!(["Deny"]), &annotations).await;
    // The same value through a second binding is there once.
    let second = json!({"spec": {"policyName": "p", "validationActions": ["Deny"]}});
    write(&client, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", "again", &second)
        .await;
    client.post(MAPS, &config_map("a")).await.expect(201);
    let made = log.annotations();
    assert_eq!(made["p/size"], "1 entries");
    assert_eq!(made["p/long"].as_str().unwrap().len(), 10 * 1024);
    assert!(made.get("p/empty").is_none() && made.get("p/none").is_none(), "{made}");
    // One that cannot be evaluated denies the request, even if no validation could.
    let broken = json!({"auditAnnotations": list(&[("x", "object.data.nothing")])});
    policy(&client, "broken", &json!(["Audit"]), &broken).await;
    let refused = client.post(MAPS, &config_map("b")).await.expect(422).json();
    assert!(refused["message"].as_str().unwrap().contains("no such key: nothing"), "{refused}");
}

#[tokio::test]
async fn webhooks_add_annotations_and_their_calls_are_recorded() {
    let (client, log) = server(Level::Request).await;
    hook(&client, true, "change", "Fail").await;
    hook(&client, true, "fail", "Ignore").await;
    hook(&client, false, "fail", "Ignore").await;
    hook(&client, false, "pass", "Fail").await;
    client.post(MAPS, &config_map("a")).await.expect(201);
    let made = log.annotations();
    assert_eq!(made["change.example.org/why"], "change says so");
    assert_eq!(made["pass.example.org/why"], "pass says so");
    assert!(made.as_object().unwrap().keys().all(|key| !key.contains("not a key")), "{made}");
    let mutation =
        |index: usize| made[format!("mutation.webhook.admission.k8s.io/round_0_index_{index}")].clone();
    assert_eq!(mutation(0), r#"{"configuration":"change","webhook":"change.example.org","mutated":true}"#);
    assert_eq!(mutation(1), r#"{"configuration":"fail","webhook":"fail.example.org","mutated":false}"#);
    assert_eq!(
        made["patch.webhook.admission.k8s.io/round_0_index_0"],
        r#"{"configuration":"change","webhook":"change.example.org","patch":[{"op":"add","path":"/data/added","value":"\u003cb\u003e"}],"patchType":"JSONPatch"}"#
    );
    let open = |phase: &str, index: usize| {
        made[format!("failed-open.{phase}.webhook.admission.k8s.io/round_0_index_{index}")].clone()
    };
    assert_eq!(
        (open("mutation", 1), open("validating", 0)),
        (json!("fail.example.org"), json!("fail.example.org"))
    );
    // A refusal has its annotations as well.
    hook(&client, false, "deny", "Fail").await;
    client.post(MAPS, &config_map("b")).await.expect(400);
    assert_eq!(log.annotations()["deny.example.org/why"], "deny says so");
}

#[tokio::test]
async fn patches_are_recorded_only_where_objects_are() {
    let (client, log) = server(Level::Metadata).await;
    hook(&client, true, "change", "Fail").await;
    client.post(MAPS, &config_map("a")).await.expect(201);
    let made = log.annotations();
    assert!(made.get("mutation.webhook.admission.k8s.io/round_0_index_0").is_some(), "{made}");
    assert!(made.get("patch.webhook.admission.k8s.io/round_0_index_0").is_none(), "{made}");
}

#[tokio::test]
async fn the_decision_is_recorded_with_its_reason() {
    let log = Arc::new(Log { level: Level::Metadata, events: Mutex::default() });
    let store = Store::in_step(transom_store::Options::default());
    let audit: Arc<dyn AuditLog> = log.clone();
    let admin = Client::with(&store, Options { rbac: true, audit: Some(audit), ..Options::default() }).await;
    let of = |decision: &str, reason: &str| json!({"authorization.k8s.io/decision": decision, "authorization.k8s.io/reason": reason});
    admin.get(MAPS).await.expect(200);
    assert_eq!(log.annotations(), of("allow", ""));
    let jane = admin.seen_by(Some(Identity::new("jane", [])));
    jane.get(MAPS).await.expect(403);
    assert_eq!(log.annotations(), of("forbid", ""));
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"}]});
    admin.post(&format!("{rbac}/namespaces/default/rolebindings"), &binding).await.expect(201);
    jane.get(MAPS).await.expect(200);
    let reason = r#"RBAC: allowed by RoleBinding "r/default" of ClusterRole "cluster-admin" to User "jane""#;
    assert_eq!(log.annotations(), of("allow", reason));
}
