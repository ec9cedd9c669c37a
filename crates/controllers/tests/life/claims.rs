//! Claims and their composite resources.

use crate::life::basics::*;
use crate::life::fixture::*;
use serde_json::{Value, json};
use transom_function::Ready;
use transom_object::meta;

const CLAIM: &str = "example.org/v1/Thing";

fn claim(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: example.org/v1\nkind: Thing\nmetadata: {{name: {name}, namespace: default}}\nspec: {spec}\n"
    )
}

async fn bound(plane: &Plane, name: &str) -> Value {
    let claim = plane.until_true(CLAIM, &format!("default/{name}"), "Ready").await;
    let xr = claim["spec"]["resourceRef"]["name"].as_str().unwrap();
    plane.get(XR, xr).await.unwrap()
}

#[tokio::test]
async fn legacy_composition() {
    let plane = with_things("LegacyCluster", true).await;
    plane.apply(&claim("one", "{size: small}")).await;
    let xr = bound(&plane, "one").await;
    assert!(meta::name(&xr).starts_with("one-"));
    assert_eq!(xr["spec"]["claimRef"]["name"], "one");
    assert_eq!(xr["metadata"]["labels"]["crossplane.io/claim-name"], "one");
    assert_eq!(xr["metadata"]["labels"]["crossplane.io/claim-namespace"], "default");
    let claim = plane.get(CLAIM, "default/one").await.unwrap();
    assert_eq!(claim["status"]["size"], "small");
    assert_eq!(claim["spec"]["compositionRef"]["name"], "things", "the choice flows back");
    assert_eq!(reason_of(&claim, "Synced"), "ReconcileSuccess");
    let composed = plane.get("v1/ConfigMap", &composed_name(&xr)).await.unwrap();
    assert_eq!(composed["metadata"]["labels"]["crossplane.io/claim-name"], "one");
    let before = plane.until_idle().await;
    let after = plane.after(std::time::Duration::from_secs(2)).await;
    assert_eq!(after, before, "{:#?}", plane.log());
    plane.delete(CLAIM, "default/one").await;
    plane.until_gone(CLAIM, "default/one").await;
    plane.until_gone(XR, meta::name(&xr)).await;
    plane.until_gone("v1/ConfigMap", &composed_name(&xr)).await;
}

#[tokio::test]
async fn a_foreground_claim_waits_for_its_composite_resource() {
    let plane = with_things("LegacyCluster", true).await;
    plane.apply(&claim("one", "{size: small, compositeDeletePolicy: Foreground}")).await;
    let xr = bound(&plane, "one").await;
    plane.delete(CLAIM, "default/one").await;
    plane.until_gone(CLAIM, "default/one").await;
    assert!(plane.get(XR, meta::name(&xr)).await.is_none());
    assert!(plane.get("v1/ConfigMap", &composed_name(&xr)).await.is_none());
}

#[tokio::test]
async fn legacy_propagate_fields_removal_to_xr() {
    let plane = with_things("LegacyCluster", true).await;
    let with = "apiVersion: example.org/v1\nkind: Thing\nmetadata:\n  name: one\n  namespace: default\n  labels: {keep: a, drop: b}\n  annotations: {note: c}\nspec: {size: small}\n";
    plane.apply(with).await;
    let xr = bound(&plane, "one").await;
    assert_eq!(xr["metadata"]["labels"]["drop"], "b");
    assert_eq!(xr["metadata"]["annotations"]["note"], "c");
    let without = "apiVersion: example.org/v1\nkind: Thing\nmetadata:\n  name: one\n  namespace: default\n  labels: {keep: a}\nspec: {}\n";
    plane.apply(without).await;
    let xr = plane.until(XR, meta::name(&xr), |o| o["metadata"]["labels"].get("drop").is_none()).await;
    assert_eq!(xr["metadata"]["labels"]["keep"], "a");
    assert!(xr["metadata"]["annotations"].get("note").is_none());
    plane.until(XR, meta::name(&xr), |o| o["spec"].get("size").is_none()).await;
}

#[tokio::test]
async fn legacy_bind_to_existing_xr() {
    let plane = with_things("LegacyCluster", true).await;
    plane.apply(&xr("mine", "small")).await;
    plane.until_true(XR, "mine", "Ready").await;
    let reference = "resourceRef: {apiVersion: example.org/v1, kind: XThing, name: mine}";
    plane.apply(&claim("one", &format!("{{size: large, {reference}}}"))).await;
    plane.until_true(CLAIM, "default/one", "Ready").await;
    let xr = plane.until(XR, "mine", |o| o["spec"]["size"] == "large").await;
    assert_eq!(xr["spec"]["claimRef"]["name"], "one");
    plane.apply(&claim("two", &format!("{{size: huge, {reference}}}"))).await;
    let refused = plane.until(CLAIM, "default/two", |o| status_of(o, "Synced") == "False").await;
    assert_eq!(
        message_of(&refused, "Synced"),
        "refusing to operate on composite resource \"mine\" that is not bound to this claim: bound to claim \"one\""
    );
    plane.delete(CLAIM, "default/one").await;
    plane.until_gone(XR, "mine").await;
}

#[tokio::test]
async fn a_paused_claim_does_nothing() {
    let plane = with_things("LegacyCluster", true).await;
    let paused = "apiVersion: example.org/v1\nkind: Thing\nmetadata:\n  name: one\n  namespace: default\n  annotations: {crossplane.io/paused: \"true\"}\nspec: {size: small}\n";
    plane.apply(paused).await;
    let claim = plane.until(CLAIM, "default/one", |o| reason_of(o, "Synced") == "ReconcilePaused").await;
    assert!(claim["spec"].get("resourceRef").is_none());
    plane
        .patch(CLAIM, "default/one", json!({"metadata": {"annotations": {"crossplane.io/paused": null}}}))
        .await;
    plane.until_true(CLAIM, "default/one", "Ready").await;
}

/// A claim `one` that asks for a secret `for-me`, and what composes it publishes a password.
async fn with_details() -> Plane {
    let mut plane = Plane::new().await;
    plane.run_nops().await;
    plane
        .function("connected", |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            let nop = json!({
                "apiVersion": "nop.crossplane.io/v1alpha1", "kind": "NopResource",
                "spec": {
                    "forProvider": {
                        "conditionAfter": [{"time": "0s", "conditionType": "Ready", "conditionStatus": "True"}],
                        "connectionDetails": [{"name": "password", "value": "sesame"}, {"name": "other", "value": "x"}],
                    },
                    "writeConnectionSecretToRef": {"namespace": "default", "name": "from-nop"},
                },
            });
            let mut resource = transom_function::Resource::new(nop)?;
            let observed = request.observed_composed("nop");
            let is_ready = observed.is_some_and(|o| {
                let conditions = o.object()["status"]["conditions"].as_array().cloned().unwrap_or_default();
                conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
            });
            resource.set_ready(if is_ready { Ready::True } else { Ready::False });
            for (key, value) in observed.map(|o| o.connection_details.clone()).unwrap_or_default() {
                response.set_connection_detail(key, value);
            }
            response.set_composed("nop", resource);
            Ok(response)
        })
        .await;
    let keys = definition("LegacyCluster", true)
        .replace("  versions:", "  connectionSecretKeys: [password]\n  versions:");
    plane.apply(&keys).await;
    let composition =
        composition("things", &["connected"]) + "  writeConnectionSecretsToNamespace: kube-system\n";
    plane.apply(&composition).await;
    plane.until_true(XRD, "xthings.example.org", "Offered").await;
    plane.apply(&claim("one", "{size: small, writeConnectionSecretToRef: {name: for-me}}")).await;
    plane
}

#[tokio::test]
async fn the_secret_of_a_claim_follows_that_of_its_composite_resource() {
    let plane = with_details().await;
    let xr = bound(&plane, "one").await;
    plane.until("v1/Secret", "default/for-me", |s| s["data"].get("password").is_some()).await;
    plane.until_idle().await;
    // Neither the claim nor its composite resource says that anything happened.
    let source = format!("kube-system/{}", meta::uid(&xr));
    plane.patch("v1/Secret", &source, json!({"data": {"more": "b3Blbg=="}})).await;
    let is_new = |secret: &Value| secret["data"]["more"] == "b3Blbg==";
    plane.until("v1/Secret", "default/for-me", is_new).await;
    plane.delete("v1/Secret", "default/for-me").await;
    plane.until("v1/Secret", "default/for-me", is_new).await;
}

#[tokio::test]
async fn connection_details_reach_the_claim() {
    let plane = with_details().await;
    let xr = bound(&plane, "one").await;
    let own = plane.until("v1/Secret", &format!("kube-system/{}", meta::uid(&xr)), |_| true).await;
    assert_eq!(own["type"], "connection.crossplane.io/v1alpha1");
    let mine = plane.until("v1/Secret", "default/for-me", |s| s["data"].get("password").is_some()).await;
    assert_eq!(
        mine["data"],
        json!({"password": "c2VzYW1l"}),
        "only the keys that the definition lets through"
    );
    let claim = plane.get(CLAIM, "default/one").await.unwrap();
    assert_eq!(meta::controller_of(&mine).unwrap().uid, meta::uid(&claim));
    assert!(claim["status"]["connectionDetails"]["lastPublishedTime"].is_string());
    // That it waited for what is unready was said by the same manager that now says that it is ready: one write does.
    let replaces =
        |line: &&String| line.starts_with("PUT /apis/example.org/v1/xthings/") && line.contains("/status");
    assert_eq!(plane.log().iter().find(replaces), None);
    let before = plane.until_idle().await;
    let after = plane.after(std::time::Duration::from_secs(2)).await;
    assert_eq!(after, before, "{:#?}", plane.log());
    plane.delete(CLAIM, "default/one").await;
    plane.until_gone("v1/Secret", "default/for-me").await;
}

#[tokio::test]
async fn custom_conditions_and_events_reach_the_claim() {
    let plane = Plane::new().await;
    plane
        .function("talker", |mut request| {
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            response.conditions.push(transom_function::Condition {
                r#type: "DatabaseUp".to_owned(),
                status: transom_function::Status::ConditionTrue as i32,
                reason: "Seen".to_owned(),
                message: None,
                target: Some(transom_function::Target::CompositeAndClaim as i32),
            });
            response.conditions.push(transom_function::Condition {
                r#type: "Ready".to_owned(),
                status: transom_function::Status::ConditionFalse as i32,
                reason: "Nonsense".to_owned(),
                message: None,
                target: None,
            });
            Ok(response)
        })
        .await;
    plane.apply(&definition("LegacyCluster", true)).await;
    plane.apply(&composition("things", &["talker"])).await;
    plane.until_true(XRD, "xthings.example.org", "Offered").await;
    plane.apply(&claim("one", "{size: small}")).await;
    let xr = bound(&plane, "one").await;
    assert_eq!(xr["status"]["claimConditionTypes"], json!(["DatabaseUp"]));
    assert_eq!(reason_of(&xr, "Ready"), "Available", "functions cannot set what is the system's");
    let claim = plane.until_true(CLAIM, "default/one", "DatabaseUp").await;
    assert_eq!(reason_of(&claim, "DatabaseUp"), "Seen");
}

#[tokio::test]
async fn a_claim_reports_why_its_secret_is_not_published() {
    let plane = with_things("LegacyCluster", true).await;
    plane.apply(&claim("one", "{size: small, writeConnectionSecretToRef: {name: wanted}}")).await;
    bound(&plane, "one").await;
    plane.apply(&claim("two", "{size: small}")).await;
    bound(&plane, "two").await;
    plane.until_idle().await;
    let why = |events: Vec<String>| -> Vec<String> {
        events.into_iter().filter(|e| e.starts_with("Warning PropagateConnectionSecret")).collect()
    };
    let reported = why(plane.events_of("one").await);
    assert_eq!(reported.len(), 1, "{reported:#?}");
    let remedy = "set spec.writeConnectionSecretsToNamespace in Composition \"things\"";
    assert!(reported[0].contains("\"wanted\"") && reported[0].ends_with(remedy), "{reported:#?}");
    assert_eq!(why(plane.events_of("two").await), Vec::<String>::new(), "it asks for none");
}
