//! XRDs.

use crate::scenarios::user::*;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn xrd_validation() {
    let user = User::new().await;
    let good = definition("Thing", "Cluster", "");
    user.apply(&good).await;
    user.until_true(XRD, "things.example.org", "Established").await;
    let more = good.replace("coolField: {type: string}", "coolField: {type: string}, more: {type: string}");
    user.apply(&more).await;
    for (wrong, words) in [
        (good.replace("group: example.org", "group: other.org"), "immutable"),
        (good.replace("kind: Thing", "kind: Other"), "immutable"),
        (good.replace("scope: Cluster", "scope: Namespaced"), "immutable"),
        (good.replace("scope: Cluster", "scope: Everywhere"), "Unsupported value"),
    ] {
        let why = user.refused_change(&wrong).await;
        assert!(why.contains(words), "{why}");
    }
    let claims = "claimNames: {kind: Claim, plural: claims}";
    let why = user.refusal(&definition("Claimed", "Cluster", claims)).await;
    assert!(why.contains("can offer claims"), "{why}");
    let why =
        user.refusal(&definition("Upper", "Cluster", "").replace("plural: uppers", "plural: UPPERS")).await;
    assert!(why.contains("lowercase"), "{why}");
}

/// What the API server would not serve is not stored, neither at first nor as a change; what is stored can be changed otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_cannot_be_served_is_refused_when_it_is_written() {
    let user = User::new().await;
    let good = definition("Thing", "LegacyCluster", "claimNames: {kind: Claim, plural: claims}");
    let wrong_type = good.replace("coolField: {type: string}", "coolField: {type: strng}");
    let wrong_rule = ruled(&good, "self.");
    let at = "spec.versions[0].schema.openAPIV3Schema";
    for (wrong, words) in
        [(&wrong_type, &[at, "coolField", "\"strng\""][..]), (&wrong_rule, &[at, "x-kubernetes-validations"])]
    {
        let why = user.refusal(wrong).await;
        assert!(why.contains("CompositeResourceDefinition \"things.example.org\" is invalid: "), "{why}");
        assert!(words.iter().all(|word| why.contains(word)), "{why}");
    }
    assert!(user.get(XRD, "things.example.org").await.is_none());
    user.apply(&good).await;
    user.until_true(XRD, "things.example.org", "Established").await;
    let why = user.refused_change(&wrong_type).await;
    assert!(why.contains("coolField"), "{why}");
    let labels = json!({"metadata": {"labels": {"team": "a"}}});
    user.patch(XRD, "things.example.org", labels).await;
    let more = good.replace("coolField: {type: string}", "coolField: {type: string}, more: {type: string}");
    user.apply(&more).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn xrd_referenceable_version_change() {
    let user = User::new().await;
    let first = definition("Thing", "Cluster", "");
    user.apply(&first).await;
    user.apply(&composition("v1", "Thing", &json!({}), &[answer(&json!({}))])).await;
    user.apply(&object("Thing", "old", "")).await;
    let old = user.until_ready("example.org/v1/Thing", "old").await;
    assert_eq!(old["spec"]["crossplane"]["compositionRef"]["name"], "v1");
    let version = first.split_once("  - name: v1").unwrap().1;
    let both = first.replace("referenceable: true", "referenceable: false") + "  - name: v2" + version;
    user.apply(&both).await;
    user.until(XRD, "things.example.org", |o| {
        o["status"]["controllers"]["compositeResourceType"]["apiVersion"] == "example.org/v2"
    })
    .await;
    user.apply(
        &composition("v2", "Thing", &json!({}), &[answer(&json!({}))])
            .replace("example.org/v1", "example.org/v2"),
    )
    .await;
    user.apply(&object("Thing", "new", "").replace("example.org/v1", "example.org/v2")).await;
    let new = user.until_ready("example.org/v2/Thing", "new").await;
    assert_eq!(new["spec"]["crossplane"]["compositionRef"]["name"], "v2");
}

#[tokio::test(flavor = "multi_thread")]
async fn xrd_subresources() {
    let user = User::new().await;
    let scale = "    subresources: {scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}}\n";
    user.apply(&(definition("Thing", "Cluster", "") + scale)).await;
    user.until_true(XRD, "things.example.org", "Established").await;
    let crd = user.get(CRD, "things.example.org").await.unwrap();
    let expected = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"});
    assert_eq!(crd["spec"]["versions"][0]["subresources"]["scale"], expected);
}
