//! Admission policies with bindings and parameters.

use crate::client::{Client, config_map, widgets};
use serde_json::{Value, json};
use transom_apiserver::{Identity, Options};
use transom_store::Store;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

fn constraints(resource: &str) -> Value {
    json!({"resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": [resource]}]})
}

async fn write(client: &Client, kind: &str, name: &str, spec: &Value) {
    let plural = match kind.strip_suffix("Policy") {
        Some(stem) => format!("{}policies", stem.to_lowercase()),
        None => format!("{}s", kind.to_lowercase()),
    };
    let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    client.post(&format!("{GROUP}/{plural}"), &object).await.expect(201);
}

fn with_size(name: &str, size: usize) -> Value {
    let mut object = config_map(name);
    object["data"] =
        (0..size).map(|i| (format!("k{i}"), json!("v"))).collect::<serde_json::Map<_, _>>().into();
    object
}

#[tokio::test]
async fn a_policy_refuses_with_a_sentence_of_its_own() {
    let client = Client::in_memory().await;
    let spec = json!({"matchConstraints": constraints("configmaps"), "validations": [
        {"expression": "size(object.data) < 3", "messageExpression": "'has ' + string(size(object.data)) + ' entries'", "reason": "Forbidden"}]});
    write(&client, "ValidatingAdmissionPolicy", "small", &spec).await;
    client.post(MAPS, &with_size("unbound", 5)).await.expect(201);
    write(
        &client,
        "ValidatingAdmissionPolicyBinding",
        "here",
        &json!({"policyName": "small", "validationActions": ["Deny"]}),
    )
    .await;
    let refused = client.post(MAPS, &with_size("a", 4)).await.expect(403).json();
    let why = "ValidatingAdmissionPolicy 'small' with binding 'here' denied request: has 4 entries";
    assert_eq!(refused["message"], format!("configmaps \"a\" is forbidden: {why}"));
    client.post(MAPS, &with_size("a", 2)).await.expect(201);
    client.merge(&format!("{MAPS}/a"), &json!({"data": {"x": "y", "z": "z"}})).await.expect(403);
    client.delete(&format!("{MAPS}/a")).await.expect(200);
}

#[tokio::test]
async fn warnings_leave_the_write_alone() {
    let client = Client::in_memory().await;
    let spec = json!({"matchConstraints": constraints("configmaps"), "validations": [{"expression": "object.metadata.name != 'a'"}, {"expression": "object.metadata.labels['x'] == 'y'"}]});
    write(&client, "ValidatingAdmissionPolicy", "p", &spec).await;
    write(
        &client,
        "ValidatingAdmissionPolicyBinding",
        "b",
        &json!({"policyName": "p", "validationActions": ["Warn"]}),
    )
    .await;
    let mut labelled = config_map("a");
    labelled["metadata"]["labels"] = json!({"x": "y"});
    let warned = client.post(MAPS, &labelled).await.expect(201);
    let expected = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed expression: object.metadata.name != 'a'";
    assert!(warned.warnings().iter().any(|w| w.contains(expected)), "{:?}", warned.warnings());
    let warned = client.post(MAPS, &config_map("c")).await.expect(201);
    let expected = "resulted in error: no such key: labels";
    assert!(warned.warnings().iter().any(|w| w.contains(expected)), "{:?}", warned.warnings());
}

#[tokio::test]
async fn parameters_come_from_objects() {
    let client = Client::in_memory().await;
    let spec = json!({"matchConstraints": constraints("widgets"), "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "object.spec.replicas <= int(params.data.most)", "message": "too many"}]});
    write(&client, "ValidatingAdmissionPolicy", "p", &spec).await;
    let reference = |action: &str| json!({"name": "limits", "parameterNotFoundAction": action});
    write(
        &client,
        "ValidatingAdmissionPolicyBinding",
        "b",
        &json!({"policyName": "p", "validationActions": ["Deny"], "paramRef": reference("Deny")}),
    )
    .await;
    let (path, mut widget) = widgets(&client).await;
    let refused = client.post(&path, &widget).await.expect(422).json();
    assert!(refused["message"].as_str().unwrap().contains("no params found"), "{refused}");
    let limits = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "limits"}, "data": {"most": "2"}});
    client.post(MAPS, &limits).await.expect(201);
    client.post(&path, &widget).await.expect(201);
    (widget["metadata"]["name"], widget["spec"]["replicas"]) = (json!("big"), json!(3));
    client.post(&path, &widget).await.expect(422);
    client.merge(&format!("{MAPS}/limits"), &json!({"data": {"most": "3"}})).await.expect(200);
    client.post(&path, &widget).await.expect(201);
}

#[tokio::test]
async fn mutating_policies_fill_in() {
    let client = Client::in_memory().await;
    let spec = json!({"matchConstraints": constraints("configmaps"), "reinvocationPolicy": "Never", "mutations": [
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{metadata: Object.metadata{labels: {'owner': request.userInfo.username}}}"}},
        {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/data/added', value: string(size(object.data))}]"}}]});
    write(&client, "MutatingAdmissionPolicy", "m", &spec).await;
    write(&client, "MutatingAdmissionPolicyBinding", "b", &json!({"policyName": "m"})).await;
    let made = client.post(MAPS, &config_map("a")).await.expect(201).json();
    assert_eq!(
        (&made["metadata"]["labels"]["owner"], &made["data"]["added"]),
        (&json!("admin"), &json!("1"))
    );
    assert_eq!(made["data"]["k"], "v");
}

#[tokio::test]
async fn policies_that_cannot_work_are_not_accepted() {
    let client = Client::in_memory().await;
    let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"},
        "spec": {"matchConstraints": constraints("configmaps"), "validations": [{"expression": "objekt.x == 1"}]}});
    let refused =
        client.post(&format!("{GROUP}/validatingadmissionpolicies"), &object).await.expect(422).json();
    assert!(refused["message"].as_str().unwrap().contains("spec.validations[0].expression"), "{refused}");
}

#[tokio::test]
async fn policies_are_never_in_their_own_way() {
    let client = Client::in_memory().await;
    let spec = json!({"matchConstraints": {"resourceRules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]},
        "validations": [{"expression": "false"}]});
    write(&client, "ValidatingAdmissionPolicy", "p", &spec).await;
    write(
        &client,
        "ValidatingAdmissionPolicyBinding",
        "b",
        &json!({"policyName": "p", "validationActions": ["Deny"]}),
    )
    .await;
    client.post(MAPS, &config_map("a")).await.expect(422);
    client.delete(&format!("{GROUP}/validatingadmissionpolicybindings/b")).await.expect(200);
    client.post(MAPS, &config_map("a")).await.expect(201);
}

/// Policies can ask for rights that RBAC has no endpoint for.
#[tokio::test]
async fn a_policy_asks_what_the_client_may_do() {
    let store = Store::in_memory(transom_store::Options::default());
    let admin = Client::with(&store, Options { rbac: true, ..Options::default() }).await;
    let spec = json!({"matchConstraints": constraints("configmaps"),
        "matchConditions": [{"name": "people", "expression": "!authorizer.path('/metrics').check('get').allowed()"}],
        "validations": [
            {"expression": "authorizer.requestResource.check('release').allowed()", "message": "only releasers write here"},
            {"expression": "!authorizer.serviceAccount('default', 'default').group('').resource('secrets').namespace('default').check('get').allowed()"}]});
    write(&admin, "ValidatingAdmissionPolicy", "released", &spec).await;
    let binding = json!({"policyName": "released", "validationActions": ["Deny"]});
    write(&admin, "ValidatingAdmissionPolicyBinding", "released", &binding).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let grant = async |name: &str, resources: &str, verbs: &[&str], subject: Value| {
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name},
            "rules": [{"apiGroups": [""], "resources": [resources], "verbs": verbs}]});
        admin.post(&format!("{rbac}/roles"), &role).await.expect(201);
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}, "subjects": [subject]});
        admin.post(&format!("{rbac}/rolebindings"), &binding).await.expect(201);
    };
    let person = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"});
    grant("writes", "configmaps", &["create"], person.clone()).await;
    let jane = admin.seen_by(Some(Identity::new("jane", [])));
    let refused = jane.post(MAPS, &config_map("a")).await.expect(422).json();
    assert!(refused["message"].as_str().unwrap().ends_with("denied request: only releasers write here"));
    grant("releases", "configmaps", &["release"], person).await;
    jane.post(MAPS, &config_map("a")).await.expect(201);
    grant(
        "reads",
        "secrets",
        &["get"],
        json!({"kind": "ServiceAccount", "name": "default", "namespace": "default"}),
    )
    .await;
    let refused = jane.post(MAPS, &config_map("b")).await.expect(422).json();
    assert!(refused["message"].as_str().unwrap().contains("failed expression: !authorizer.serviceAccount("));
    // Who may read the metrics is not asked.
    admin.post(MAPS, &config_map("c")).await.expect(201);
}
