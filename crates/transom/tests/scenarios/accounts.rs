//! Composite resources that are composed under the service account that their definition names.

use crate::scenarios::user::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use transom_engine::Cluster;
use transom_function::ResourceSelector;
use transom_object::meta;

const ACCOUNT: &str = "v1/ServiceAccount";

fn account(name: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap();
    format!("apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}, namespace: {namespace}}}\n")
}

fn namespace(name: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n")
}

/// A Role of an account in a namespace, with its binding.
fn allowed(account: &str, within: &str, name: &str, rule: &Value) -> String {
    let (namespace, account) = account.split_once('/').unwrap();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": name, "namespace": within}, "rules": [rule],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": within},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    });
    format!("{role}\n---\n{binding}\n")
}

fn writing(resource: &str) -> Value {
    json!({"apiGroups": [""], "resources": [resource], "verbs": ["get", "create", "update", "patch", "delete"]})
}

/// The rule that allows to name an account in definitions.
fn using(account: &str) -> Value {
    json!({"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": [account], "verbs": ["use"]})
}

/// Composes a ConfigMap, and a Secret if it is asked to.
fn maps_and_secrets() -> String {
    composition("things", "Thing", &json!({}), &[template(MAP_AND_SECRET), auto_ready()])
}

const MAP_AND_SECRET: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata:
  annotations: {{ "{" }}{{ setResourceNameAnnotation "map" }}{{ "}" }}
data: {says: hello}
{{- if eq (.observed.composite.resource.spec.coolField | default "") "secret" }}
---
apiVersion: v1
kind: Secret
metadata:
  annotations: {{ "{" }}{{ setResourceNameAnnotation "secret" }}{{ "}" }}
stringData: {says: hello}
{{- end }}
"#;

/// A plane on which Things are composed under `shop/composer`, which may write ConfigMaps in its namespace.
async fn shop(more: &str) -> User {
    let user = User::new().await;
    user.apply(&namespace("shop")).await;
    user.apply(&account("shop/composer")).await;
    user.apply(&allowed("shop/composer", "shop", "maps", &writing("configmaps"))).await;
    user.apply(&definition("Thing", "Namespaced", &format!("serviceAccountRef: {{{more}}}"))).await;
    user
}

const COMPOSER: &str = "name: composer, namespace: shop";

#[tokio::test(flavor = "multi_thread")]
async fn an_account_bounds_what_is_composed() {
    let user = shop(COMPOSER).await;
    user.apply(&maps_and_secrets()).await;
    user.apply(&object("Thing", "shop/one", "coolField: map")).await;
    user.until_ready(THING, "shop/one").await;
    user.apply(&object("Thing", "shop/one", "coolField: secret")).await;
    let denied = user.until(THING, "shop/one", |o| status_of(o, "Synced") == "False").await;
    let why = message_of(&denied, "Synced");
    let missing = "service account shop/composer is not allowed to [get, create, update, patch, delete] resource \
                   secrets/v1 in namespace shop; A Role in namespace shop with the rule {apiGroups: [\"\"], resources: \
                   [secrets], verbs: [get, create, update, patch, delete]}, bound to service account shop/composer, \
                   allows it";
    assert!(why.starts_with("cannot compose resources: "), "{why}");
    assert!(why.contains(missing), "{why}");
    user.until_event("one", missing).await;
    assert!(user.composed(SECRET, "one").await.is_empty());
    user.apply(&allowed("shop/composer", "shop", "secrets", &writing("secrets"))).await;
    user.until_ready(THING, "shop/one").await;
    assert_eq!(user.composed(SECRET, "one").await.len(), 1, "without a restart");
    // Another namespace is out of the reach of the account.
    user.apply(&object("Thing", "default/two", "coolField: map")).await;
    let denied = user.until(THING, "default/two", |o| status_of(o, "Synced") == "False").await;
    assert!(message_of(&denied, "Synced").contains("A Role in namespace default with"), "{denied:#}");
    assert!(user.composed(MAP, "two").await.is_empty());
    user.delete(THING, "shop/one", Some("Foreground")).await;
    user.until_gone(THING, "shop/one").await;
    user.until_none(SECRET, "one").await;
}

/// A definition of `apiextensions.crossplane.io/v1` has cluster scoped composite resources with claims, and an account in one
/// namespace: it may make ConfigMaps there, and nothing else anywhere.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_bounds_what_a_v1_definition_composes() {
    let user = shop(COMPOSER).await;
    let v2 = definition("Old", "LegacyCluster", &format!("serviceAccountRef: {{{COMPOSER}}}"));
    let mut old = documents(&v2).remove(0);
    old["apiVersion"] = "apiextensions.crossplane.io/v1".into();
    old["spec"].as_object_mut().unwrap().remove("scope");
    old["spec"]["claimNames"] = json!({"kind": "OldClaim", "plural": "oldclaims"});
    user.apply(&old.to_string()).await;
    let in_shop = MAP_AND_SECRET.replace("metadata:\n", "metadata:\n  namespace: shop\n");
    user.apply(&composition("olds", "Old", &json!({}), &[template(&in_shop), auto_ready()])).await;
    user.apply(&object("OldClaim", "default/one", "coolField: map")).await;
    user.until_ready("example.org/v1/OldClaim", "default/one").await;
    let maps = user.list(MAP).await;
    let composed = maps.iter().find(|map| map["data"]["says"] == "hello").expect("there is a ConfigMap");
    assert_eq!(meta::namespace(composed), "shop");
    user.apply(&object("OldClaim", "default/one", "coolField: secret")).await;
    let composite = user.until_any("example.org/v1/Old", |o| status_of(o, "Synced") == "False").await;
    let why = message_of(&composite, "Synced");
    let missing = "service account shop/composer is not allowed to [get, create, update, patch, delete] resource \
                   secrets/v1 in namespace shop; A Role in namespace shop with the rule";
    assert!(why.contains(missing), "{why}");
    let name = meta::name(&composite);
    assert!(user.composed(SECRET, name).await.is_empty(), "it was not made under another account");
    user.apply(&allowed("shop/composer", "shop", "secrets", &writing("secrets"))).await;
    user.until_any("example.org/v1/Old", |o| status_of(o, "Synced") == "True").await;
    assert_eq!(user.composed(SECRET, name).await.len(), 1, "without a restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_and_echo_suppression_work_under_an_account() {
    let user = shop(COMPOSER).await;
    user.apply(&maps_and_secrets()).await;
    user.apply(&object("Thing", "shop/one", "coolField: map")).await;
    user.until_ready(THING, "shop/one").await;
    user.until_idle().await;
    let reconciles = async || {
        user.counted("controller_runtime_reconcile_total", "controller=\"composite/things.example.org\"")
            .await
    };
    let (before, version) = (reconciles().await, versions(&user).await);
    assert!(before > 0);
    user.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: shop}\n").await;
    user.until_idle().await;
    assert_eq!((reconciles().await, versions(&user).await), (before, version), "nothing is done at rest");
    let map = user.composed(MAP, "one").await.remove(0);
    let name = format!("shop/{}", meta::name(&map));
    user.patch(MAP, &name, json!({"data": {"says": "something else"}})).await;
    user.until(MAP, &name, |o| o["data"]["says"] == "hello").await;
    user.delete(MAP, &name, None).await;
    user.until(MAP, &name, |o| meta::uid(o) != meta::uid(&map)).await;
}

/// The versions of a Thing and of what it composes.
async fn versions(user: &User) -> Vec<String> {
    let mut objects = user.composed(MAP, "one").await;
    objects.extend(user.get(THING, "shop/one").await);
    objects.iter().map(|object| meta::resource_version(object).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_composed_while_the_account_does_not_exist() {
    let user = shop(COMPOSER).await;
    user.apply(&maps_and_secrets()).await;
    user.apply(&object("Thing", "shop/one", "coolField: map")).await;
    user.until_ready(THING, "shop/one").await;
    user.delete(ACCOUNT, "shop/composer", None).await;
    let denied = user.until(THING, "shop/one", |o| status_of(o, "Synced") == "False").await;
    let why = message_of(&denied, "Synced");
    assert!(
        why.contains("service account shop/composer") && why.contains("does not exist: create it"),
        "{why}"
    );
    user.apply(&account("shop/composer")).await;
    user.until_ready(THING, "shop/one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_by_name_alone_is_in_the_namespace_of_each_composite_resource() {
    let user = shop("name: composer").await;
    user.apply(&maps_and_secrets()).await;
    user.apply(&object("Thing", "shop/one", "coolField: map")).await;
    user.until_ready(THING, "shop/one").await;
    user.apply(&account("default/composer")).await;
    user.apply(&object("Thing", "default/one", "coolField: map")).await;
    let denied = user.until(THING, "default/one", |o| status_of(o, "Synced") == "False").await;
    assert!(
        message_of(&denied, "Synced").contains("service account default/composer is not allowed"),
        "{denied:#}"
    );
    let refusal = user.refusal(&definition("Other", "Cluster", "serviceAccountRef: {name: composer}")).await;
    assert!(
        refusal.contains("serviceAccountRef.namespace is required unless the scope is Namespaced"),
        "{refusal}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_functions_require_is_read_under_the_account() {
    let user = shop(COMPOSER).await;
    user.function("asking", |request, response| {
        response.require("named", ResourceSelector::named("v1", "Secret", "wanted").in_namespace("shop"));
        let labels = BTreeMap::from([("wanted".to_owned(), "yes".to_owned())]);
        response.require("labelled", ResourceSelector::labelled("v1", "Secret", labels).in_namespace("shop"));
        let given = |name: &str| request.required(name).map(<[_]>::len).unwrap_or_default();
        let (named, labelled) = (given("named"), given("labelled"));
        response.composite().set("status.coolerField", format!("{named} and {labelled}"))?;
        Ok(())
    })
    .await;
    user.apply(&composition("asks", "Thing", &json!({}), &[("asking", Value::Null)])).await;
    let secret =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: wanted, namespace: shop, labels: {wanted: 'yes'}}\n";
    user.apply(secret).await;
    user.apply(&object("Thing", "shop/one", "")).await;
    let refused =
        |o: &Value| message_of(o, "Synced").contains("is not allowed to [get, list] resource secrets/v1");
    user.until(THING, "shop/one", refused).await;
    let reading = |verbs: &[&str]| json!({"apiGroups": [""], "resources": ["secrets"], "verbs": verbs});
    user.apply(&allowed("shop/composer", "shop", "reading", &reading(&["get"]))).await;
    let refused =
        |o: &Value| message_of(o, "Synced").contains("is not allowed to [list] resource secrets/v1");
    user.until(THING, "shop/one", refused).await;
    user.apply(&allowed("shop/composer", "shop", "reading", &reading(&["get", "list"]))).await;
    let given = |o: &Value| o["status"]["coolerField"] == "1 and 1" && status_of(o, "Synced") == "True";
    user.until(THING, "shop/one", given).await;
}

/// A tenant who may write definitions.
async fn tenant(user: &User) -> Cluster {
    user.apply(&namespace("tenant")).await;
    user.apply(&account("tenant/author")).await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "authors"},
        "rules": [{"apiGroups": ["apiextensions.crossplane.io"], "resources": ["*"], "verbs": ["*"]}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "authors"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "authors"},
        "subjects": [{"kind": "ServiceAccount", "name": "author", "namespace": "tenant"}],
    });
    user.apply(&format!("{role}\n---\n{binding}\n")).await;
    user.cluster.acting_as("system:serviceaccount:tenant:author")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_cannot_use_the_account_of_another() {
    let user = shop(COMPOSER).await;
    let tenant = tenant(&user).await;
    let borrowing = definition("Loan", "Cluster", &format!("serviceAccountRef: {{{COMPOSER}}}"));
    let borrowing = documents(&borrowing).remove(0);
    let refused = tenant.create(&borrowing, "kubectl").await.unwrap_err();
    assert!(refused.is_forbidden(), "{refused}");
    let why = refused.to_string();
    let words = "spec.serviceAccountRef: user \"system:serviceaccount:tenant:author\" may not use service account \
                 \"shop/composer\": it takes the verb use on it. A Role in namespace shop with the rule \
                 {apiGroups: [\"\"], resources: [serviceaccounts], resourceNames: [composer], verbs: [use]}";
    assert!(why.contains(words), "{why}");
    // Neither by a change of what is its own, nor for all namespaces at once.
    let plain = documents(&definition("Loan", "Namespaced", "")).remove(0);
    let own = tenant.create(&plain, "kubectl").await.unwrap();
    for account in [json!({"name": "composer", "namespace": "shop"}), json!({"name": "composer"})] {
        let patch = json!({"spec": {"serviceAccountRef": account}});
        let refused = tenant.merge_patch(&own, &patch, "kubectl").await.unwrap_err();
        assert!(refused.is_forbidden(), "{refused}");
    }
    // What others allowed may be changed otherwise, and given up.
    let theirs = user.get(XRD, "things.example.org").await.unwrap();
    let labelled = json!({"metadata": {"labels": {"seen": "yes"}}});
    tenant.merge_patch(&theirs, &labelled, "kubectl").await.unwrap();
    user.apply(&allowed("tenant/author", "shop", "using", &using("composer"))).await;
    let patch = json!({"spec": {"serviceAccountRef": {"name": "composer", "namespace": "shop"}}});
    tenant.merge_patch(&own, &patch, "kubectl").await.unwrap();
    let patch = json!({"spec": {"serviceAccountRef": {"name": "composer", "namespace": null}}});
    let refused = tenant.merge_patch(&own, &patch, "kubectl").await.unwrap_err();
    assert!(refused.to_string().contains("\"composer\" in all namespaces"), "{refused}");
}

/// Gives an author everything on what definitions, Compositions and composite resources are, and nothing on accounts.
async fn author(user: &User) -> Cluster {
    let author = tenant(user).await;
    let rules = json!([
        {"apiGroups": ["apiextensions.crossplane.io"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["example.org"], "resources": ["*"], "verbs": ["*"]},
    ]);
    user.patch("rbac.authorization.k8s.io/v1/ClusterRole", "authors", json!({"rules": rules})).await;
    author
}

#[tokio::test(flavor = "multi_thread")]
async fn a_composed_definition_cannot_name_an_account_for_its_author() {
    let user = shop(COMPOSER).await;
    let author = author(&user).await;
    let loan = definition("Loan", "Cluster", &format!("serviceAccountRef: {{{COMPOSER}}}"));
    let named =
        "metadata: {annotations: {gotemplating.fn.crossplane.io/composition-resource-name: loan}, name:";
    let loan = loan.replacen("metadata: {name:", named, 1);
    let outer = definition("Outer", "Cluster", "");
    let composing = composition("outers", "Outer", &json!({}), &[template(&loan)]);
    for written in [&outer, &composing] {
        author.create(&documents(written).remove(0), "kubectl").await.unwrap();
    }
    user.until_true(XRD, "outers.example.org", "Established").await;
    author.create(&documents(&object("Outer", "one", "")).remove(0), "kubectl").await.unwrap();
    const OUTER: &str = "example.org/v1/Outer";
    let refused = user.until(OUTER, "one", |o| status_of(o, "Synced") == "False").await;
    let why = message_of(&refused, "Synced");
    let words = "user \"system:serviceaccount:crossplane-system:crossplane\" may not use service account \"shop/composer\": \
                 it takes the verb use on it. A Role in namespace shop with the rule {apiGroups: [\"\"], resources: \
                 [serviceaccounts], resourceNames: [composer], verbs: [use]}, bound to the user, allows it";
    assert!(why.contains(words), "{why}");
    assert_eq!(user.get(XRD, "loans.example.org").await, None);
    // The remedy, which takes a user who has the right.
    user.apply(&allowed("crossplane-system/crossplane", "shop", "lending", &using("composer"))).await;
    user.until(OUTER, "one", |o| status_of(o, "Synced") == "True").await;
    user.until_true(XRD, "loans.example.org", "Established").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_accounts_of_the_control_plane_cannot_be_named() {
    let user = shop(COMPOSER).await;
    for account in [
        "name: rbac-manager, namespace: crossplane-system",
        "name: crossplane, namespace: crossplane-system",
        // It is in the namespace of each composite resource, which can be that of the control plane.
        "name: rbac-manager",
    ] {
        let own = definition("Own", "Namespaced", &format!("serviceAccountRef: {{{account}}}"));
        let refusal = user.refusal(&own).await;
        assert!(refusal.contains("is the control plane itself"), "{refusal}");
        assert!(refusal.contains("name another account"), "{refusal}");
    }
    user.apply(&definition("Own", "Namespaced", "serviceAccountRef: {name: rbac-manager, namespace: shop}"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_is_being_deleted_names_no_account_of_others() {
    let user = shop(COMPOSER).await;
    let tenant = tenant(&user).await;
    let plain = definition("Loan", "Namespaced", "");
    let held = plain.replacen("metadata: {", "metadata: {finalizers: [example.org/held], ", 1);
    let own = tenant.create(&documents(&held).remove(0), "kubectl").await.unwrap();
    user.until_true(XRD, "loans.example.org", "Established").await;
    user.delete(XRD, "loans.example.org", None).await;
    let patch = json!({"spec": {"serviceAccountRef": {"name": "composer", "namespace": "shop"}}});
    let refused = tenant.merge_patch(&own, &patch, "kubectl").await.unwrap_err();
    assert!(
        refused.is_forbidden() && refused.to_string().contains("may not use service account"),
        "{refused}"
    );
    tenant.merge_patch(&own, &json!({"metadata": {"finalizers": []}}), "kubectl").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_plane_that_may_not_impersonate_says_so() {
    let user = shop(COMPOSER).await;
    let role = "rbac.authorization.k8s.io/v1/ClusterRole";
    let off = json!({
        "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}},
        "rules": [{"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["get", "list", "watch"]}],
    });
    user.patch(role, "transom:impersonated-accounts", off).await;
    let impersonates = |o: &Value| !o["rules"].to_string().contains("impersonate");
    user.until(role, "crossplane", impersonates).await;
    user.apply(&maps_and_secrets()).await;
    user.apply(&object("Thing", "shop/one", "coolField: map")).await;
    let denied = user.until(THING, "shop/one", |o| status_of(o, "Synced") == "False").await;
    let why = message_of(&denied, "Synced");
    assert!(why.contains("the control plane may not act as service account shop/composer"), "{why}");
    assert!(why.contains("resourceNames: [composer], verbs: [impersonate]}"), "{why}");
}
