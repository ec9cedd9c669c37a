//! Edge cases 58 to 66: claims and their composite resources.

use crate::scenarios::user::*;
use serde_json::{Value, json};
use transom_function::Status;
use transom_object::meta;

const CLAIM: &str = "example.org/v1/Claim";
const XR: &str = "example.org/v1/XClaim";
const COUNTED: &str = "claim/xclaims.example.org";

fn offering(more: &str) -> String {
    definition("XClaim", "LegacyCluster", &format!("claimNames: {{kind: Claim, plural: claims}}\n  {more}"))
}

/// The same, with a keyword in the schema of `spec`.
fn offering_with(more: &str, keyword: &str) -> String {
    let (offering, start) = (offering(more), "          spec: {type: object,");
    assert!(offering.contains(start), "{offering}");
    offering.replace(start, &format!("{start} {keyword},"))
}

/// A plane whose claims compose a ConfigMap each.
async fn with_claims(more: &str) -> User {
    let user = User::new().await;
    user.apply(&offering(more)).await;
    user.apply(&composition("a", "XClaim", &json!({}), &[one_map("XClaim", "a")])).await;
    user
}

async fn bound(user: &User, name: &str) -> String {
    let claim = user.until_ready(CLAIM, name).await;
    claim["spec"]["resourceRef"]["name"].as_str().unwrap().to_owned()
}

fn annotations(value: &Value) -> Value {
    json!({"metadata": {"annotations": value}})
}

fn finalizers(value: &Value) -> Value {
    json!({"metadata": {"finalizers": value}})
}

#[tokio::test(flavor = "multi_thread")]
async fn case_58_a_composite_resource_of_another_claim_is_left_alone() {
    let user = with_claims("").await;
    let reference = "resourceRef: {apiVersion: example.org/v1, kind: XClaim, name: mine}";
    user.apply(&object("Claim", "default/one", &format!("coolField: one, {reference}"))).await;
    assert_eq!(bound(&user, "default/one").await, "mine");
    user.until_idle().await;
    let failures = async || {
        let retries = user.counted("workqueue_retries_total", COUNTED).await;
        (retries, user.counted("controller_runtime_reconcile_errors_total", COUNTED).await)
    };
    let before = failures().await;
    user.apply(&object("Claim", "default/two", &format!("coolField: two, {reference}"))).await;
    let refused = user.until(CLAIM, "default/two", |o| status_of(o, "Synced") == "False").await;
    let words = "refusing to operate on composite resource \"mine\" that is not bound to this claim: bound to claim \"one\"";
    assert_eq!(reason_of(&refused, "Synced"), "ReconcileError");
    assert_eq!(message_of(&refused, "Synced"), words);
    user.until_event("two", &format!("Warning BindCompositeResource {words}")).await;
    user.until_idle().await;
    // A retry is counted as soon as it is scheduled.
    assert_eq!(failures().await, before, "only a human can help");
    let xr = user.get(XR, "mine").await.unwrap();
    assert_eq!((&xr["spec"]["claimRef"]["name"], &xr["spec"]["coolField"]), (&json!("one"), &json!("one")));
    user.patch(CLAIM, "default/two", json!({"spec": {"resourceRef": null}})).await;
    assert!(bound(&user, "default/two").await.starts_with("two-"), "a human helped");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_59_a_claim_goes_although_its_composite_resource_is_gone_already() {
    let user = with_claims("").await;
    user.apply(&object("Claim", "default/one", "")).await;
    let xr = bound(&user, "default/one").await;
    user.patch(
        CLAIM,
        "default/one",
        finalizers(&json!(["finalizer.apiextensions.crossplane.io", "example.org/hold"])),
    )
    .await;
    let pause = |value: Value| annotations(&json!({"crossplane.io/paused": value}));
    user.patch(CLAIM, "default/one", pause("true".into())).await;
    user.until(CLAIM, "default/one", |o| reason_of(o, "Synced") == "ReconcilePaused").await;
    user.delete(XR, &xr, None).await;
    user.until_gone(XR, &xr).await;
    user.delete(CLAIM, "default/one", None).await;
    user.patch(CLAIM, "default/one", pause(Value::Null)).await;
    let held = user.until(CLAIM, "default/one", |o| meta::finalizers(o) == ["example.org/hold"]).await;
    assert!(meta::is_deleting(&held));
    user.until_event("one", "Normal DeleteCompositeResource Successfully deleted composite resource").await;
    let held = user.until(CLAIM, "default/one", |o| reason_of(o, "Ready") == "Deleting").await;
    assert_eq!((status_of(&held, "Ready"), status_of(&held, "Synced")), ("False", "True"));
    user.patch(CLAIM, "default/one", annotations(&json!({"look": "again"}))).await;
    user.until_idle().await;
    assert_eq!(
        user.list(XR).await,
        Vec::<Value>::new(),
        "a claim that is deleted makes no composite resource"
    );
    user.patch(CLAIM, "default/one", finalizers(&Value::Null)).await;
    user.until_gone(CLAIM, "default/one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_60_a_foreground_claim_waits_for_its_composite_resource_and_looks_again() {
    let user = with_claims("").await;
    user.apply(&object("Claim", "default/one", "compositeDeletePolicy: Foreground")).await;
    let xr = bound(&user, "default/one").await;
    let map = format!("default/{}", meta::name(&user.composed(MAP, &xr).await[0]));
    user.patch(MAP, &map, finalizers(&json!(["example.org/hold"]))).await;
    user.until_idle().await;
    let before = user.counted("workqueue_retries_total", COUNTED).await;
    user.delete(CLAIM, "default/one", None).await;
    let waiting = user.until(XR, &xr, meta::is_deleting).await;
    assert!(meta::finalizers(&waiting).contains(&"foregroundDeletion"), "{waiting:#}");
    let claim = user.until(CLAIM, "default/one", |o| reason_of(o, "Ready") == "Deleting").await;
    assert!(meta::finalizers(&claim).contains(&"finalizer.apiextensions.crossplane.io"));
    // Once after the deletion, and again while it waits.
    while user.counted("workqueue_retries_total", COUNTED).await < before + 3 {
        assert!(user.get(CLAIM, "default/one").await.is_some() && user.get(XR, &xr).await.is_some());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    user.patch(MAP, &map, finalizers(&Value::Null)).await;
    user.until_gone(CLAIM, "default/one").await;
    assert!(user.get(XR, &xr).await.is_none() && user.get(MAP, &map).await.is_none(), "it waited for them");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_60_a_background_claim_does_not_wait() {
    let user = with_claims("").await;
    user.apply(&object("Claim", "default/one", "")).await;
    let xr = bound(&user, "default/one").await;
    let both = ["composite.apiextensions.crossplane.io", "example.org/hold"];
    user.patch(XR, &xr, finalizers(&json!(both))).await;
    user.delete(CLAIM, "default/one", None).await;
    user.until_gone(CLAIM, "default/one").await;
    assert!(user.get(XR, &xr).await.is_some_and(|o| meta::is_deleting(&o)));
    user.patch(XR, &xr, finalizers(&Value::Null)).await;
    user.until_gone(XR, &xr).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_61_a_claim_that_is_no_longer_paused_goes_on() {
    let user = with_claims("").await;
    let paused = object("Claim", "default/one", "")
        .replace("namespace: default", "namespace: default, annotations: {crossplane.io/paused: 'true'}");
    user.apply(&paused).await;
    let claim = user.until(CLAIM, "default/one", |o| status_of(o, "Synced") == "False").await;
    assert_eq!(reason_of(&claim, "Synced"), "ReconcilePaused");
    let words = "Reconciliation (including deletion) is paused via the pause annotation";
    assert_eq!(message_of(&claim, "Synced"), words);
    user.until_event("one", &format!("Normal ReconciliationPaused {words}")).await;
    user.until_idle().await;
    assert_eq!(user.list(XR).await, Vec::<Value>::new());
    assert!(claim["spec"].get("resourceRef").is_none() && meta::finalizers(&claim).is_empty());
    user.patch(CLAIM, "default/one", annotations(&json!({"crossplane.io/paused": "false"}))).await;
    let claim = user.until_ready(CLAIM, "default/one").await;
    assert_eq!((reason_of(&claim, "Synced"), message_of(&claim, "Synced")), ("ReconcileSuccess", ""));
}

/// Lets the kinds of claims and composite resources hold anything, which their definition takes back when it is looked
/// at next.
async fn open_schemas(user: &User) {
    for name in ["claims.example.org", "xclaims.example.org"] {
        let mut crd = user.get(CRD, name).await.unwrap();
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema;
        user.cluster.update(&crd, "kubectl").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_62_what_is_not_an_object_is_an_error() {
    let mut user = User::new().await;
    // Neither users nor controllers can change a composite resource with numbers, so it is not repaired either.
    let rule = "x-kubernetes-validations: [{rule: \"!has(oldSelf.numbers)\"}]";
    user.apply(&offering_with("", rule)).await;
    user.apply(&composition("a", "XClaim", &json!({}), &[one_map("XClaim", "a")])).await;
    for name in ["spec", "status"] {
        user.apply(&object("Claim", &format!("default/{name}"), "")).await;
    }
    let xr = bound(&user, "default/status").await;
    bound(&user, "default/spec").await;
    user.until_idle().await;
    user.restart(&["--api-server-only"]).await;
    open_schemas(&user).await;
    user.patch(CLAIM, "default/spec", json!({"spec": 42})).await;
    user.patch(XR, &xr, json!({"spec": {"numbers": ["frozen"]}})).await;
    let mut odd = user.get(XR, &xr).await.unwrap();
    odd["status"] = json!(1);
    user.cluster.update_status(&odd, "kubectl").await.unwrap();
    user.restart(&[]).await;
    let context = "Warning BindCompositeResource cannot bind and sync claim with composite resource";
    user.until_event("spec", &format!("{context}: claim spec was not an object")).await;
    user.until_event("status", &format!("{context}: composite resource status was not an object")).await;
    let words =
        "cannot bind and sync claim with composite resource: composite resource status was not an object";
    let failed = user.until(CLAIM, "default/status", |o| message_of(o, "Synced") == words).await;
    assert_eq!(reason_of(&failed, "Synced"), "ReconcileError");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_63_what_is_the_machinery_s_is_not_the_claim_s_to_say() {
    let user = User::new().await;
    user.apply(&offering_with("", "x-kubernetes-preserve-unknown-fields: true")).await;
    user.apply(&composition("a", "XClaim", &json!({}), &[answer(&json!({}))])).await;
    let spec = "anything: goes, compositeDeletePolicy: Foreground, resourceRefs: [{apiVersion: v1, kind: Secret, name: \
                smuggled, namespace: default}], claimRef: {apiVersion: v1, kind: Other, name: other, namespace: other}";
    user.apply(&object("Claim", "default/one", spec)).await;
    let claim = user.until_ready(CLAIM, "default/one").await;
    assert_eq!(claim["spec"]["resourceRefs"][0]["name"], "smuggled", "the claim holds it");
    let xr = user.get(XR, &bound(&user, "default/one").await).await.unwrap();
    let own = json!({"apiVersion": "example.org/v1", "kind": "Claim", "name": "one", "namespace": "default"});
    assert_eq!((&xr["spec"]["anything"], &xr["spec"]["claimRef"]), (&json!("goes"), &own));
    assert_eq!(xr["spec"]["resourceRefs"], json!([]), "what it composes, which is nothing");
    for field in ["resourceRef", "compositeDeletePolicy"] {
        assert!(xr["spec"].get(field).is_none(), "{field}: {xr:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_64_an_enforced_composition_comes_from_the_composite_resource() {
    let user = with_claims("enforcedCompositionRef: {name: b}").await;
    user.apply(&composition("b", "XClaim", &json!({}), &[one_map("XClaim", "b")])).await;
    user.apply(&object("Claim", "default/one", "compositionRef: {name: a}")).await;
    let claim = user.until(CLAIM, "default/one", |o| o["status"]["coolerField"] == "b").await;
    let xr = user.get(XR, claim["spec"]["resourceRef"]["name"].as_str().unwrap()).await.unwrap();
    assert_eq!(xr["spec"]["compositionRef"]["name"], "b");
    let entries = xr["metadata"]["managedFields"].as_array().unwrap();
    let ours = entries.iter().find(|e| e["manager"] == "apiextensions.crossplane.io/claim").unwrap();
    let fields = &ours["fieldsV1"]["f:spec"];
    assert!(fields.get("f:claimRef").is_some() && fields.get("f:compositionRef").is_none(), "{ours:#}");
    user.until(CLAIM, "default/one", |o| o["spec"]["compositionRef"]["name"] == "b").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_64_a_claim_keeps_the_composition_it_chose() {
    let user = with_claims("").await;
    user.apply(&composition("b", "XClaim", &json!({}), &[one_map("XClaim", "b")])).await;
    user.apply(&object("Claim", "default/one", "compositionRef: {name: a}")).await;
    let xr = bound(&user, "default/one").await;
    user.patch(XR, &xr, json!({"spec": {"compositionRef": {"name": "b"}}})).await;
    user.until(XR, &xr, |o| o["spec"]["compositionRef"]["name"] == "a").await;
    user.until_idle().await;
    let claim = user.until(CLAIM, "default/one", |o| o["status"]["coolerField"] == "a").await;
    assert_eq!(claim["spec"]["compositionRef"]["name"], "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_65_a_claim_has_only_the_conditions_that_are_meant_for_it() {
    let user = User::new().await;
    user.function("talker", |_, response| {
        response.condition("Shown", Status::ConditionTrue, "Seen").and_claim().with_message("look");
        response.condition("Hidden", Status::ConditionTrue, "Unseen");
        Ok(())
    })
    .await;
    user.apply(&offering("")).await;
    user.apply(&composition("talks", "XClaim", &json!({}), &[("talker", Value::Null)])).await;
    user.apply(&object("Claim", "default/one", "")).await;
    let xr = user.get(XR, &bound(&user, "default/one").await).await.unwrap();
    assert_eq!((reason_of(&xr, "Shown"), reason_of(&xr, "Hidden")), ("Seen", "Unseen"));
    assert_eq!(xr["status"]["claimConditionTypes"], json!(["Shown"]));
    user.until_idle().await;
    let claim = user.get(CLAIM, "default/one").await.unwrap();
    assert_eq!((status_of(&claim, "Shown"), message_of(&claim, "Shown")), ("True", "look"));
    assert_eq!(status_of(&claim, "Hidden"), "", "{claim:#}");
}

/// A plane whose composite resources publish a password, in secrets of kube-system if they have any.
async fn with_details(secrets: bool) -> User {
    let user = User::new().await;
    user.function("connected", |_, response| {
        response.set_connection_detail("password", "sesame");
        Ok(())
    })
    .await;
    user.apply(&offering("")).await;
    let mut connected =
        documents(&composition("a", "XClaim", &json!({}), &[("connected", Value::Null)])).remove(0);
    if secrets {
        connected["spec"]["writeConnectionSecretsToNamespace"] = "kube-system".into();
    }
    user.apply(&connected.to_string()).await;
    user
}

#[tokio::test(flavor = "multi_thread")]
async fn case_66_a_claim_gets_the_secret_that_its_composite_resource_controls() {
    let user = with_details(true).await;
    user.apply(&object("Claim", "default/one", "writeConnectionSecretToRef: {name: for-me}")).await;
    let xr = bound(&user, "default/one").await;
    let mine = user.until(SECRET, "default/for-me", |s| s["data"]["password"] == "c2VzYW1l").await;
    let claim = user.until(CLAIM, "default/one", |o| o["status"]["connectionDetails"].is_object()).await;
    assert_eq!(meta::controller_of(&mine).unwrap().uid, meta::uid(&claim));
    // Looked at again, nothing is written.
    user.patch(CLAIM, "default/one", annotations(&json!({"look": "again"}))).await;
    let seen = user.until(XR, &xr, |o| meta::annotation(o, "look") == Some("again")).await;
    user.until_idle().await;
    assert_eq!(user.get(SECRET, "default/for-me").await.unwrap(), mine);
    let published = |o: &Value| o["status"]["connectionDetails"]["lastPublishedTime"].clone();
    assert_eq!(published(&user.get(CLAIM, "default/one").await.unwrap()), published(&claim));
    // Another client puts a secret of its own in its place while the composite resource is paused.
    user.patch(XR, &xr, annotations(&json!({"crossplane.io/paused": "true"}))).await;
    user.until(XR, &xr, |o| reason_of(o, "Synced") == "ReconcilePaused").await;
    let source = format!("kube-system/{}", meta::uid(&seen));
    user.delete(SECRET, &source, None).await;
    let name = meta::uid(&seen);
    user.apply(&format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: kube-system}}\nstringData: {{password: theirs}}\n")).await;
    let words = "cannot propagate connection details from composite resource: cannot establish control of existing connection secret";
    let failed = user.until(CLAIM, "default/one", |o| message_of(o, "Synced") == words).await;
    assert_eq!(reason_of(&failed, "Synced"), "ReconcileError");
    user.until_event("one", &format!("Warning PropagateConnectionSecret {words}")).await;
    assert_eq!(user.get(SECRET, "default/for-me").await.unwrap()["data"], mine["data"], "nothing leaks");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_66_without_a_reference_on_either_side_there_is_no_secret() {
    for (secrets, spec) in [(true, ""), (false, "writeConnectionSecretToRef: {name: for-me}")] {
        let user = with_details(secrets).await;
        user.apply(&object("Claim", "default/one", spec)).await;
        let xr = user.get(XR, &bound(&user, "default/one").await).await.unwrap();
        let own = format!("kube-system/{}", meta::uid(&xr));
        user.until_idle().await;
        assert_eq!(user.get(SECRET, &own).await.is_some(), secrets);
        let all = user.list(SECRET).await;
        let copies: Vec<_> = all.iter().filter(|s| meta::namespace(s) == "default").collect();
        assert!(copies.is_empty(), "{copies:?}");
        let claim = user.until_ready(CLAIM, "default/one").await;
        assert!(claim["status"].get("connectionDetails").is_none(), "{claim:#}");
    }
}
