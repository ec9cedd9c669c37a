//! From a Composition to a composite resource that is ready.

use crate::scenarios::user::*;
use serde_json::{Value, json};
use transom_object::meta;

#[tokio::test(flavor = "multi_thread")]
async fn basic_composition_namespaced() {
    let user = User::new().await;
    let v2 = definition("Thing", "Namespaced", "").replace("crossplane.io/v1\n", "crossplane.io/v2\n");
    user.apply(&v2).await;
    user.apply(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: pass, namespace: default}\nstringData: {token: t}\n",
    )
    .await;
    let mut composed =
        documents(&composition("basic", "Thing", &json!({}), &[one_map("Thing", "I'M COOLER!")])).remove(0);
    composed["spec"]["pipeline"][0]["credentials"] =
        json!([{"name": "pass", "source": "Secret", "secretRef": {"namespace": "default", "name": "pass"}}]);
    user.apply(&composed.to_string()).await;
    user.until_true(XRD, "things.example.org", "Established").await;
    user.apply(&object("Thing", "default/one", "crossplane: {compositionRef: {name: basic}}")).await;
    let xr = user.until_ready(THING, "default/one").await;
    assert_eq!(xr["status"]["coolerField"], "I'M COOLER!");
    assert_eq!(user.composed(MAP, "one").await.len(), 1);
    user.delete(THING, "default/one", Some("Foreground")).await;
    user.until_gone(THING, "default/one").await;
    assert_eq!(user.composed(MAP, "one").await, Vec::<Value>::new());
    user.delete(XRD, "things.example.org", None).await;
    user.delete("apiextensions.crossplane.io/v1/Composition", "basic", None).await;
    user.until_gone(XRD, "things.example.org").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn basic_composition_cluster() {
    let user = User::new().await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("basic", "Thing", &json!({}), &[one_map("Thing", "cool")])).await;
    user.apply(&object("Thing", "one", "")).await;
    let xr = user.until_ready(THING, "one").await;
    assert_eq!(xr["status"]["coolerField"], "cool");
    let maps = user.composed(MAP, "one").await;
    assert_eq!(maps[0]["metadata"]["generateName"], "one-");
    user.delete(THING, "one", Some("Foreground")).await;
    user.until_gone(THING, "one").await;
    assert_eq!(user.composed(MAP, "one").await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn composition_validation() {
    let user = User::new().await;
    let good = documents(&composition("good", "Thing", &json!({}), &[one_map("Thing", "x")])).remove(0);
    let wrong = |change: &dyn Fn(&mut Value)| {
        let mut object = good.clone();
        change(&mut object["spec"]);
        object.to_string()
    };
    let no_pipeline = wrong(&|spec| drop(spec.as_object_mut().map(|s| s.remove("pipeline"))));
    let empty = wrong(&|spec| spec["pipeline"] = json!([]));
    let twice = wrong(&|spec| {
        let step = spec["pipeline"][0].clone();
        spec["pipeline"].as_array_mut().unwrap().push(step);
    });
    let no_secret =
        wrong(&|spec| spec["pipeline"][0]["credentials"] = json!([{"name": "a", "source": "Secret"}]));
    for object in [no_pipeline, empty, twice, no_secret] {
        let why = user.refusal(&object).await;
        assert!(why.contains("is invalid: spec"), "{why}");
    }
    user.apply(&good.to_string()).await;
}

/// The input of a built-in function is reviewed when the Composition is written, if its Function is installed by then.
#[tokio::test(flavor = "multi_thread")]
async fn inputs_are_reviewed_when_they_are_written() {
    let user = User::new().await;
    user.apply(&function("function-patch-and-transform", "")).await;
    let input = |patch: Value| {
        json!({
            "apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources",
            "resources": [{"name": "map", "base": {"apiVersion": "v1", "kind": "ConfigMap"}, "patches": [patch]}],
        })
    };
    let composed = |name: &str, patch: Value| {
        composition(name, "Thing", &json!({}), &[("function-patch-and-transform", input(patch))])
    };
    let good = json!({"type": "FromCompositeFieldPath", "fromFieldPath": "spec.coolField", "toFieldPath": "data.says"});
    let typo = json!({"type": "FromCompositeFieldPth", "fromFieldPath": "spec.coolField"});
    let why = user.refusal(&composed("wrong", typo.clone())).await;
    let at = "Composition \"wrong\" is invalid: spec.pipeline[0].input: invalid input: resources[0].patches[0].type: ";
    assert!(why.contains(at) && why.contains("FromCompositeFieldPath"), "{why}");
    user.apply(&composed("right", good)).await;
    let why = user.refused_change(&composed("right", typo.clone())).await;
    assert!(why.contains("spec.pipeline[0].input"), "{why}");
    // Functions may be installed later, and only inputs of built-in ones are known.
    let later = composition("later", "Thing", &json!({}), &[("not-installed", input(typo))]);
    user.apply(&later).await;
    // What has no effect is a warning.
    let client = user.client().await;
    let mut other =
        documents(&composed("kind", json!({"fromFieldPath": "a", "toFieldPath": "data.a"}))).remove(0);
    other["spec"]["pipeline"][0]["input"]["kind"] = "Resource".into();
    let reply = client.post("/apis/apiextensions.crossplane.io/v1/compositions", &other).await.unwrap();
    assert_eq!(reply.status, 201, "{}", reply.text());
    let warning = reply.headers.get("warning").and_then(|value| value.to_str().ok()).unwrap_or_default();
    assert!(warning.contains("spec.pipeline[0].input.kind") && warning.contains("Resources"), "{warning}");
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaced_xr_cluster_composition() {
    let user = User::new().await;
    user.apply(&definition("Thing", "Namespaced", "")).await;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"});
    let response = answer(&json!({"desired": {"resources": {"role": {"resource": role}}}}));
    user.apply(&composition("roles", "Thing", &json!({}), &[response])).await;
    user.apply(&object("Thing", "default/one", "")).await;
    let words = "cannot apply cluster scoped composed resource";
    let xr = user.until(THING, "default/one", |o| message_of(o, "Synced").contains(words)).await;
    assert_eq!(reason_of(&xr, "Synced"), "ReconcileError");
    user.delete(THING, "default/one", None).await;
    user.until_gone(THING, "default/one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn circuit_breaker() {
    let user = User::new().await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("basic", "Thing", &json!({}), &[one_map("Thing", "cool")])).await;
    user.apply(&object("Thing", "one", "")).await;
    user.apply(&object("Thing", "other", "")).await;
    let xr = user.until_ready(THING, "one").await;
    user.until_ready(THING, "other").await;
    assert_eq!(reason_of(&xr, "Responsive"), "WatchCircuitClosed");
    let map = meta::name(&user.composed(MAP, "one").await[0]).to_owned();
    // Far more events than usual: it is slowed down and reports it, but no event is dropped.
    let mut slowed = false;
    for i in 0..400 {
        user.patch(MAP, &format!("default/{map}"), json!({"data": {"says": format!("storm {i}")}})).await;
        let xr = user.get(THING, "one").await.unwrap();
        slowed |= reason_of(&xr, "Responsive") == "WatchCircuitOpen";
        if slowed {
            break;
        }
    }
    assert!(slowed, "the storm is noticed");
    user.until(MAP, &format!("default/{map}"), |o| o["data"]["says"] == "cool").await;
    let other = user.get(THING, "other").await.unwrap();
    assert_eq!(reason_of(&other, "Responsive"), "WatchCircuitClosed", "others do not notice");
}

#[tokio::test(flavor = "multi_thread")]
async fn composition_invalid_composed() {
    let user = User::new().await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    let map = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"}, "data": data});
    let response = answer(&json!({"desired": {"resources": {
        "good": {"resource": map(json!({"a": "b"})), "ready": "READY_TRUE"},
        "bad": {"resource": map(json!({"no key!": "b"})), "ready": "READY_TRUE"},
    }}}));
    user.apply(&composition("mixed", "Thing", &json!({}), &[response])).await;
    let annotated = object("Thing", "one", "").replace("{name: one}", "{name: one, annotations: {keep: me}}");
    user.apply(&annotated).await;
    let xr = user
        .until(THING, "one", |o| message_of(o, "Synced").starts_with("Unsynced resources: bad (bad: "))
        .await;
    assert_eq!(meta::annotation(&xr, "keep"), Some("me"));
    assert_eq!(user.composed(MAP, "one").await.len(), 1, "one invalid child does not hold up the other");
    user.until_event("one", "cannot apply composed resource \"bad\"").await;
}
