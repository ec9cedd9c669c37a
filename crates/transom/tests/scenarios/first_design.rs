//! The examples of the first design of composition (004), converted by `transom convert` and applied to a plane.

use super::user::*;
use crate::first_design::{blocks, convert};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use transom_object::meta;
use transom_testkit::process::WAIT_LIMIT;

const LOOK_AGAIN: Duration = Duration::from_millis(5);
const INSTANCE: &str = "database.example.org/v1alpha1/MySQLInstance";
const REQUIREMENT: &str = "database.example.org/v1alpha1/MySQLInstanceRequirement";
const WORDPRESS: &str = "apps.example.org/v1alpha1/Wordpress";
const SERVER: &str = "database.azure.crossplane.io/v1beta1/MySQLServer";
const GROUP: &str = "azure.crossplane.io/v1alpha3/ResourceGroup";

/// A kind of managed resource whose external system is the test.
fn managed(group: &str, version: &str, kind: &str) -> String {
    let plural = format!("{}s", kind.to_lowercase());
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "scope": "Cluster",
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}},
            }],
        },
    })
    .to_string()
}

/// The account that a definition of the design names, which may do everything.
fn account(name: &str) -> String {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "crossplane-system"},
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "crossplane-system"}],
    });
    format!("{account}\n---\n{binding}\n")
}

async fn plane() -> User {
    let user = User::without_functions(&[], &[]).await;
    user.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: crossplane-system}\n").await;
    for (group, version, kind) in [
        ("azure.crossplane.io", "v1alpha3", "ResourceGroup"),
        ("database.azure.crossplane.io", "v1beta1", "MySQLServer"),
    ] {
        user.apply(&managed(group, version, kind)).await;
    }
    for definition in ["wordpresses.apps.example.org", "mysqlinstances.database.example.org"] {
        user.apply(&account(definition)).await;
    }
    user
}

/// Does what a provider would: publishes connection details, and says that the resource is ready.
async fn provide(user: &User, kind: &str, details: &Value) {
    for mut object in user.list(kind).await {
        let reference = object["spec"]["writeConnectionSecretToRef"].clone();
        if status_of(&object, "Ready") == "True" || reference["name"].is_null() {
            continue;
        }
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "stringData": details,
            "metadata": {"name": reference["name"], "namespace": reference["namespace"]},
        });
        user.apply(&secret.to_string()).await;
        let ready = json!({
            "type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        object["status"] = json!({"conditions": [ready]});
        // Another version may have been written meanwhile: the next round sees it.
        let _ = user.cluster.update_status(&object, "provider").await;
    }
}

/// Waits until an object is ready, with a provider at work.
async fn until_provided(user: &User, kind: &str, name: &str) -> Value {
    let started = Instant::now();
    loop {
        provide(user, SERVER, &json!({"admin-username": "root", "password": "secret", "other": "x"})).await;
        provide(user, GROUP, &json!({"endpoint": "db.example.org"})).await;
        let object = user.get(kind, name).await.unwrap_or_default();
        if status_of(&object, "Ready") == "True" {
            return object;
        }
        assert!(
            started.elapsed() < WAIT_LIMIT,
            "{object:#}\n{:#?}",
            user.events_of(meta::name(&object)).await
        );
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// The keys of a Secret.
async fn keys(user: &User, name: &str) -> Vec<String> {
    let secret = user.until(SECRET, name, |o| o["data"].is_object()).await;
    secret["data"].as_object().unwrap().keys().cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_design_work_as_its_text_says() {
    let user = plane().await;
    let converted = tokio::task::block_in_place(|| convert(&blocks::proposal(), &[]));
    assert!(converted.status.success(), "{}", String::from_utf8_lossy(&converted.stderr));
    user.apply(&String::from_utf8(converted.stdout).unwrap()).await;
    user.until_true(XRD, "wordpresses.apps.example.org", "Established").await;
    user.until_true(XRD, "mysqlinstances.database.example.org", "Offered").await;

    // Infrastructure: what is forced wins over what the instance asked for, and the account composes.
    let sql = until_provided(&user, INSTANCE, "sql").await;
    assert_eq!(sql["spec"]["compositionRef"]["name"], "mysqlinstances.database.example.org");
    let servers = user.composed(SERVER, "sql").await;
    let provider = &servers[0]["spec"]["forProvider"];
    assert_eq!((servers.len(), &provider["location"]), (1, &json!("West US")));
    assert_eq!(provider["storageProfile"]["storageMB"], 10240);
    let secret = servers[0]["spec"]["writeConnectionSecretToRef"]["name"].as_str().unwrap();
    assert_eq!(secret, format!("{}-postgresqlserver", meta::uid(&sql)));
    assert_eq!(keys(&user, "crossplane-system/sql").await, ["endpoint", "password", "username"]);

    // A requirement that names its infrastructure is bound to it, and its Secret is a copy.
    let requirement = until_provided(&user, REQUIREMENT, "default/sql").await;
    assert_eq!(requirement["spec"]["resourceRef"]["name"], "default-sql-dd02m");
    let bound = user.get(INSTANCE, "default-sql-dd02m").await.unwrap();
    assert_eq!(bound["spec"]["claimRef"]["name"], "sql");
    assert_eq!(keys(&user, "default/sql").await, ["endpoint", "password", "username"]);
    // Updates propagate.
    user.patch(REQUIREMENT, "default/sql", json!({"spec": {"storageGB": 20}})).await;
    user.until(INSTANCE, "default-sql-dd02m", |o| o["spec"]["storageGB"] == 20).await;

    // An application composes in its namespace: an object, and a requirement that is provisioned dynamically.
    let blog = until_provided(&user, WORDPRESS, "default/coolblog").await;
    assert_eq!(
        blog["spec"]["crossplane"]["compositionRef"]["name"], "wordpresses.apps.example.org",
        "what is forced wins"
    );
    let map = user.composed(MAP, "coolblog").await.remove(0);
    assert_eq!((meta::namespace(&map), &map["data"]["login"]), ("default", &json!("admin")));
    let required = user.composed(REQUIREMENT, "coolblog").await.remove(0);
    assert_eq!((meta::namespace(&required), &required["spec"]["storageGB"]), ("default", &json!(2)));
    let infrastructure = required["spec"]["resourceRef"]["name"].as_str().unwrap();
    assert!(user.get(INSTANCE, infrastructure).await.is_some());
    assert_eq!(keys(&user, "default/blog-sql").await, ["endpoint", "password", "username"]);
}

/// Published later: the same definition, applied again with claims.
#[tokio::test(flavor = "multi_thread")]
async fn infrastructure_can_be_published_later() {
    let user = User::without_functions(&[], &[]).await;
    let definition = "
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: InfrastructureDefinition
metadata: {name: caches.example.org}
spec:
  crdSpecTemplate:
    group: example.org
    version: v1
    names: {kind: Cache, plural: caches}
    validation: {openAPIV3Schema: {type: object, properties: {megabytes: {type: int}}}}
";
    let publication = "
---
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: InfrastructurePublication
metadata: {name: caches.example.org}
spec: {infrastructureDefinitionReference: {name: caches.example.org}}
";
    for (text, offers) in [(definition.to_owned(), false), (format!("{definition}{publication}"), true)] {
        let converted = tokio::task::block_in_place(|| convert(&text, &[]));
        user.apply(&String::from_utf8(converted.stdout).unwrap()).await;
        user.until_true(XRD, "caches.example.org", "Established").await;
        assert_eq!(
            user.get(XRD, "caches.example.org").await.unwrap()["spec"].get("claimNames").is_some(),
            offers
        );
    }
    user.until_true(XRD, "caches.example.org", "Offered").await;
    assert!(user.get(CRD, "cacherequirements.example.org").await.is_some());
}
