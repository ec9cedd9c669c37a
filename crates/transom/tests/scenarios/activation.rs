//! Definitions of managed resources, policies that activate them, and a provider that brings some.

use crate::scenarios::user::*;
use crate::xpkg::Folder;
use serde_json::{Value, json};
use transom_object::meta;
use transom_oci::testing::Server;

const MRD: &str = "apiextensions.crossplane.io/v1alpha1/ManagedResourceDefinition";
const MRAP: &str = "apiextensions.crossplane.io/v1alpha1/ManagedResourceActivationPolicy";
const PROVIDER: &str = "pkg.crossplane.io/v1/Provider";
/// No policy is made at start, as in Crossplane's own tests.
const NO_DEFAULT: &[&str] = &["--activation="];

fn spec(kind: &str) -> Value {
    let fields = json!({"coolField": {"type": "string"}});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": fields, "required": ["coolField"]},
    }});
    json!({
        "scope": "Namespaced", "group": "nop.mrd.example.org",
        "names": {"kind": kind, "plural": plural(kind), "singular": kind.to_lowercase()},
        "versions": [{"name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                      "schema": {"openAPIV3Schema": schema}}],
    })
}

fn name(kind: &str) -> String {
    format!("{}.nop.mrd.example.org", plural(kind))
}

fn managed(kind: &str, more: &Value) -> Value {
    let mut spec = spec(kind);
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    json!({"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "ManagedResourceDefinition",
           "metadata": {"name": name(kind)}, "spec": spec})
}

fn policy(name: &str, activate: &[&str]) -> String {
    json!({"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "ManagedResourceActivationPolicy",
           "metadata": {"name": name}, "spec": {"activate": activate}})
    .to_string()
}

fn is_inactive(object: &Value) -> bool {
    reason_of(object, "Established") == "InactiveManagedResource"
}

/// Waits until a policy lists exactly these definitions, and their CRDs are served.
async fn until_activated(user: &User, policy: &str, kinds: &[&str]) {
    let names: Vec<String> = kinds.iter().map(|kind| name(kind)).collect();
    let listed = |p: &Value| p["status"]["activated"] == json!(names) && reason_of(p, "Healthy") == "Running";
    user.until(MRAP, policy, listed).await;
    for name in &names {
        let object = user.until_true(MRD, name, "Established").await;
        assert_eq!(object["spec"]["state"], "Active");
        user.until_true(CRD, name, "Established").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mrd_validation() {
    let user = User::with(NO_DEFAULT).await;
    user.apply(&managed("Defaulted", &json!({})).to_string()).await;
    let defaulted = user.until(MRD, &name("Defaulted"), is_inactive).await;
    assert_eq!(defaulted["spec"]["state"], "Inactive");
    user.apply(&managed("Nop", &json!({"state": "Inactive"})).to_string()).await;
    user.until(MRD, &name("Nop"), is_inactive).await;
    assert!(user.get(CRD, &name("Nop")).await.is_none());
    user.apply(&managed("Nop", &json!({"state": "Active"})).to_string()).await;
    user.until_true(MRD, &name("Nop"), "Established").await;
    let names = json!({"kind": "Nop", "plural": "Upper", "singular": "nop"});
    for (wrong, words) in [
        (managed("Nop", &json!({"state": "Active", "names": names})), "lowercase"),
        (managed("Nop", &json!({"state": "Active", "group": "other.org"})), "immutable"),
        (managed("Nop", &json!({"state": "Active", "scope": "Cluster"})), "immutable"),
        (managed("Nop", &json!({"state": "Inactive"})), "state cannot be changed once it becomes Active"),
    ] {
        let why = user.refused_change(&wrong.to_string()).await;
        assert!(why.contains(words), "{why}");
    }
    let why = user.refusal(&managed("Other", &json!({"names": names})).to_string()).await;
    assert!(why.contains("lowercase"), "{why}");
    user.delete(MRD, &name("Nop"), None).await;
    user.until_gone(CRD, &name("Nop")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mrap_activates_single_mrd() {
    let user = User::with(NO_DEFAULT).await;
    user.apply(&managed("Bucket", &json!({})).to_string()).await;
    user.apply(&policy("single", &["disabled.example.org"])).await;
    user.until(MRD, &name("Bucket"), is_inactive).await;
    user.until_true(MRAP, "single", "Healthy").await;
    user.apply(&policy("single", &[&name("Bucket")])).await;
    until_activated(&user, "single", &["Bucket"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mrap_wildcard_activation() {
    let user = User::with(NO_DEFAULT).await;
    for kind in ["Bucket", "Database", "Instance"] {
        user.apply(&managed(kind, &json!({})).to_string()).await;
        user.until(MRD, &name(kind), is_inactive).await;
    }
    user.apply(&policy("wildcard", &["*.nop.mrd.example.org"])).await;
    until_activated(&user, "wildcard", &["Bucket", "Database", "Instance"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn multiple_mraps_one_mrd() {
    let mut user = User::with(NO_DEFAULT).await;
    user.apply(&managed("Bucket", &json!({})).to_string()).await;
    user.apply(&policy("specific", &[&name("Bucket")])).await;
    user.apply(&policy("wildcard", &["*.nop.mrd.example.org"])).await;
    until_activated(&user, "specific", &["Bucket"]).await;
    until_activated(&user, "wildcard", &["Bucket"]).await;
    user.delete(MRAP, "specific", None).await;
    user.restart(NO_DEFAULT).await;
    until_activated(&user, "wildcard", &["Bucket"]).await;
    assert!(user.get(MRAP, "specific").await.is_none());
}

/// A provider with a kind of managed resource and a ProviderConfig.
fn provider(capabilities: &str) -> [(&'static str, String); 3] {
    let crd = |kind: &str| {
        let metadata = json!({"name": name(kind)});
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata,
               "spec": spec(kind)})
        .to_string()
    };
    let about = format!(
        "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {{name: cloud}}\nspec: {{capabilities: [{capabilities}]}}\n"
    );
    [("crossplane.yaml", about), ("bucket.yaml", crd("Bucket")), ("config.yaml", crd("ProviderConfig"))]
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_of_a_provider_work_after_its_installation() {
    let registry = Server::start().await;
    let folder = Folder::new();
    let files = provider("safe-start");
    folder.build("cloud", &files.each_ref().map(|(name, text)| (*name, text.as_str())));
    let package = format!("{}/acme/cloud:v1.0.0", registry.host);
    let digest = folder.ok(&["push", &package, "-f", "cloud.xpkg"]);
    let mut user = User::with(&[]).await;
    let default = user.until_true(MRAP, "default", "Healthy").await;
    assert_eq!(default["spec"]["activate"], json!(["*"]));
    let install = json!({"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": "cloud"},
                         "spec": {"package": package}});
    user.apply(&install.to_string()).await;
    until_activated(&user, "default", &["Bucket"]).await;
    user.until_true(CRD, &name("ProviderConfig"), "Established").await;
    assert!(user.get(MRD, &name("ProviderConfig")).await.is_none());
    let package = user.until(PROVIDER, "cloud", |p| status_of(p, "Installed") == "True").await;
    let revision = package["status"]["currentRevision"].as_str().unwrap().to_owned();
    assert!(
        revision.starts_with(&format!("cloud-{}", &digest["sha256:".len()..][..12])),
        "{revision} {digest}"
    );
    user.until_true("pkg.crossplane.io/v1/ProviderRevision", &revision, "RuntimeActive").await;
    let bucket = "apiVersion: nop.mrd.example.org/v1alpha1\nkind: Bucket\nmetadata: {name: one, namespace: default}\n\
                  spec: {coolField: x}\n";
    user.apply(bucket).await;
    let crd = meta::uid(&user.get(CRD, &name("Bucket")).await.unwrap()).to_owned();

    // All of it is there after a restart, and nothing was made anew.
    user.until_idle().await;
    user.restart(&[]).await;
    user.until_idle().await;
    assert_eq!(meta::uid(&user.get(CRD, &name("Bucket")).await.unwrap()), crd);
    assert!(user.get("nop.mrd.example.org/v1alpha1/Bucket", "default/one").await.is_some());
    user.delete(PROVIDER, "cloud", None).await;
    user.until_gone(CRD, &name("Bucket")).await;
    user.until(MRAP, "default", |p| p["status"].get("activated").is_none()).await;
}
