//! What is applied, deleted and referred to, and under which names.

use super::scripted_function::*;
use crate::scenarios::user::*;
use serde_json::{Value, json};
use transom_object::meta;

const CLAIM: &str = "example.org/v1/Claim";

#[tokio::test(flavor = "multi_thread")]
async fn cases_04_18_24_bad_metadata_changes_nothing() {
    let (things, before) = Things::with_one("Cluster").await;
    let user = &things.user;
    let thing = user.get(THING, "one").await.unwrap();
    let named = |name: &str| with(map("x"), json!({"name": name}));
    let invalid = |name: &str| {
        format!("cannot apply composed resource \"new\" because it has an invalid name {name:?}")
    };
    let too_long = "x".repeat(254);
    let mut bad: Vec<(Value, String)> =
        ["Upper", "under_score", "-leading", "trailing-", "a:colon", &too_long]
            .map(|name| (named(name), invalid(name)))
            .into();
    let owner = |uid: &str| json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Other", "name": "o", "uid": uid, "controller": true}]});
    bad.push((with(map("x"), owner("else")), "is already controlled by Other o (UID else)".to_owned()));
    for (object, words) in bad {
        things.want(&[("map", map("after")), ("new", object)]);
        things.look_again("one").await;
        things.until_wrong("one", &words).await;
        assert_eq!(user.composed(MAP, "one").await, before, "{words}");
    }
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:thing"}});
    let longest = "x".repeat(253);
    let ours = with(named("ours"), owner(meta::uid(&thing)));
    things.want(&[("map", map("after")), ("role", role), ("long", named(&longest)), ("ours", ours)]);
    things.look_again("one").await;
    user.until("rbac.authorization.k8s.io/v1/ClusterRole", "system:thing", |_| true).await;
    user.until(MAP, &format!("default/{longest}"), |_| true).await;
    let ours = user.until(MAP, "default/ours", |_| true).await;
    assert_eq!(
        meta::controller_of(&ours).map(|owner| owner.kind),
        Some("Thing".to_owned()),
        "its own is put right"
    );
    things.until_well("one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_06_a_namespaced_thing_stays_in_its_namespace() {
    let things = Things::new("Namespaced").await;
    let user = &things.user;
    let overridden = async |name: &str| {
        user.events_of(name).await.iter().any(|event| event.contains("NamespaceOverridden"))
    };
    user.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: elsewhere}\n").await;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {}});
    things.want(&[("same", map("x"))]);
    user.apply(&object("Thing", "default/same", "")).await;
    things.until_well("default/same").await;
    assert!(!overridden("same").await);
    things.want(&[("other", with(map("x"), json!({"namespace": "elsewhere"})))]);
    user.apply(&object("Thing", "default/other", "")).await;
    things.until_well("default/other").await;
    let words = r#"cannot create composed resource "other" in namespace "elsewhere", using XR namespace "default" instead"#;
    user.until_event("other", words).await;
    assert!(overridden("other").await);
    assert_eq!(meta::namespace(&user.composed(MAP, "other").await[0]), "default");
    things.want(&[("role", role.clone())]);
    user.apply(&object("Thing", "default/third", "")).await;
    things.until_wrong("default/third", "cannot apply cluster scoped composed resource \"role\"").await;

    let things = Things::new("Cluster").await;
    things.want(&[("role", role)]);
    things.user.apply(&object("Thing", "one", "")).await;
    things.until_well("one").await;
    assert_eq!(things.user.composed("rbac.authorization.k8s.io/v1/ClusterRole", "one").await.len(), 1);
}

/// What a CustomResourceDefinition of the test makes: objects that must not change once they are frozen.
const FREEZING: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: waters.example.org}
spec:
  group: example.org
  scope: Cluster
  names: {kind: Water, plural: waters}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {frozen: {type: boolean}}}}
        x-kubernetes-validations:
        - {rule: "!oldSelf.spec.frozen", message: it is frozen}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn case_07_every_refused_write_is_reported_and_repeated() {
    // A thing with more than two parts, or a status that is not a text, is refused by the server.
    let few = "size(self.spec.crossplane.resourceRefs) < 3";
    let rule = format!(
        "openAPIV3Schema:\n        x-kubernetes-validations:\n        - {{rule: '!has(self.spec.crossplane) || !has(self.spec.crossplane.resourceRefs) || {few}', message: too many}}"
    );
    let things =
        Things::defined_by(&definition("Thing", "Cluster", "").replace("openAPIV3Schema:", &rule)).await;
    let user = &things.user;
    user.apply(FREEZING).await;
    user.until_true("apiextensions.k8s.io/v1/CustomResourceDefinition", "waters.example.org", "Established")
        .await;
    let water = |frozen: bool| json!({"apiVersion": "example.org/v1", "kind": "Water", "metadata": {"name": "w"}, "spec": {"frozen": frozen}});
    things.want(&[("map", map("x")), ("water", water(true))]);
    user.apply(&object("Thing", "one", "")).await;
    things.until_well("one").await;
    let maps = user.composed(MAP, "one").await;

    things.want(&[("map", map("x")), ("more", map("x")), ("water", water(true)), ("yet", map("x"))]);
    things.look_again("one").await;
    user.until_event("one", "cannot update composed resource references").await;
    things.until_wrong("one", "cannot compose resources: ").await;
    assert_eq!(user.composed(MAP, "one").await, maps, "nothing is made that is not referred to");

    things.want(&[("map", map("x"))]);
    things.look_again("one").await;
    user.until_event("one", "cannot garbage collect composed resources that are no longer desired: cannot cleanup composed resource labels of resource \"water\"").await;
    let thing = user.get(THING, "one").await.unwrap();
    assert_eq!(references(&thing).len(), 2, "what could not be deleted is still referred to");

    // The rule goes, and with it the trouble.
    user.apply(&FREEZING.replace("!oldSelf.spec.frozen", "true || !oldSelf.spec.frozen")).await;
    user.until_gone("example.org/v1/Water", "w").await;
    things.until_well("one").await;

    user.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: going, finalizers: [example.org/hold]}\n")
        .await;
    user.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, namespace: going, finalizers: [example.org/hold]}\n").await;
    user.delete("v1/Namespace", "going", None).await;
    user.until("v1/Namespace", "going", meta::is_deleting).await;
    things.want(&[("map", map("x")), ("late", with(map("x"), json!({"namespace": "going"})))]);
    things.look_again("one").await;
    things.until_wrong("one", "cannot apply composed resource \"late\"").await;

    things.answer(|response| response.composite().set("status.coolerField", 1).expect("an object"));
    things.look_again("one").await;
    user.until_event("one", "cannot apply composite resource status").await;
    things.want(&[("map", map("x"))]);
    things.look_again("one").await;
    things.until_well("one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_13_21_22_names_are_the_same_every_time_and_those_of_functions_stay() {
    let things = Things::new("Cluster").await;
    let user = &things.user;
    let long = "a-name-so-long-that-nothing-more-would-fit-if-it-was-not-cut";
    things.want(&[("one", map("x")), ("two", map("x")), ("named", with(map("x"), json!({"name": "mine"})))]);
    user.apply(&object("Thing", long, "")).await;
    let thing = things.until_well(long).await;
    let mut expected = vec!["mine".to_owned()];
    let child = |part: &str| transom_compose::child_name(&format!("{long}-"), meta::uid(&thing), part);
    expected.extend(["one", "two"].map(child));
    expected.sort();
    let named = |maps: Vec<Value>| {
        let mut names: Vec<String> = maps.iter().map(|map| meta::name(map).to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(named(user.composed(MAP, long).await), expected);
    assert!(expected.iter().all(|name| name.len() <= 63), "{expected:?}");
    for name in &expected {
        let name = format!("default/{name}");
        let uid = user.get(MAP, &name).await.unwrap()["metadata"]["uid"].clone();
        user.delete(MAP, &name, None).await;
        user.until(MAP, &name, |o| o["metadata"]["uid"] != uid).await;
    }
    // What exists is neither renamed nor moved, whatever a function says now.
    let moved = with(map("y"), json!({"name": "other", "namespace": "elsewhere"}));
    things.want(&[("one", map("x")), ("two", map("x")), ("named", moved)]);
    things.look_again(long).await;
    user.until(MAP, "default/mine", |o| o["data"]["says"] == "y").await;
    things.until_well(long).await;
    assert_eq!(named(user.composed(MAP, long).await), expected);
    let generated = user.get(MAP, "default/mine").await.unwrap()["metadata"]["generateName"].clone();
    assert_eq!(generated, Value::Null, "a name that was given is not generated");
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_14_15_only_what_is_its_own_is_observed_and_deleted() {
    let things = Things::new("Cluster").await;
    let user = &things.user;
    let parts = ["absent", "foreign", "free", "kept", "unwanted"];
    let wanted: Vec<(&str, Value)> =
        parts.iter().map(|part| (*part, with(map("x"), json!({"name": part})))).collect();
    things.want(&wanted);
    user.apply(&object("Thing", "one", "")).await;
    let thing = things.until_well("one").await;
    assert_eq!(references(&thing).len(), 5);
    user.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owner, namespace: default}\n").await;
    let owner = user.get(MAP, "default/owner").await.unwrap();
    let owned = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": meta::uid(&owner), "controller": true}]);
    // Meanwhile one gets another controller, one loses its controller, one is deleted.
    user.patch(THING, "one", json!({"metadata": {"annotations": {"crossplane.io/paused": "true"}}})).await;
    user.until(THING, "one", |o| reason_of(o, "Synced") == "ReconcilePaused").await;
    user.patch(MAP, "default/foreign", json!({"metadata": {"ownerReferences": owned}})).await;
    user.patch(MAP, "default/free", json!({"metadata": {"ownerReferences": null}})).await;
    user.delete(MAP, "default/absent", None).await;
    user.until_gone(MAP, "default/absent").await;
    // A reference without a name refers to nothing.
    let mut nameless = references(&thing);
    nameless.push(json!({"apiVersion": "v1", "kind": "ConfigMap"}));
    user.patch(THING, "one", json!({"spec": {"crossplane": {"resourceRefs": nameless}}})).await;
    things.want(&[("kept", with(map("x"), json!({"name": "kept"})))]);
    user.patch(THING, "one", json!({"metadata": {"annotations": {"crossplane.io/paused": null}}})).await;
    user.until_gone(MAP, "default/unwanted").await;
    let thing = user.until(THING, "one", |o| references(o).len() == 1).await;
    assert_eq!(references(&thing)[0]["name"], "kept");
    user.until_idle().await;
    for name in ["foreign", "free", "kept"] {
        let found = user.get(MAP, &format!("default/{name}")).await;
        assert!(found.is_some_and(|o| !meta::is_deleting(&o)), "{name} is left alone");
    }
    assert!(user.get(MAP, "default/absent").await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn case_16_references_are_in_order_and_name_namespaces_where_they_must() {
    let things = Things::new("Cluster").await;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}});
    let parts = ["b", "c", "a"].map(|name| (name, with(map("x"), json!({"name": name}))));
    let mut wanted = parts.to_vec();
    wanted.push(("role", role));
    things.want(&wanted);
    things.user.apply(&object("Thing", "one", "")).await;
    let thing = things.until_well("one").await;
    let reference =
        |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": name});
    let mut expected = ["a", "b", "c"].map(reference).to_vec();
    expected
        .insert(0, json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "r"}));
    assert_eq!(references(&thing), expected);
    things.look_again("one").await;
    things.user.until_idle().await;
    assert_eq!(references(&things.user.get(THING, "one").await.unwrap()), expected, "the order stays");

    let things = Things::new("Namespaced").await;
    things.want(&parts);
    things.user.apply(&object("Thing", "default/one", "")).await;
    let thing = things.until_well("default/one").await;
    let expected = ["a", "b", "c"].map(|name| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name}));
    assert_eq!(references(&thing), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_19_only_what_is_claimed_names_a_claim() {
    let claimed = definition("Thing", "LegacyCluster", "claimNames: {kind: Claim, plural: claims}");
    let things = Things::defined_by(&claimed).await;
    let user = &things.user;
    things.want(&[("map", map("x"))]);
    user.until_true(XRD, "things.example.org", "Offered").await;
    user.apply(&object("Thing", "alone", "")).await;
    things.until_well("alone").await;
    user.apply(&object("Claim", "default/c", "")).await;
    let claim = user.until_ready(CLAIM, "default/c").await;
    let claimed = claim["spec"]["resourceRef"]["name"].as_str().unwrap().to_owned();
    let labels = async |thing: &str| user.composed(MAP, thing).await[0]["metadata"]["labels"].clone();
    assert_eq!(labels("alone").await, json!({"crossplane.io/composite": "alone"}));
    let expected = json!({
        "crossplane.io/composite": claimed, "crossplane.io/claim-name": "c", "crossplane.io/claim-namespace": "default",
    });
    assert_eq!(labels(&claimed).await, expected);
}
