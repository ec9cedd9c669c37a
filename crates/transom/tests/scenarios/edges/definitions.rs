//! Edge cases 67 to 71: definitions, and how they come and go.

use crate::scenarios::user::*;
use serde_json::{Value, json};
use std::time::Instant;
use transom_function::ResourceSelector;
use transom_object::meta;
use transom_testkit::process::WAIT_LIMIT;

pub(super) const NAME: &str = "things.example.org";
pub(super) const CLAIMED: &str = "claimNames: {kind: Claim, plural: claims}";
const STARTED: &str = "engine_controllers_started_total";

/// A CRD that another controller owns.
fn foreign(kind: &str, plural: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: {plural}.example.org\n  \
         ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: x, uid: foreign, controller: true}}]\nspec:\n  group: \
         example.org\n  scope: Cluster\n  names: {{kind: {kind}, plural: {plural}, singular: one-of-{plural}}}\n  versions: [{{name: v1, served: true, \
         storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}]\n"
    )
}

/// A policy that no new CRD satisfies.
const NO_CRDS: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-crds}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apiextensions.k8s.io], apiVersions: ['*'], operations: [CREATE], resources: [customresourcedefinitions]}]
  validations: [{expression: 'false', message: there are enough, reason: Forbidden}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-crds}
spec: {policyName: no-crds, validationActions: [Deny]}
";

/// A definition of things with this schema instead of the usual one.
pub(super) fn with_schema(kind: &str, schema: &Value) -> String {
    let mut xrd = documents(&definition(kind, "Cluster", "")).remove(0);
    xrd["spec"]["versions"][0]["schema"] = schema.clone();
    xrd.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn case_67_a_definition_whose_crd_is_foreign_can_go() {
    let user = User::new().await;
    user.apply(&foreign("Thing", "things")).await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.until_event(
        NAME,
        "Warning EstablishComposite cannot apply rendered composite resource CustomResourceDefinition",
    )
    .await;
    let xrd = user.get(XRD, NAME).await.unwrap();
    assert_eq!(meta::finalizers(&xrd), ["defined.apiextensions.crossplane.io"]);
    assert_eq!(
        (status_of(&xrd, "Established"), reason_of(&xrd, "Established")),
        ("False", "NamesNotAccepted")
    );
    user.delete(XRD, NAME, None).await;
    user.until_gone(XRD, NAME).await;
    let left = user.get(CRD, NAME).await.expect("it is someone else's");
    assert_eq!(left["metadata"]["ownerReferences"][0]["uid"], "foreign");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_67_a_definition_whose_claim_crd_is_foreign_can_go() {
    let user = User::new().await;
    user.apply(&foreign("Claim", "claims")).await;
    user.apply(&definition("Thing", "LegacyCluster", CLAIMED)).await;
    user.until_event(
        NAME,
        "Warning OfferClaim cannot apply rendered composite resource claim CustomResourceDefinition",
    )
    .await;
    let xrd = user.until_true(XRD, NAME, "Established").await;
    assert_eq!(reason_of(&xrd, "Offered"), "NamesNotAccepted", "the one side works without the other");
    user.delete(XRD, NAME, None).await;
    user.until_gone(XRD, NAME).await;
    user.until_gone(CRD, NAME).await;
    assert!(user.get(CRD, "claims.example.org").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn case_67_a_definition_without_a_crd_can_go() {
    let user = User::new().await;
    // The server has no room for another CRD.
    user.apply(NO_CRDS).await;
    let mut other = documents(&foreign("Other", "others")).remove(0);
    other["metadata"]["ownerReferences"] = json!([]);
    let started = Instant::now();
    while user.cluster.try_create(&other, "kubectl").await.is_ok() {
        assert!(started.elapsed() < WAIT_LIMIT, "the policy refuses no CRD");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.until_event(
        NAME,
        "Warning EstablishComposite cannot apply rendered composite resource CustomResourceDefinition",
    )
    .await;
    let xrd = user.get(XRD, NAME).await.unwrap();
    assert_eq!(meta::finalizers(&xrd), ["defined.apiextensions.crossplane.io"]);
    assert!(user.get(CRD, NAME).await.is_none());
    user.delete(XRD, NAME, None).await;
    user.until_gone(XRD, NAME).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_68_a_definition_waits_for_its_instances() {
    let user = User::new().await;
    user.apply(&definition("Thing", "LegacyCluster", CLAIMED)).await;
    user.apply(&composition("a", "Thing", &json!({}), &[one_map("Thing", "a")])).await;
    let hold = |yaml: String| yaml.replace("metadata: {", "metadata: {finalizers: [example.org/hold], ");
    user.apply(&hold(object("Thing", "one", ""))).await;
    user.apply(&hold(object("Claim", "default/claimed", ""))).await;
    user.until_ready(THING, "one").await;
    let claim = user.until_ready("example.org/v1/Claim", "default/claimed").await;
    user.delete(XRD, NAME, None).await;
    user.until_event(NAME, "Normal TerminateComposite waiting for defined composite resources to be deleted")
        .await;
    user.until_event(NAME, "Normal RedactClaim waiting for composite resource claims to be deleted").await;
    user.until_gone(THING, claim["spec"]["resourceRef"]["name"].as_str().unwrap()).await;
    user.until_idle().await;
    let xrd = user.get(XRD, NAME).await.unwrap();
    assert_eq!(
        (status_of(&xrd, "Established"), reason_of(&xrd, "Established")),
        ("False", "TerminatingCompositeResource")
    );
    assert_eq!(reason_of(&xrd, "Offered"), "TerminatingCompositeResourceClaim");
    assert!(
        user.get(CRD, NAME).await.is_some_and(|crd| !meta::is_deleting(&crd)),
        "the kind is still needed"
    );
    let go = json!({"metadata": {"finalizers": null}});
    user.patch("example.org/v1/Claim", "default/claimed", go.clone()).await;
    user.until_gone(CRD, "claims.example.org").await;
    assert!(user.get(XRD, NAME).await.is_some(), "one instance is left");
    user.patch(THING, "one", go).await;
    user.until_gone(XRD, NAME).await;
    user.until_gone(CRD, NAME).await;
    user.until_event(
        NAME,
        &format!("Normal TerminateComposite Deleted composite resource CustomResourceDefinition: {NAME}"),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_69_a_crd_that_is_not_established_is_waited_for() {
    let user = User::new().await;
    user.apply(&foreign("Thing", "others")).await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    let taken = user.until(XRD, NAME, |o| status_of(o, "Established") == "False").await;
    assert_eq!(reason_of(&taken, "Established"), "NamesNotAccepted");
    let why = message_of(&taken, "Established");
    assert!(why.starts_with("spec.names: ") && why.contains("\"Thing\""), "{why}");
    user.until_event(NAME, &format!("Warning EstablishComposite {why}")).await;
    let crd = user.get(CRD, NAME).await.unwrap();
    assert_eq!(reason_of(&crd, "NamesAccepted"), "KindConflict");
    assert_eq!(user.counted(STARTED, "composite/things").await, 0);
    user.delete(CRD, "others.example.org", None).await;
    let xrd = user.until_true(XRD, NAME, "Established").await;
    assert_eq!(reason_of(&xrd, "Established"), "WatchingCompositeResource");
    user.apply(&composition("a", "Thing", &json!({}), &[one_map("Thing", "a")])).await;
    user.apply(&object("Thing", "one", "")).await;
    user.until_ready(THING, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_70_a_controller_is_restarted_only_for_a_changed_specification() {
    let user = User::new().await;
    let first = definition("Thing", "LegacyCluster", CLAIMED);
    user.apply(&first).await;
    user.until_true(XRD, NAME, "Established").await;
    user.until_true(XRD, NAME, "Offered").await;
    let labelled =
        first.replace(&format!("{{name: {NAME}}}"), &format!("{{name: {NAME}, labels: {{a: b}}}}"));
    user.apply(&labelled).await;
    user.until(CRD, NAME, |o| meta::label(o, "a") == Some("b")).await;
    user.until_idle().await;
    let restarted =
        "Normal RestartComposite XRD specification changed; restarting controller to apply updates";
    let events = user.events_of(NAME).await.iter().any(|event| event == restarted);
    assert!(
        !events && user.counted(STARTED, "composite/things").await == 1,
        "neither a start nor a label is a change"
    );
    user.apply(&labelled.replace("coolField: {type: string}", "coolField: {type: string, maxLength: 5}"))
        .await;
    user.until_event(NAME, restarted).await;
    let xrd = user
        .until(XRD, NAME, |o| {
            let conditions = o["status"]["conditions"].as_array().into_iter().flatten();
            conditions.filter(|c| c["type"] == "Established").any(|c| c["observedGeneration"] == 2)
        })
        .await;
    assert_eq!(reason_of(&xrd, "Established"), "WatchingCompositeResource");
    assert_eq!(user.counted(STARTED, "composite/things").await, 2);
    assert_eq!(user.counted(STARTED, "claim/things").await, 1, "their kind did not change");
    // One that is on its way out is not restarted any more.
    user.apply(
        &object("Thing", "one", "").replace("{name: one}", "{name: one, finalizers: [example.org/hold]}"),
    )
    .await;
    user.delete(XRD, NAME, None).await;
    user.until(XRD, NAME, |o| reason_of(o, "Established") == "TerminatingCompositeResource").await;
    user.patch(XRD, NAME, json!({"spec": {"metadata": {"labels": {"c": "d"}}}})).await;
    user.until_idle().await;
    assert_eq!(user.counted(STARTED, "composite/things").await, 2);
    user.patch(THING, "one", json!({"metadata": {"finalizers": null}})).await;
    user.until_gone(XRD, NAME).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_71_a_watch_that_cannot_start_is_reported_and_started_once_it_can() {
    let user = User::new().await;
    user.function("reader", |request, response| {
        response.require("later", ResourceSelector::all("example.org/v1", "Later"));
        let found = request.required("later").map(|list| list.len().to_string());
        response.composite().set("status.coolerField", found.unwrap_or_else(|| "nothing".to_owned()))?;
        Ok(())
    })
    .await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("reads", "Thing", &json!({}), &[("reader", Value::Null)])).await;
    user.apply(&object("Thing", "one", "")).await;
    let words = "cannot compose resources: cannot run Composition pipeline step \"step-0\": fetching resources for later: ";
    let failed = user.until(THING, "one", |o| message_of(o, "Synced").starts_with(words)).await;
    assert_eq!(reason_of(&failed, "Synced"), "ReconcileError");
    user.until_event("one", &format!("Warning ComposeResources {words}")).await;
    user.apply(&definition("Later", "Cluster", "")).await;
    user.until(THING, "one", |o| o["status"]["coolerField"] == "0").await;
    user.until_ready(THING, "one").await;
    user.apply(&object("Later", "x", "")).await;
    user.until(THING, "one", |o| o["status"]["coolerField"] == "1").await;
}
