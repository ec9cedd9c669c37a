//! Roles and bindings decide, and what a client could try in order to get more than they give.

use crate::client::{Client, config_map, widgets};
use http::Method;
use serde_json::{Value, json};
use transom_apiserver::{Attributes, Authorizer, Decision, Identity, Options, async_trait};
use transom_store::Store;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

async fn server() -> Client {
    let store = Store::in_memory(transom_store::Options::default());
    Client::with(&store, Options { rbac: true, ..Options::default() }).await
}

fn user(client: &Client, name: &str) -> Client {
    client.seen_by(Some(Identity::new(name, [])))
}

fn object(kind: &str, name: &str, more: &Value) -> Value {
    let mut object =
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}});
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

fn role(kind: &str, name: &str, group: &str, resource: &str, verbs: &[&str]) -> Value {
    let rules = json!([{"apiGroups": [group], "resources": [resource], "verbs": verbs}]);
    object(kind, name, &json!({"rules": rules}))
}

fn binding(kind: &str, name: &str, role: &str, subject: &Value) -> Value {
    let role_kind = if role.starts_with("local") { "Role" } else { "ClusterRole" };
    let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role});
    object(kind, name, &json!({"roleRef": reference, "subjects": [subject]}))
}

fn jane() -> Value {
    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"})
}

/// Gives jane verbs on a resource of all namespaces.
async fn grant(admin: &Client, name: &str, group: &str, resource: &str, verbs: &[&str]) {
    let made = role("ClusterRole", name, group, resource, verbs);
    admin.post(&format!("{RBAC}/clusterroles"), &made).await.expect(201);
    let bound = binding("ClusterRoleBinding", name, name, &jane());
    admin.post(&format!("{RBAC}/clusterrolebindings"), &bound).await.expect(201);
}

#[tokio::test]
async fn a_binding_counts_at_once_and_until_it_is_deleted() {
    let admin = server().await;
    let jane_client = user(&admin, "jane");
    jane_client.get(MAPS).await.expect(403);
    let local = format!("{RBAC}/namespaces/default");
    admin
        .post(&format!("{local}/rolebindings"), &binding("RoleBinding", "b", "local", &jane()))
        .await
        .expect(201);
    let denied = jane_client.get(MAPS).await.expect(403).json();
    assert!(
        denied["message"].as_str().unwrap().ends_with("role.rbac.authorization.k8s.io \"local\" not found")
    );
    admin
        .post(&format!("{local}/roles"), &role("Role", "local", "", "configmaps", &["get", "list"]))
        .await
        .expect(201);
    jane_client.get(MAPS).await.expect(200);
    jane_client.post(MAPS, &config_map("a")).await.expect(403);
    jane_client.get("/api/v1/configmaps").await.expect(403);
    jane_client.get("/api/v1/namespaces/kube-system/configmaps").await.expect(403);
    admin
        .merge(
            &format!("{local}/roles/local"),
            &json!({"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]}),
        )
        .await
        .expect(200);
    jane_client.get(MAPS).await.expect(403);
    jane_client.post(MAPS, &config_map("a")).await.expect(201);
    admin.delete(&format!("{local}/rolebindings/b")).await.expect(200);
    jane_client.post(MAPS, &config_map("b")).await.expect(403);
}

#[tokio::test]
async fn names_restrict_also_lists_that_select_one() {
    let admin = server().await;
    let rules =
        json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"], "verbs": ["*"]}]);
    admin
        .post(&format!("{RBAC}/clusterroles"), &object("ClusterRole", "one", &json!({"rules": rules})))
        .await
        .expect(201);
    admin
        .post(&format!("{RBAC}/clusterrolebindings"), &binding("ClusterRoleBinding", "one", "one", &jane()))
        .await
        .expect(201);
    admin.post(MAPS, &config_map("mine")).await.expect(201);
    let jane = user(&admin, "jane");
    jane.get(&format!("{MAPS}/mine")).await.expect(200);
    jane.get(&format!("{MAPS}/yours")).await.expect(403);
    jane.get(MAPS).await.expect(403);
    jane.get(&format!("{MAPS}?fieldSelector=metadata.name%3Dmine")).await.expect(200);
    jane.get(&format!("{MAPS}?fieldSelector=metadata.name%3Dyours")).await.expect(403);
    jane.get(&format!("{MAPS}?fieldSelector=metadata.name!%3Dmine")).await.expect(403);
    jane.post(MAPS, &config_map("mine")).await.expect(403);
    jane.delete(&format!("{MAPS}?fieldSelector=metadata.name%3Dmine")).await.expect(403);
    jane.delete(&format!("{MAPS}/mine")).await.expect(200);
}

#[tokio::test]
async fn subresources_are_rights_of_their_own() {
    let admin = server().await;
    let (path, widget) = widgets(&admin).await;
    admin.post(&path, &widget).await.expect(201);
    grant(&admin, "objects", "example.org", "widgets", &["get", "update", "patch"]).await;
    let jane = user(&admin, "jane");
    let live = jane.get(&format!("{path}/w")).await.expect(200).json();
    for sub in ["status", "scale", "approval", "finalize", "token", "nonsense"] {
        jane.get(&format!("{path}/w/{sub}")).await.expect(403);
        jane.put(&format!("{path}/w/{sub}"), &live).await.expect(403);
        jane.merge(&format!("{path}/w/{sub}"), &json!({})).await.expect(403);
    }
    jane.put("/api/v1/namespaces/default/finalize", &json!({"metadata": {"name": "default"}}))
        .await
        .expect(403);
    grant(&admin, "scales", "*", "*/scale", &["get"]).await;
    jane.get(&format!("{path}/w/scale")).await.expect(200);
    jane.get(&format!("{path}/w/status")).await.expect(403);
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    grant(&admin, "accounts", "", "serviceaccounts", &["*"]).await;
    jane.post("/api/v1/namespaces/default/serviceaccounts/default/token", &token).await.expect(403);
}

#[tokio::test]
async fn no_one_gives_more_than_they_have() {
    let admin = server().await;
    for resource in ["roles", "clusterroles", "rolebindings", "clusterrolebindings"] {
        grant(
            &admin,
            &format!("write-{resource}"),
            "rbac.authorization.k8s.io",
            resource,
            &["create", "update", "patch", "get"],
        )
        .await;
    }
    grant(&admin, "maps", "", "configmaps", &["get"]).await;
    let jane = user(&admin, "jane");
    let roles = format!("{RBAC}/clusterroles");
    let more = role("ClusterRole", "more", "", "secrets", &["get"]);
    let refused = jane.post(&roles, &more).await.expect(403).json();
    assert_eq!(
        refused["message"],
        "clusterroles.rbac.authorization.k8s.io \"more\" is forbidden: user \"jane\" (groups=[\"system:authenticated\"]) is \
         attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}"
    );
    jane.put(&format!("{roles}/more"), &more).await.expect(403);
    jane.send(Method::PATCH, &format!("{roles}/more?fieldManager=m"), "application/apply-patch+yaml", &more)
        .await
        .expect(403);
    jane.post(&format!("{roles}?dryRun=All"), &more).await.expect(403);
    jane.post(&roles, &role("ClusterRole", "same", "", "configmaps", &["get"])).await.expect(201);
    jane.merge(&format!("{roles}/same"), &json!({"rules": more["rules"]})).await.expect(403);
    jane.merge(&format!("{roles}/same"), &json!({"metadata": {"labels": {"a": "b"}}})).await.expect(200);
    // Binding what others made.
    let bindings = format!("{RBAC}/clusterrolebindings");
    jane.post(&bindings, &binding("ClusterRoleBinding", "x", "cluster-admin", &self::jane()))
        .await
        .expect(403);
    jane.post(&bindings, &binding("ClusterRoleBinding", "x", "absent", &self::jane())).await.expect(404);
    jane.post(&bindings, &binding("ClusterRoleBinding", "x", "same", &self::jane())).await.expect(201);
    let local = format!("{RBAC}/namespaces/default/rolebindings");
    jane.post(&local, &binding("RoleBinding", "x", "admin", &self::jane())).await.expect(403);
    // Collecting what others have.
    let label = json!({"matchLabels": {"kubernetes.io/bootstrapping": "rbac-defaults"}});
    let collector =
        object("ClusterRole", "all", &json!({"aggregationRule": {"clusterRoleSelectors": [label]}}));
    let refused = jane.post(&roles, &collector).await.expect(403).json();
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .ends_with("must have cluster-admin privileges to use the aggregationRule")
    );
    // With the verbs for it.
    grant(&admin, "binder", "rbac.authorization.k8s.io", "clusterroles", &["bind", "escalate"]).await;
    jane.post(&roles, &more).await.expect(201);
    jane.post(&local, &binding("RoleBinding", "x", "admin", &self::jane())).await.expect(201);
}

#[tokio::test]
async fn acting_as_another_needs_the_right_for_every_part_of_it() {
    let admin = server().await;
    let rules = json!([{"apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"], "verbs": ["impersonate"]}]);
    admin
        .post(&format!("{RBAC}/clusterroles"), &object("ClusterRole", "act", &json!({"rules": rules})))
        .await
        .expect(201);
    admin
        .post(&format!("{RBAC}/clusterrolebindings"), &binding("ClusterRoleBinding", "act", "act", &jane()))
        .await
        .expect(201);
    let jane = user(&admin, "jane");
    let version = async |headers: &[(&str, &str)]| {
        let headers: Vec<(&str, String)> = headers.iter().map(|(k, v)| (*k, (*v).to_owned())).collect();
        jane.send_with(Method::GET, "/version", &headers, &Value::Null).await.status
    };
    assert_eq!(version(&[("impersonate-user", "bob")]).await, 200);
    assert_eq!(version(&[("impersonate-user", "root")]).await, 403);
    assert_eq!(version(&[("impersonate-user", "bob"), ("impersonate-group", "system:masters")]).await, 403);
    assert_eq!(version(&[("impersonate-user", "bob"), ("impersonate-uid", "1")]).await, 403);
    assert_eq!(version(&[("impersonate-user", "bob"), ("impersonate-extra-scopes", "all")]).await, 403);
    assert_eq!(version(&[("impersonate-user", "system:serviceaccount:kube-system:default")]).await, 403);
    assert_eq!(version(&[("impersonate-group", "system:masters")]).await, 400);
    assert_eq!(version(&[("impersonate-user", "")]).await, 400);
    grant(&admin, "extras", "authentication.k8s.io", "userextras/scopes", &["impersonate"]).await;
    assert_eq!(version(&[("impersonate-user", "bob"), ("impersonate-extra-scopes", "all")]).await, 200);
    assert_eq!(version(&[("impersonate-user", "bob"), ("impersonate-extra-other", "all")]).await, 403);
    let whoami = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let headers = [("impersonate-user", "bob".to_owned()), ("impersonate-extra-scopes", "all".to_owned())];
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let seen = jane.send_with(Method::POST, path, &headers, &whoami).await.expect(201).json();
    let expected =
        json!({"username": "bob", "groups": ["system:authenticated"], "extra": {"scopes": ["all"]}});
    assert_eq!(seen["status"]["userInfo"], expected);
}

#[tokio::test]
async fn other_spellings_of_a_path_pass_no_other_rule() {
    let admin = server().await;
    let jane = user(&admin, "jane");
    jane.get("/api").await.expect(200);
    for path in [
        "/metrics",
        "/%6detrics",
        "//metrics",
        "/metrics/",
        "/api/../metrics",
        "/openapi/%2e%2e/metrics",
        "/openapi/..%2fmetrics",
    ] {
        let status = jane.get(path).await.status;
        assert!(matches!(status, 403 | 400), "{path}: {status}");
    }
    for path in [
        "/api/v1//namespaces/default//secrets",
        "/api//v1/secrets",
        "/api/v1/watch/secrets",
        "/api/v1/secrets?watch=true",
        "/API/v1/secrets",
    ] {
        jane.get(path).await.expect(403);
    }
    jane.send(Method::HEAD, "/api/v1/secrets", "application/json", &Value::Null).await.expect(403);
    jane.send(Method::OPTIONS, "/api/v1/secrets", "application/json", &Value::Null).await.expect(403);
}

#[tokio::test]
async fn a_local_review_is_about_its_own_namespace() {
    let admin = server().await;
    let review = |namespace: &str| {
        let attributes = json!({"verb": "get", "resource": "pods", "namespace": namespace});
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview",
            "spec": {"user": "jane", "resourceAttributes": attributes}})
    };
    let path = format!("{REVIEWS}/namespaces/default/localsubjectaccessreviews");
    admin.post(&path, &review("default")).await.expect(201);
    admin.post(&path, &review("kube-system")).await.expect(422);
    admin.post(&path, &review("")).await.expect(422);
    let jane = user(&admin, "jane");
    jane.post(&path, &review("default")).await.expect(403);
    jane.post(&format!("{REVIEWS}/subjectaccessreviews"), &json!({"spec": {"user": "bob"}}))
        .await
        .expect(403);
}

#[tokio::test]
async fn a_token_is_for_its_audience_and_its_server() {
    let admin = server().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    admin.post(accounts, &account).await.expect(201);
    let request = async |audiences: Value| {
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": audiences}});
        let reply = admin.post(&format!("{accounts}/robot/token"), &request).await.expect(201).json();
        reply["status"]["token"].as_str().unwrap().to_owned()
    };
    let (own, vault) = (request(json!(null)).await, request(json!(["vault"])).await);
    let used = async |client: &Client, token: &str| {
        let headers = [("authorization", format!("Bearer {token}"))];
        client.seen_by(None).send_with(Method::GET, "/api", &headers, &Value::Null).await.status
    };
    assert_eq!(used(&admin, &own).await, 200);
    assert_eq!(used(&admin, &vault).await, 401, "for another audience");
    assert_eq!(used(&server().await, &own).await, 401, "of another server");
    let review = async |token: &str, audiences: Value| {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token, "audiences": audiences}});
        admin.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await.expect(201).json()["status"]
            .clone()
    };
    assert_eq!(review(&vault, json!([])).await["authenticated"], Value::Null);
    let accepted = review(&vault, json!(["other", "vault"])).await;
    assert_eq!((&accepted["authenticated"], &accepted["audiences"]), (&json!(true), &json!(["vault"])));
    assert!(
        accepted["user"]["extra"]["authentication.kubernetes.io/credential-id"][0]
            .as_str()
            .unwrap()
            .starts_with("JTI=")
    );
}

#[tokio::test]
async fn aggregated_roles_follow_those_that_they_select() {
    let admin = server().await;
    let upkeep = tokio::spawn({
        let server = admin.server.clone();
        async move { server.run_upkeep().await }
    });
    let rules_of = async |name: &str| {
        admin.get(&format!("{RBAC}/clusterroles/{name}")).await.expect(200).json()["rules"].clone()
    };
    assert!(rules_of("view").await.as_array().unwrap().len() > 3, "from the start");
    let mut part = role("ClusterRole", "part", "example.org", "widgets", &["get"]);
    part["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    admin.post(&format!("{RBAC}/clusterroles"), &part).await.expect(201);
    let until = async |name: &str, wanted: bool| {
        while rules_of(name).await.to_string().contains("example.org") != wanted {
            tokio::task::yield_now().await;
        }
    };
    until("view", true).await;
    until("edit", true).await;
    until("admin", true).await;
    admin
        .merge(&format!("{RBAC}/clusterroles/part"), &json!({"metadata": {"labels": null}}))
        .await
        .expect(200);
    until("admin", false).await;
    upkeep.abort();
}

#[tokio::test]
async fn the_policy_is_completed_at_a_start_and_additions_stay() {
    let store = Store::in_memory(transom_store::Options::default());
    let admin = Client::with(&store, Options { rbac: true, ..Options::default() }).await;
    let path = format!("{RBAC}/clusterroles/system:basic-user");
    let before = admin.get(&path).await.expect(200).json();
    let own = json!([{"apiGroups": [""], "resources": ["mine"], "verbs": ["get"]}]);
    admin.merge(&path, &json!({"rules": own})).await.expect(200);
    admin.delete(&format!("{RBAC}/clusterrolebindings/system:discovery")).await.expect(200);
    let again = Client::with(&store, Options { rbac: true, ..Options::default() }).await;
    let after = again.get(&path).await.expect(200).json();
    assert!(
        after["rules"].to_string().contains("mine")
            && after["rules"].to_string().contains("selfsubjectaccessreviews")
    );
    assert_ne!(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"]);
    again.get(&format!("{RBAC}/clusterrolebindings/system:discovery")).await.expect(200);
    let revision = store.revision();
    Client::with(&store, Options { rbac: true, ..Options::default() }).await;
    assert_eq!(store.revision(), revision, "the second time there is nothing to do");
}

/// Allows everything to one user.
struct Privileged;

#[async_trait]
impl Authorizer for Privileged {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        match attributes.user.user == "provider" {
            true => Decision::Allowed,
            false => Decision::Denied { reason: "not privileged".into() },
        }
    }
}

#[tokio::test]
async fn what_is_asked_beyond_roles_and_bindings_can_only_allow_more() {
    let store = Store::in_memory(transom_store::Options::default());
    let options = Options { rbac: true, beyond_rbac: Some(Box::new(Privileged)), ..Options::default() };
    let admin = Client::with(&store, options).await;
    grant(&admin, "readers", "", "configmaps", &["list"]).await;
    let review = json!({"spec": {"resourceAttributes": {
        "verb": "list", "resource": "configmaps", "namespace": "default"}}});
    for (name, list, create) in [("provider", 200, 201), ("jane", 200, 403), ("mallory", 403, 403)] {
        let client = user(&admin, name);
        client.get(MAPS).await.expect(list);
        client.post(MAPS, &config_map("a")).await.expect(create);
        let asked = client.post(&format!("{REVIEWS}/selfsubjectaccessreviews"), &review).await;
        assert_eq!(asked.expect(201).json()["status"]["allowed"], list == 200, "{name}");
    }
    // The refusal is that of roles and bindings, as it is without further rules.
    let denied = user(&admin, "mallory").get(MAPS).await.expect(403).json();
    assert_eq!(
        denied["message"],
        "configmaps is forbidden: User \"mallory\" cannot list resource \"configmaps\" in API group \"\" in the \
         namespace \"default\""
    );
}
