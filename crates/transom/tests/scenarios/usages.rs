//! What is used cannot be deleted.

use crate::scenarios::user::*;
use serde_json::json;
use transom_object::meta;

const USAGE: &str = "protection.crossplane.io/v1beta1/Usage";
const CLUSTER_USAGE: &str = "protection.crossplane.io/v1beta1/ClusterUsage";
const LEGACY: &str = "apiextensions.crossplane.io/v1beta1/Usage";

fn map(namespace: &str, name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}, labels: {{app: {name}}}}}\n"
    )
}

fn nop_resource(name: &str) -> String {
    format!(
        "apiVersion: nop.crossplane.io/v1alpha1\nkind: NopResource\nmetadata: {{name: {name}, labels: {{app: {name}}}}}\n\
         spec: {{forProvider: {{conditionAfter: [{{time: 0s, conditionType: Ready, conditionStatus: 'True'}}]}}}}\n"
    )
}

async fn must_be_in_use(user: &User, kind: &str, name: &str) -> String {
    let why = user.try_delete(kind, name, None).await.expect_err("it is in use");
    assert!(why.contains("This resource is in-use by"), "{why}");
    why
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_standalone_namespaced() {
    let user = User::new().await;
    user.apply(&map("default", "used")).await;
    user.apply(&map("default", "using")).await;
    user.apply("apiVersion: protection.crossplane.io/v1beta1\nkind: Usage\nmetadata: {name: by, namespace: default}\nspec:\n  of: {apiVersion: v1, kind: ConfigMap, resourceSelector: {matchLabels: {app: used}}}\n  by: {apiVersion: v1, kind: ConfigMap, resourceRef: {name: using}}\n  replayDeletion: true\n").await;
    user.until_true(USAGE, "default/by", "Ready").await;
    must_be_in_use(&user, MAP, "default/used").await;
    user.delete(MAP, "default/using", None).await;
    user.until_gone(USAGE, "default/by").await;
    user.until_gone(MAP, "default/used").await;
    // A reason is enough.
    user.apply(&map("default", "precious")).await;
    user.apply("apiVersion: protection.crossplane.io/v1beta1\nkind: Usage\nmetadata: {name: because, namespace: default}\nspec:\n  of: {apiVersion: v1, kind: ConfigMap, resourceRef: {name: precious}}\n  reason: precious\n").await;
    user.until_true(USAGE, "default/because", "Ready").await;
    assert!(must_be_in_use(&user, MAP, "default/precious").await.contains("precious"));
    user.delete(USAGE, "default/because", None).await;
    user.until_gone(USAGE, "default/because").await;
    user.delete(MAP, "default/precious", None).await;
    // What is used may be elsewhere if it is said who uses it.
    user.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n").await;
    user.apply(&map("team", "theirs")).await;
    user.apply(&map("default", "using")).await;
    user.apply("apiVersion: protection.crossplane.io/v1beta1\nkind: Usage\nmetadata: {name: across, namespace: default}\nspec:\n  of: {apiVersion: v1, kind: ConfigMap, resourceRef: {name: theirs, namespace: team}}\n  by: {apiVersion: v1, kind: ConfigMap, resourceRef: {name: using}}\n").await;
    user.until_true(USAGE, "default/across", "Ready").await;
    must_be_in_use(&user, MAP, "team/theirs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_standalone_cluster() {
    let user = User::new().await;
    user.apply(&nop_resource("used")).await;
    user.apply(&nop_resource("using")).await;
    user.apply("apiVersion: protection.crossplane.io/v1beta1\nkind: ClusterUsage\nmetadata: {name: by}\nspec:\n  of: {apiVersion: nop.crossplane.io/v1alpha1, kind: NopResource, resourceRef: {name: used}}\n  by: {apiVersion: nop.crossplane.io/v1alpha1, kind: NopResource, resourceSelector: {matchLabels: {app: using}}}\n").await;
    user.until_true(CLUSTER_USAGE, "by", "Ready").await;
    must_be_in_use(&user, NOP, "used").await;
    user.delete(NOP, "using", None).await;
    user.until_gone(CLUSTER_USAGE, "by").await;
    user.delete(NOP, "used", None).await;
    user.until_gone(NOP, "used").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_usage_standalone() {
    let user = User::new().await;
    user.apply(&nop_resource("used")).await;
    user.apply(&nop_resource("using")).await;
    user.apply("apiVersion: apiextensions.crossplane.io/v1beta1\nkind: Usage\nmetadata: {name: by}\nspec:\n  of: {apiVersion: nop.crossplane.io/v1alpha1, kind: NopResource, resourceRef: {name: used}}\n  by: {apiVersion: nop.crossplane.io/v1alpha1, kind: NopResource, resourceRef: {name: using}}\n").await;
    user.until_true(LEGACY, "by", "Ready").await;
    must_be_in_use(&user, NOP, "used").await;
    user.delete(NOP, "using", None).await;
    user.until_gone(LEGACY, "by").await;
    user.delete(NOP, "used", None).await;
    user.until_gone(NOP, "used").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_usage_composition() {
    let user = User::new().await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    let usage = |name: &str| {
        format!(
            "\n---\napiVersion: apiextensions.crossplane.io/v1beta1\nkind: Usage\nmetadata:\n  annotations:\n    {{{{ setResourceNameAnnotation \"{name}\" }}}}\n    gotemplating.fn.crossplane.io/ready: \"True\"\nspec:\n  of: {{apiVersion: nop.crossplane.io/v1alpha1, kind: NopResource, resourceSelector: {{matchControllerRef: true, matchLabels: {{part: used}}}}}}\n  by: {{apiVersion: nop.crossplane.io/v1alpha1, kind: NopResource, resourceSelector: {{matchControllerRef: true, matchLabels: {{part: using}}}}}}\n"
        )
    };
    let composed = |name: &str| {
        let text = nop("used", "") + &nop("using", "") + &usage(name);
        composition("usages", "Thing", &json!({}), &[template(&text), auto_ready()])
    };
    user.apply(&composed("first")).await;
    user.apply(&object("Thing", "one", "")).await;
    user.until_ready("example.org/v1/Thing", "one").await;
    let used = |list: Vec<serde_json::Value>| {
        let used = list.iter().find(|o| meta::label(o, "part") == Some("used")).expect("it is composed");
        meta::name(used).to_owned()
    };
    let used = used(user.composed(NOP, "one").await);
    user.until(NOP, &used, |o| meta::label(o, "crossplane.io/in-use") == Some("true")).await;
    must_be_in_use(&user, NOP, &used).await;
    let first = meta::name(&user.composed(LEGACY, "one").await[0]).to_owned();
    // Another usage takes its place, and protects as well.
    user.apply(&composed("second")).await;
    user.until_gone(LEGACY, &first).await;
    user.until_ready("example.org/v1/Thing", "one").await;
    let second = meta::name(&user.composed(LEGACY, "one").await[0]).to_owned();
    user.until_true(LEGACY, &second, "Ready").await;
    must_be_in_use(&user, NOP, &used).await;
    // With the composite resource everything goes: what uses, its usage, what is used.
    user.delete("example.org/v1/Thing", "one", None).await;
    user.until_gone("example.org/v1/Thing", "one").await;
    user.until_none(LEGACY, "one").await;
    user.until_none(NOP, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_used_is_protected_from_the_first_moment_of_a_plane() {
    let mut user = User::new().await;
    user.apply(&map("default", "used")).await;
    user.apply("apiVersion: protection.crossplane.io/v1beta1\nkind: Usage\nmetadata: {name: u, namespace: default}\nspec:\n  of: {apiVersion: v1, kind: ConfigMap, resourceRef: {name: used}}\n  reason: precious\n").await;
    user.until_true(USAGE, "default/u", "Ready").await;
    for _ in 0..5 {
        user.restart(&[]).await;
        must_be_in_use(&user, MAP, "default/used").await;
    }
    user.delete(USAGE, "default/u", None).await;
    user.until_gone(USAGE, "default/u").await;
    user.delete(MAP, "default/used", None).await;
}
