//! What Objects may do, and ProviderConfigs that lead nowhere.

use crate::stand::*;
use serde_json::{Value, json};

const CONFIG: &str = "kubernetes.crossplane.io/v1alpha1/ProviderConfig";

/// Without a binding the provider may do nothing, also not copy from Secrets; with one it goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_without_rights_says_so() {
    let stand = Stand::without_rights(Pace::Polls).await;
    stand.create(OBJECT, "one", &object(&map("one", &json!({"a": "1"})), &json!({}))).await;
    let words = format!(
        "observe failed: cannot get object: configmaps \"one\" is forbidden: User \"{ACCOUNT}\" cannot get resource"
    );
    stand.until_it_says(OBJECT, "one", &words).await;
    stand.create("v1/Secret", "default/source", &json!({"data": {"word": "c2VzYW1l"}})).await;
    let from = json!({"apiVersion": "v1", "kind": "Secret", "namespace": "default", "name": "source", "fieldPath": "data.word"});
    let more = json!({"references": [{"patchesFrom": from}]});
    stand.create(OBJECT, "thief", &object(&map("thief", &json!({})), &more)).await;
    stand
        .until_it_says(OBJECT, "thief", "cannot get referenced resource: secrets \"source\" is forbidden")
        .await;
    stand.bind().await;
    stand.until_ready(OBJECT, "one").await;
}

/// Only the Objects of a ProviderConfig fail with it. Nothing of a kubeconfig is shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kubeconfig_that_leads_nowhere_degrades_its_objects_alone() {
    let stand = Stand::new(Pace::Polls).await;
    let kubeconfig = |user: &Value| {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
            "users": [{"name": "u", "user": user}],
        })
        .to_string()
    };
    let texts = json!({
        "nowhere": kubeconfig(&json!({"token": "sesame"})),
        "command": kubeconfig(&json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sesame"}})),
        "broken": "users: [sesame",
    });
    let source = |key: &str| {
        let secret = json!({"namespace": "default", "name": "clusters", "key": key});
        json!({"spec": {"credentials": {"source": "Secret", "secretRef": secret}}})
    };
    for key in ["nowhere", "command", "broken", "absent"] {
        stand.create(CONFIG, key, &source(key)).await;
        let more = json!({"providerConfigRef": {"name": key}});
        stand.create(OBJECT, key, &object(&map(key, &json!({})), &more)).await;
    }
    stand
        .until_it_says(
            OBJECT,
            "nowhere",
            "cannot get credentials: secrets \"clusters\" not found in namespace \"default\"",
        )
        .await;
    stand.create("v1/Secret", "default/clusters", &json!({"stringData": texts})).await;
    stand.create(OBJECT, "here", &object(&map("here", &json!({})), &json!({}))).await;
    for (name, words) in [
        ("nowhere", "observe failed: cannot get object: "),
        ("command", "connect failed: cannot build kube client for provider config: the kubeconfig has exec"),
        ("broken", "failed to load kubeconfig"),
        ("absent", "has no key \"absent\""),
    ] {
        let failed = stand.until_it_says(OBJECT, name, words).await;
        assert!(!failed["status"].to_string().contains("sesame"), "{failed:#}");
    }
    stand.until_ready(OBJECT, "here").await;
    let others = json!({"spec": {"credentials": {"source": "Environment", "env": {"name": "HOME"}}}});
    stand.create(CONFIG, "environment", &others).await;
    let more = json!({"providerConfigRef": {"name": "environment"}});
    stand.create(OBJECT, "environment", &object(&map("x", &json!({})), &more)).await;
    stand.until_it_says(OBJECT, "environment", "credentials source Environment is not supported").await;
    // It is deleted although its cluster cannot be reached, if its policy keeps the object there.
    stand.patch(OBJECT, "nowhere", &json!({"spec": {"deletionPolicy": "Orphan"}})).await;
    stand.delete(OBJECT, "nowhere").await;
    stand.until_gone(OBJECT, "nowhere").await;
}

/// A tenant who may write ProviderConfigs in one namespace does not get the Secrets of another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_in_a_namespace_reads_its_own_secrets() {
    let stand = Stand::new(Pace::Polls).await;
    let secret = json!({"namespace": "kube-system", "name": "x", "key": "kubeconfig"});
    let spec = json!({"spec": {"credentials": {"source": "Secret", "secretRef": secret}}});
    stand.create("kubernetes.m.crossplane.io/v1alpha1/ProviderConfig", "default/mine", &spec).await;
    let more = json!({"providerConfigRef": {"kind": "ProviderConfig", "name": "mine"}});
    stand.create(MODERN_OBJECT, "default/one", &object(&map("one", &json!({})), &more)).await;
    stand.until_it_says(MODERN_OBJECT, "default/one", "may use Secrets of that namespace alone").await;
}

/// A tenant who may write Objects in one namespace gets and protects nothing of other namespaces, and nothing that is in none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_in_a_namespace_refers_to_its_own_namespace() {
    let stand = Stand::without_rights(Pace::Polls).await;
    let config = "kubernetes.m.crossplane.io/v1alpha1/ClusterProviderConfig";
    stand.create("v1/Namespace", "other", &json!({})).await;
    let manifest = map("victim", &json!({"word": "sesame"}));
    stand.create(MODERN_OBJECT, "other/victim", &object(&manifest, &json!({}))).await;
    stand.create(OBJECT, "victim", &object(&manifest, &json!({}))).await;
    stand.create(MODERN_OBJECT, "default/mine", &object(&manifest, &json!({}))).await;
    let (modern, legacy) = ("kubernetes.m.crossplane.io/v1alpha1", "kubernetes.crossplane.io/v1alpha2");
    let refused = "cannot get referenced resource: ";
    for (name, version, kind, namespace, target, words) in [
        ("one", modern, "Object", "other", "victim", "is forbidden"),
        ("two", legacy, "Object", "", "victim", "is forbidden"),
        // A namespace that a kind does not have makes no difference.
        ("three", legacy, "Object", "default", "victim", "is forbidden"),
        ("four", modern, "ClusterProviderConfig", "default", "default", "is forbidden"),
        // This one is found, and fails later.
        ("five", modern, "Object", "", "mine", "cannot get object: configmaps \"five\" is forbidden"),
    ] {
        let from = json!({
            "apiVersion": version, "kind": kind, "namespace": namespace, "name": target, "fieldPath": "metadata.name",
        });
        let more = json!({"references": [{"patchesFrom": from, "toFieldPath": "data.copied"}]});
        let full = format!("default/{name}");
        stand.create(MODERN_OBJECT, &full, &object(&map(name, &json!({})), &more)).await;
        let failed = stand.until_it_says(MODERN_OBJECT, &full, words).await;
        let message = condition(&failed, "Synced").message;
        assert_eq!(message.contains(refused), name != "five", "{message}");
    }
    for (kind, name) in [(MODERN_OBJECT, "other/victim"), (OBJECT, "victim"), (config, "default")] {
        let finalizers = stand.get(kind, name).await.unwrap()["metadata"]["finalizers"].to_string();
        assert!(!finalizers.contains("referred-by-object"), "{kind} {name}: {finalizers}");
    }
}
