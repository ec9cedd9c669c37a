//! Providers that come with the binary.

use crate::scenarios::user::*;
use serde_json::json;

const PROVIDER: &str = "pkg.crossplane.io/v1/Provider";
const MRD: &str = "apiextensions.crossplane.io/v1alpha1/ManagedResourceDefinition";
const ROLE: &str = "postgresql.sql.crossplane.io/v1alpha1/Role";
const CONFIG: &str = "postgresql.sql.crossplane.io/v1alpha1/ProviderConfig";
/// No package can be downloaded.
const OFFLINE: &[&str] = &["--provider", "xpkg.example.org/somewhere/provider-sql:v0.16.0"];

/// It needs no registry, its kinds are defined and activated as those of a package, and it runs, also after a restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_comes_with_the_binary() {
    let mut user = User::with(OFFLINE).await;
    let provider = user.until_any(PROVIDER, |_| true).await;
    let name = provider["metadata"]["name"].as_str().unwrap().to_owned();
    user.until_true(PROVIDER, &name, "Healthy").await;
    user.until_true(MRD, "roles.postgresql.sql.crossplane.io", "Established").await;
    let role = "apiVersion: postgresql.sql.crossplane.io/v1alpha1\nkind: Role\nmetadata: {name: one}\n\
                spec: {forProvider: {}}\n";
    user.apply(role).await;
    let words = "connect failed: cannot get ProviderConfig: ProviderConfig \"default\" not found";
    user.until(ROLE, "one", |role| message_of(role, "Synced") == words).await;
    // The creation of what it waits for wakes it. Nothing listens on the port.
    user.apply(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: postgres, namespace: default}\n\
         stringData: {endpoint: 127.0.0.1, port: \"1\", username: u, password: sesame}\n",
    )
    .await;
    user.apply(
        "apiVersion: postgresql.sql.crossplane.io/v1alpha1\nkind: ProviderConfig\nmetadata: {name: default}\n\
         spec:\n  sslMode: disable\n  credentials:\n    source: PostgreSQLConnectionSecret\n\
         \x20   connectionSecretRef: {name: postgres, namespace: default}\n",
    )
    .await;
    let failed = |role: &serde_json::Value| {
        message_of(role, "Synced")
            .starts_with("observe failed: cannot select role: error connecting to server")
    };
    user.until(ROLE, "one", failed).await;
    user.until(CONFIG, "default", |config| config["status"]["users"] == 1).await;
    user.restart(OFFLINE).await;
    user.until_true(PROVIDER, &name, "Healthy").await;
    user.patch(ROLE, "one", json!({"spec": {"deletionPolicy": "Orphan"}})).await;
    user.delete(ROLE, "one", None).await;
    user.until_gone(ROLE, "one").await;
    user.delete(CONFIG, "default", None).await;
    user.until_gone(CONFIG, "default").await;
}

/// Of both scopes, on the reconciler that all managed resources have.
#[tokio::test(flavor = "multi_thread")]
async fn nop_resources_have_both_scopes() {
    let user = User::new().await;
    let spec = "spec:\n  forProvider:\n    conditionAfter: [{time: 0s, conditionType: Ready, conditionStatus: \"True\"}]\n";
    for (version, kind, name) in [
        ("nop.crossplane.io/v1alpha1", "NopResource", "one"),
        ("nop.crossplane.io/v1alpha1", "ClusterNopResource", "one"),
        ("nop.m.crossplane.io/v1alpha1", "NopResource", "default/one"),
    ] {
        let (namespace, own) = name.split_once('/').unwrap_or(("", name));
        let namespace =
            if namespace.is_empty() { String::new() } else { format!(", namespace: {namespace}") };
        let manifest =
            format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {own}{namespace}}}\n{spec}");
        user.apply(&manifest).await;
        let kind = format!("{version}/{kind}");
        let object = user.until_ready(&kind, name).await;
        assert_eq!(object["metadata"]["annotations"]["crossplane.io/external-name"], "one");
        user.delete(&kind, name, None).await;
        user.until_gone(&kind, name).await;
    }
    let stays = "apiVersion: nop.crossplane.io/v1alpha1\nkind: ClusterNopResource\nmetadata: {name: stays}\n\
                 spec: {forProvider: {deleteError: boom}}\n";
    user.apply(stays).await;
    let kind = "nop.crossplane.io/v1alpha1/ClusterNopResource";
    user.until_true(kind, "stays", "Synced").await;
    user.delete(kind, "stays", None).await;
    user.until(kind, "stays", |object| message_of(object, "Synced") == "delete failed: boom").await;
    user.patch(kind, "stays", json!({"spec": {"forProvider": {"deleteError": null}}})).await;
    user.until_gone(kind, "stays").await;
}

const KUBERNETES: &[&str] = &["--provider", "xpkg.example.org/somewhere/provider-kubernetes:v1.2.1"];
const OBJECT: &str = "kubernetes.crossplane.io/v1alpha2/Object";

fn object(name: &str, config: &str) -> String {
    format!(
        "apiVersion: kubernetes.crossplane.io/v1alpha2\nkind: Object\nmetadata: {{name: {name}}}\nspec:\n\
         \x20 providerConfigRef: {{name: {config}}}\n\
         \x20 forProvider:\n    manifest:\n      apiVersion: v1\n      kind: ConfigMap\n\
         \x20     metadata: {{name: {name}, namespace: default}}\n      data: {{a: b}}\n"
    )
}

/// It has no rights in its plane until they are given, and reaches a cluster by a kubeconfig: here the same plane.
#[tokio::test(flavor = "multi_thread")]
async fn objects_have_the_rights_of_a_service_account_or_of_a_kubeconfig() {
    let user = User::with(KUBERNETES).await;
    let provider = user.until_any(PROVIDER, |_| true).await;
    user.until_true(PROVIDER, provider["metadata"]["name"].as_str().unwrap(), "Healthy").await;
    user.until_true(MRD, "objects.kubernetes.crossplane.io", "Established").await;
    let config = |name: &str, credentials: &str| {
        format!(
            "apiVersion: kubernetes.crossplane.io/v1alpha1\nkind: ProviderConfig\nmetadata: {{name: {name}}}\n\
             spec:\n  credentials: {credentials}\n"
        )
    };
    user.apply(&config("here", "{source: InjectedIdentity}")).await;
    user.apply(&object("one", "here")).await;
    let account = "system:serviceaccount:crossplane-system:provider-kubernetes";
    let denied = format!("configmaps \"one\" is forbidden: User \"{account}\" cannot get resource");
    user.until(OBJECT, "one", |object| message_of(object, "Synced").contains(&denied)).await;
    user.apply(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\n\
         metadata: {name: objects, namespace: default}\n\
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}\n\
         subjects: [{kind: ServiceAccount, name: provider-kubernetes, namespace: crossplane-system}]\n",
    )
    .await;
    user.until_ready(OBJECT, "one").await;
    let kubeconfig = std::fs::read_to_string(user.home.data().join("kubeconfig")).unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cluster", "namespace": "default"},
        "stringData": {"kubeconfig": kubeconfig},
    });
    user.apply(&secret.to_string()).await;
    let reference = "{source: Secret, secretRef: {namespace: default, name: cluster, key: kubeconfig}}";
    user.apply(&config("there", reference)).await;
    user.apply(&object("two", "there")).await;
    user.until_ready(OBJECT, "two").await;
    for name in ["one", "two"] {
        user.delete(OBJECT, name, None).await;
        user.until_gone(OBJECT, name).await;
        user.until_gone(MAP, &format!("default/{name}")).await;
    }
}
