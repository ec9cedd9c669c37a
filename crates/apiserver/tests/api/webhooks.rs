//! Webhooks: which writes they see, what they may change, and what happens when they lie or fail. The calls are answered in
//! the process; `conformance/differential` and the process tests use real HTTPS servers.

use crate::client::{Client, config_map, definition};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use transom_apiserver::{Options, WebhookCall, WebhookCallError, WebhookCaller, async_trait};
use transom_store::Store;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1";

/// Answers by the path of the URL, and notes whom it was asked about.
#[derive(Default)]
struct Hooks(Mutex<Vec<String>>);

fn patched(change: &Value) -> Value {
    json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(change.to_string())})
}

#[async_trait]
impl WebhookCaller for Hooks {
    async fn call(&self, call: WebhookCall) -> Result<Bytes, WebhookCallError> {
        let review: Value = serde_json::from_slice(&call.body).unwrap();
        if review["kind"] == "ConversionReview" {
            return Ok(converted(&call.url, &review["request"]).to_string().into());
        }
        let request = &review["request"];
        let path = call.url.split('?').next().unwrap().rsplit('/').next().unwrap().to_owned();
        let connect = call.connect_to.map(|(host, port)| format!(" at {host}:{port}")).unwrap_or_default();
        let version = request["object"]["apiVersion"].as_str().unwrap_or("-").to_owned();
        let (operation, name) =
            (request["operation"].as_str().unwrap(), request["name"].as_str().unwrap_or("?"));
        self.0.lock().unwrap().push(format!("{path} {operation} {name} {version}{connect}"));
        let labels = request["object"]["metadata"]["labels"].clone();
        let mut response = match path.as_str() {
            "deny" => json!({"allowed": false, "status": {"code": 409, "reason": "Teapot", "message": "no"}}),
            "warn" => json!({"allowed": true, "warnings": ["mind the gap"]}),
            "label" => {
                let count = labels.as_object().map_or(0, serde_json::Map::len) + 1;
                let mut labels = labels.as_object().cloned().unwrap_or_default();
                labels.insert("count".into(), count.to_string().into());
                labels.insert(format!("by-{count}"), "label".into());
                patched(&json!([{"op": "add", "path": "/metadata/labels", "value": labels}]))
            }
            "rename" => patched(&json!([{"op": "replace", "path": "/metadata/name", "value": "other"}])),
            "move" => patched(&json!([{"op": "add", "path": "/metadata/namespace", "value": "kube-system"}])),
            "fail" => return Err(WebhookCallError::connection("connect", "connection refused")),
            "slow" => std::future::pending().await,
            _ => json!({"allowed": true}),
        };
        response["uid"] = if path == "liar" { json!("another") } else { request["uid"].clone() };
        let answer =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        Ok(answer.to_string().into())
    }
}

/// v1 has `spec.size`, v2 calls it `spec.width`.
fn converted(url: &str, request: &Value) -> Value {
    let desired = request["desiredAPIVersion"].as_str().unwrap();
    let names = if desired.ends_with("v2") { ("size", "width") } else { ("width", "size") };
    let convert = |object: &Value| {
        let mut object = object.clone();
        object["apiVersion"] = desired.into();
        if let Some(value) = object["spec"].as_object_mut().and_then(|spec| spec.remove(names.0)) {
            object["spec"][names.1] = value;
        }
        if url.contains("/lies") {
            object["metadata"]["uid"] = "another".into();
        }
        object
    };
    let objects: Vec<Value> = request["objects"].as_array().unwrap().iter().map(convert).collect();
    let result = if url.contains("/fails") {
        json!({"status": "Failure", "message": "cannot"})
    } else {
        json!({"status": "Success"})
    };
    let response = json!({"uid": request["uid"], "convertedObjects": objects, "result": result});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response})
}

fn shapes(path: &str) -> Value {
    let version = |name: &str, field: &str, storage: bool| {
        let spec =
            json!({"type": "object", "properties": {field: {"type": "integer"}, "note": {"type": "string"}}});
        json!({"name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "shapes.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": {"kind": "Shape", "plural": "shapes", "singular": "shape"},
            "versions": [version("v1", "size", true), version("v2", "width", false)],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                "clientConfig": {"url": format!("https://hooks.example.org/{path}")}}}}})
}

#[tokio::test]
async fn each_client_sees_its_version() {
    let (client, _) = server().await;
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    client.post(crds, &shapes("convert")).await.expect(201);
    let at = |version: &str| format!("/apis/example.org/{version}/namespaces/default/shapes");
    let shape = json!({"apiVersion": "example.org/v2", "kind": "Shape", "metadata": {"name": "s"}, "spec": {"width": 3}});
    let made = client.post(&at("v2"), &shape).await.expect(201).json();
    assert_eq!((&made["apiVersion"], &made["spec"]), (&json!("example.org/v2"), &json!({"width": 3})));
    let first = client.get(&format!("{}/s", at("v1"))).await.expect(200).json();
    assert_eq!((&first["apiVersion"], &first["spec"]), (&json!("example.org/v1"), &json!({"size": 3})));
    assert_eq!(first["metadata"]["uid"], made["metadata"]["uid"]);
    let changed =
        client.merge(&format!("{}/s", at("v2")), &json!({"spec": {"width": 4}})).await.expect(200).json();
    assert_eq!((&changed["spec"], &changed["metadata"]["generation"]), (&json!({"width": 4}), &json!(2)));
    let again =
        client.merge(&format!("{}/s", at("v2")), &json!({"spec": {"width": 4}})).await.expect(200).json();
    assert_eq!(
        again["metadata"]["resourceVersion"], changed["metadata"]["resourceVersion"],
        "nothing changed"
    );
    let list = client.get(&at("v2")).await.expect(200).json();
    assert_eq!(list["items"][0]["spec"], json!({"width": 4}));
    assert_eq!(client.get(&at("v1")).await.json()["items"][0]["spec"], json!({"size": 4}));
    client.delete(&format!("{}/s", at("v2"))).await.expect(200);
}

#[tokio::test]
async fn a_conversion_that_fails_or_lies_spoils_only_its_version() {
    let (client, _) = server().await;
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let at = |version: &str| format!("/apis/example.org/{version}/namespaces/default/shapes");
    client.post(crds, &shapes("lies")).await.expect(201);
    let shape = |version: &str, name: &str| json!({"apiVersion": format!("example.org/{version}"), "kind": "Shape", "metadata": {"name": name}});
    client.post(&at("v1"), &shape("v1", "s")).await.expect(201);
    let refused = client.get(&format!("{}/s", at("v2"))).await.expect(500).json();
    assert!(refused["message"].as_str().unwrap().contains("must have the same UID"), "{refused}");
    client.post(&at("v2"), &shape("v2", "t")).await.expect(500);
    client.get(&format!("{}/t", at("v1"))).await.expect(404);
    client.get(&format!("{}/s", at("v1"))).await.expect(200);
    let url = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"url": "https://hooks.example.org/fails"}}}}});
    client.merge(&format!("{crds}/shapes.example.org"), &url).await.expect(200);
    let refused = client.get(&at("v2")).await.expect(500).json();
    assert_eq!(refused["message"], "conversion webhook for example.org/v1, Kind=Shape failed: cannot");
}

async fn server() -> (Client, Arc<Hooks>) {
    let hooks = Arc::new(Hooks::default());
    let store = Store::in_step(transom_store::Options::default());
    let options = Options { webhooks: Some(hooks.clone()), ..Options::default() };
    (Client::with(&store, options).await, hooks)
}

fn taken(hooks: &Hooks) -> Vec<String> {
    std::mem::take(&mut *hooks.0.lock().unwrap())
}

fn hook(path: &str, more: &Value) -> Value {
    let mut hook = json!({
        "name": format!("{path}.example.org"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": format!("https://hooks.example.org/{path}")},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
    });
    hook.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    hook
}

async fn configure(client: &Client, kind: &str, name: &str, hooks: &[Value]) {
    let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
        "webhooks": hooks});
    client.post(&format!("{HOOKS}/{}s", kind.to_lowercase()), &object).await.expect(201);
}

const VALIDATING: &str = "ValidatingWebhookConfiguration";
const MUTATING: &str = "MutatingWebhookConfiguration";

#[tokio::test]
async fn a_configuration_is_in_force_until_it_is_deleted() {
    let (client, hooks) = server().await;
    client.post(MAPS, &config_map("before")).await.expect(201);
    configure(&client, VALIDATING, "x", &[hook("deny", &json!({}))]).await;
    let refused = client.post(MAPS, &config_map("a")).await.expect(409).json();
    assert_eq!(refused["message"], "admission webhook \"deny.example.org\" denied the request: no");
    assert_eq!(refused["reason"], "Teapot");
    client.merge(&format!("{MAPS}/before"), &json!({"data": {"k": "w"}})).await.expect(409);
    client.delete(&format!("{MAPS}/before")).await.expect(409);
    assert_eq!(taken(&hooks), ["deny CREATE a v1", "deny UPDATE before v1", "deny DELETE before -"]);
    client.get(&format!("{MAPS}/before")).await.expect(200);
    client.delete(&format!("{HOOKS}/validatingwebhookconfigurations/x")).await.expect(200);
    client.post(MAPS, &config_map("a")).await.expect(201);
    assert!(taken(&hooks).is_empty());
}

#[tokio::test]
async fn configurations_themselves_are_never_reviewed() {
    let (client, hooks) = server().await;
    let all = json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]});
    configure(&client, VALIDATING, "x", &[hook("deny", &all)]).await;
    configure(&client, MUTATING, "y", &[hook("deny", &all)]).await;
    client.post(MAPS, &config_map("a")).await.expect(409);
    client.delete(&format!("{HOOKS}/mutatingwebhookconfigurations/y")).await.expect(200);
    client.delete(&format!("{HOOKS}/validatingwebhookconfigurations/x")).await.expect(200);
    client.post(MAPS, &config_map("a")).await.expect(201);
    assert!(taken(&hooks).iter().all(|line| line.contains(" a ")));
}

#[tokio::test]
async fn selectors_and_conditions_choose() {
    let (client, hooks) = server().await;
    let spared = json!({"matchConditions": [{"name": "n", "expression": "request.name != 'spared'"}]});
    let labelled = json!({"objectSelector": {"matchLabels": {"watched": "yes"}}});
    let elsewhere =
        json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}});
    let cluster = json!({"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"], "scope": "Cluster"}]});
    let named = |path: &str, more: &Value| {
        let mut hook = hook(path, more);
        hook["name"] =
            format!("{path}-{}.example.org", more.as_object().unwrap().keys().next().unwrap().to_lowercase())
                .into();
        hook
    };
    configure(
        &client,
        VALIDATING,
        "x",
        &[named("a", &spared), named("b", &labelled), named("c", &elsewhere), named("d", &cluster)],
    )
    .await;
    client.post(MAPS, &config_map("spared")).await.expect(201);
    assert!(taken(&hooks).is_empty());
    let mut watched = config_map("w");
    watched["metadata"]["labels"] = json!({"watched": "yes"});
    client.post(MAPS, &watched).await.expect(201);
    assert_eq!(taken(&hooks), ["a CREATE w v1", "b CREATE w v1"]);
    client.merge(&format!("{MAPS}/w"), &json!({"metadata": {"labels": {"watched": null}}})).await.expect(200);
    assert_eq!(taken(&hooks), ["a UPDATE w v1", "b UPDATE w v1"], "the old object was selected");
    client.post("/api/v1/namespaces/kube-system/configmaps", &config_map("spared")).await.expect(201);
    assert_eq!(taken(&hooks), ["c CREATE spared v1"]);
}

#[tokio::test]
async fn failures_are_fatal_or_ignored() {
    let (client, _) = server().await;
    let ignore = json!({"failurePolicy": "Ignore", "timeoutSeconds": 1});
    configure(&client, VALIDATING, "a", &[hook("fail", &ignore), hook("liar", &ignore)]).await;
    client.post(MAPS, &config_map("a")).await.expect(201);
    for (path, expected) in [
        (
            "fail",
            "failed calling webhook \"fail.example.org\": failed to call webhook: Post \"https://hooks.example.org/fail?timeout=1s\": connect: connection refused",
        ),
        ("liar", "received invalid webhook response: expected response.uid="),
        ("slow", "context deadline exceeded"),
    ] {
        configure(&client, VALIDATING, "b", &[hook(path, &json!({"timeoutSeconds": 1}))]).await;
        let refused = client.post(MAPS, &config_map("b")).await.expect(500).json();
        assert!(refused["message"].as_str().unwrap().contains(expected), "{refused}");
        client.delete(&format!("{HOOKS}/validatingwebhookconfigurations/b")).await.expect(200);
    }
}

#[tokio::test]
async fn a_dry_run_reaches_only_webhooks_without_side_effects() {
    let (client, hooks) = server().await;
    configure(&client, VALIDATING, "a", &[hook("allow", &json!({}))]).await;
    client.post(&format!("{MAPS}?dryRun=All"), &config_map("a")).await.expect(201);
    assert_eq!(taken(&hooks), ["allow CREATE a v1"]);
    let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": VALIDATING, "metadata": {"name": "b"},
        "webhooks": [hook("allow", &json!({"sideEffects": "NoneOnDryRun"}))]});
    client.post(&format!("{HOOKS}/validatingwebhookconfigurations"), &object).await.expect(201);
    client.post(&format!("{MAPS}?dryRun=All"), &config_map("a")).await.expect(201);
    client.get(&format!("{MAPS}/a")).await.expect(404);
}

#[tokio::test]
async fn mutating_webhooks_follow_each_other_and_are_called_again() {
    let (client, hooks) = server().await;
    configure(&client, MUTATING, "a", &[hook("label", &json!({"reinvocationPolicy": "IfNeeded"}))]).await;
    let mut second = hook("label", &json!({}));
    second["name"] = "second.example.org".into();
    configure(&client, MUTATING, "b", &[second]).await;
    let made = client.post(MAPS, &config_map("a")).await.expect(201).json();
    assert_eq!(taken(&hooks).len(), 3, "the first is called again, the second is not");
    assert_eq!(made["metadata"]["labels"]["by-1"], "label");
    // What a webhook changes belongs to the manager of the request.
    client.get(&format!("{MAPS}/a")).await.expect(200);
}

#[tokio::test]
async fn a_webhook_cannot_rename_or_move_an_object() {
    let (client, _) = server().await;
    client.post(MAPS, &config_map("a")).await.expect(201);
    configure(&client, MUTATING, "a", &[hook("rename", &json!({}))]).await;
    client.merge(&format!("{MAPS}/a"), &json!({"data": {"k": "w"}})).await.expect(422);
    client.get(&format!("{MAPS}/other")).await.expect(404);
    client.delete(&format!("{HOOKS}/mutatingwebhookconfigurations/a")).await.expect(200);
    configure(&client, MUTATING, "b", &[hook("move", &json!({}))]).await;
    client.post(MAPS, &config_map("b")).await.expect(400);
    client.get("/api/v1/namespaces/kube-system/configmaps/b").await.expect(404);
}

#[tokio::test]
async fn services_are_resolved_to_their_endpoints() {
    let (client, hooks) = server().await;
    let service =
        json!({"clientConfig": {"service": {"namespace": "default", "name": "hooks", "path": "/allow"}}});
    configure(&client, VALIDATING, "a", &[hook("allow", &service)]).await;
    let message = |reply: Value| reply["message"].as_str().unwrap().to_owned();
    let refused = client.post(MAPS, &config_map("a")).await.expect(500).json();
    assert!(message(refused).contains("service \"hooks\" not found"));
    let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hooks"},
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 8443}]}});
    client.post("/api/v1/namespaces/default/services", &object).await.expect(201);
    let refused = client.post(MAPS, &config_map("a")).await.expect(500).json();
    assert!(message(refused).contains("no endpoints available for service \"hooks\""));
    let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "hooks-1", "labels": {"kubernetes.io/service-name": "hooks"}}, "addressType": "IPv4",
        "endpoints": [{"addresses": ["127.0.0.7"]}], "ports": [{"name": "https", "port": 8443}]});
    client.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &slice).await.expect(201);
    taken(&hooks);
    client.post(MAPS, &config_map("a")).await.expect(201);
    assert_eq!(taken(&hooks), ["allow CREATE a v1 at 127.0.0.7:8443"]);
}

#[tokio::test]
async fn equivalent_versions_are_converted_for_the_webhook() {
    let (client, hooks) = server().await;
    let mut two = definition("Widget");
    let mut other = two["spec"]["versions"][0].clone();
    (other["name"], other["storage"]) = (json!("v2"), json!(false));
    two["spec"]["versions"].as_array_mut().unwrap().push(other);
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &two).await.expect(201);
    let rules = |policy: &str| {
        json!({"matchPolicy": policy, "rules": [{"apiGroups": ["example.org"], "apiVersions": ["v1"],
        "operations": ["*"], "resources": ["widgets"]}]})
    };
    configure(
        &client,
        VALIDATING,
        "a",
        &[hook("equivalent", &rules("Equivalent")), hook("exact", &rules("Exact"))],
    )
    .await;
    let widget = json!({"apiVersion": "example.org/v2", "kind": "Widget", "metadata": {"name": "w"}});
    client.post("/apis/example.org/v2/namespaces/default/widgets", &widget).await.expect(201);
    assert_eq!(taken(&hooks), ["equivalent CREATE w example.org/v1"]);
}
