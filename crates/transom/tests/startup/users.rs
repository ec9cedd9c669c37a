//! `transom user`: kubeconfigs that may do what they were given and nothing else, until they are revoked.

use super::{CONFIG_MAPS, config_map};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::process::Output;
use transom_testkit::process::{Client, Home, Plane, transom, wait_until};

fn user(home: &Home, args: &[&str]) -> Output {
    let kubeconfig = home.data().join("kubeconfig");
    let mut command = transom(&["user"]);
    command.args(args).args(["--kubeconfig", kubeconfig.to_str().unwrap()]);
    command.output().expect("the binary runs")
}

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A client with the kubeconfig that was printed.
async fn client_of(plane: &Plane, kubeconfig: &str) -> Client {
    let config = transom_object::yaml::read(kubeconfig).expect("a kubeconfig");
    let token = config["users"][0]["user"]["token"].as_str().expect("a token").to_owned();
    Client::connect(&plane.access.with_token(&token)).await.unwrap()
}

async fn status(client: &Client, path: &str) -> u16 {
    client.get(path).await.unwrap().status
}

#[tokio::test]
async fn a_user_may_do_what_it_was_given_until_it_is_revoked() {
    let home = Home::new();
    let plane = Plane::start(&home);
    let admin = plane.client().await;
    assert_eq!(admin.post(CONFIG_MAPS, &config_map("a")).await.unwrap().status, 201, "a");
    let printed = succeeded(&user(&home, &["add", "jane", "--namespace", "default", "--role", "view"]));
    let jane = client_of(&plane, &printed).await;
    assert_eq!(status(&jane, CONFIG_MAPS).await, 200);
    assert_eq!(status(&jane, "/api/v1/namespaces/kube-system/configmaps").await, 403, "another namespace");
    assert_eq!(status(&jane, "/api/v1/configmaps").await, 403, "all namespaces");
    assert_eq!(status(&jane, "/api/v1/namespaces/default/secrets").await, 403, "not with the role view");
    jane.post(CONFIG_MAPS, &config_map("b")).await.unwrap().assert_status(403, "view does not write");
    assert_eq!(status(&jane, "/metrics").await, 403);

    let listed: Value = serde_json::from_str(&succeeded(&user(&home, &["list", "-o", "json"]))).unwrap();
    assert_eq!(listed[0]["name"], "jane");
    assert_eq!(listed[0]["access"], json!(["view in default"]));

    succeeded(&user(&home, &["revoke", "jane"]));
    assert_eq!(status(&jane, CONFIG_MAPS).await, 401, "on the connection that is open");
    let again = user(&home, &["revoke", "jane"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("there is no user \"jane\""));
    let bindings =
        admin.get("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings").await.unwrap();
    assert!(!bindings.text().contains("transom:user:jane"), "nothing is left");
    let renewed = succeeded(&user(&home, &["add", "jane"]));
    assert_eq!(status(&jane, "/api").await, 401, "the old kubeconfig stays revoked");
    assert_eq!(
        status(&client_of(&plane, &renewed).await, CONFIG_MAPS).await,
        403,
        "and the new one has nothing"
    );
    home.assert_no_panic();
}

#[tokio::test]
async fn mistakes_are_reported_before_anything_is_made() {
    let home = Home::new();
    let plane = Plane::start(&home);
    for (args, why) in [
        (vec!["add", "Jane"], "is not a name for a user"),
        (vec!["add", "jane", "--role", "nonsense"], "there is no ClusterRole \"nonsense\""),
        (vec!["add", "jane", "--namespace", "absent"], "there is no namespace \"absent\""),
    ] {
        let refused = user(&home, &args);
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(1) && stderr.contains(why), "{args:?}: {stderr}");
        assert!(refused.stdout.is_empty());
    }
    let users = plane.client().await.get("/api/v1/namespaces/transom-users/serviceaccounts").await.unwrap();
    assert_eq!(users.json()["items"], json!([]));
}

const CLAIM: &str = "/apis/example.org/v1/namespaces/default/databases";

fn definition() -> Value {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xdatabases.example.org"},
        "spec": {
            "group": "example.org", "names": {"kind": "XDatabase", "plural": "xdatabases"},
            "claimNames": {"kind": "Database", "plural": "databases"},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// The controllers are not members of `system:masters`: they work with roles of their own, and definitions add to the
/// roles that people have.
#[tokio::test]
async fn definitions_add_their_kinds_to_the_roles_of_people() {
    let home = Home::new();
    let plane = Plane::start_with(&home, &["--with-controllers"]);
    let admin = plane.client().await;
    wait_until("the plane is ready", async || status(&admin, "/readyz").await == 200).await;
    let definitions = "/apis/apiextensions.crossplane.io/v1/compositeresourcedefinitions";
    assert_eq!(admin.post(definitions, &definition()).await.unwrap().status, 201, "the definition");
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/crossplane-edit";
    wait_until("the role has the claim", async || {
        admin.get(role).await.unwrap().text().contains("\"databases\"")
    })
    .await;
    wait_until("claims are served", async || status(&admin, CLAIM).await == 200).await;
    let args = ["add", "dev", "--namespace", "default", "--resource", "databases.example.org"];
    let dev = client_of(&plane, &succeeded(&user(&home, &args))).await;
    let claim =
        json!({"apiVersion": "example.org/v1", "kind": "Database", "metadata": {"name": "db"}, "spec": {}});
    assert_eq!(dev.post(CLAIM, &claim).await.unwrap().status, 201, "a claim");
    for path in [
        "/apis/example.org/v1/xdatabases",
        "/apis/example.org/v1/databases",
        "/api/v1/namespaces/default/secrets",
        definitions,
        CONFIG_MAPS,
    ] {
        assert_eq!(status(&dev, path).await, 403, "{path}");
    }
    // What the controllers may not do, although they may compose every kind.
    let review = |verb: &str, group: &str, resource: &str| {
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": "system:serviceaccount:crossplane-system:crossplane",
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": {"verb": verb, "group": group, "resource": resource, "name": "x"},
        }})
    };
    let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let rbac = "rbac.authorization.k8s.io";
    for (verb, group, resource, allowed) in [
        ("patch", "example.org", "xdatabases", true),
        ("create", "", "configmaps", true),
        ("impersonate", "", "users", false),
        ("escalate", rbac, "clusterroles", false),
        ("bind", rbac, "clusterroles", false),
        ("deletecollection", "", "secrets", false),
    ] {
        let reply = admin.post(reviews, &review(verb, group, resource)).await.unwrap();
        assert_eq!(reply.json()["status"]["allowed"], allowed, "{verb} {resource}: {}", reply.text());
    }
    admin.delete(&format!("{definitions}/xdatabases.example.org")).await.unwrap();
    home.assert_no_panic();
}

#[test]
fn a_kubeconfig_that_cannot_be_used_is_reported_with_a_remedy() {
    let home = Home::new();
    let authority = STANDARD.encode("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let config = json!({
        "apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": authority}}],
        "users": [{"name": "a", "user": {}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    });
    std::fs::create_dir_all(home.data()).unwrap();
    std::fs::write(home.data().join("kubeconfig"), config.to_string()).unwrap();
    let output = user(&home, &["add", "jane"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("cannot use the kubeconfig: ") && error.contains("; --kubeconfig or KUBECONFIG"),
        "{error}"
    );
}
