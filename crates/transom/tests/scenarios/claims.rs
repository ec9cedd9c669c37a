//! Claims and their composite resources.

use crate::scenarios::user::*;
use serde_json::{Value, json};
use transom_object::meta;

const CLAIM: &str = "example.org/v1/Claim";
const XR: &str = "example.org/v1/XClaim";

async fn with_claims() -> User {
    let user = User::new().await;
    user.apply(&definition("XClaim", "LegacyCluster", "claimNames: {kind: Claim, plural: claims}")).await;
    user
}

async fn bound(user: &User) -> Value {
    let claim = user.until_ready(CLAIM, "default/one").await;
    user.get(XR, claim["spec"]["resourceRef"]["name"].as_str().unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn composition_revision_selection() {
    let user = with_claims().await;
    user.apply(&composition("a", "XClaim", &json!({}), &[one_map("XClaim", "first")])).await;
    user.apply(&object("Claim", "default/one", "")).await;
    let claim = user.until_ready(CLAIM, "default/one").await;
    assert_eq!(claim["status"]["coolerField"], "first");
    user.apply(&composition("a", "XClaim", &json!({}), &[one_map("XClaim", "second")])).await;
    user.until(CLAIM, "default/one", |o| o["status"]["coolerField"] == "second").await;
    let revisions = user.list("apiextensions.crossplane.io/v1/CompositionRevision").await;
    let mut numbers: Vec<i64> = revisions.iter().filter_map(|r| r["spec"]["revision"].as_i64()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn composition_selection() {
    let user = with_claims().await;
    let both = json!({"environment": "testing", "region": "AU"});
    user.apply(&composition("testing-au", "XClaim", &both, &[one_map("XClaim", "au")])).await;
    let other = json!({"environment": "testing", "region": "US"});
    user.apply(&composition("testing-us", "XClaim", &other, &[one_map("XClaim", "us")])).await;
    let selecting = |labels: &str| {
        object("Claim", "default/one", &format!("compositionSelector: {{matchLabels: {{{labels}}}}}"))
    };
    user.apply(&selecting("environment: testing, region: AU")).await;
    let xr = bound(&user).await;
    assert_eq!(
        xr["spec"]["compositionSelector"]["matchLabels"],
        json!({"environment": "testing", "region": "AU"})
    );
    assert_eq!(xr["spec"]["compositionRef"]["name"], "testing-au");
    user.until(CLAIM, "default/one", |o| o["spec"]["compositionRef"]["name"] == "testing-au").await;
    user.apply(&selecting("region: AU")).await;
    let alone = json!({"region": "AU"});
    user.until(XR, meta::name(&xr), |o| o["spec"]["compositionSelector"]["matchLabels"] == alone).await;
    user.until_idle().await;
    let claim = user.get(CLAIM, "default/one").await.unwrap();
    assert_eq!(claim["spec"]["compositionSelector"]["matchLabels"], alone, "the label does not come back");
    assert_eq!(claim["spec"]["compositionRef"]["name"], "testing-au", "the choice stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_propagate_fields_removal_to_xr() {
    let user = with_claims().await;
    user.apply(&composition("a", "XClaim", &json!({}), &[one_map("XClaim", "x")])).await;
    let claim = |metadata: &str, spec: &str| {
        format!(
            "apiVersion: example.org/v1\nkind: Claim\nmetadata: {{name: one, namespace: default{metadata}}}\nspec: {{{spec}}}\n"
        )
    };
    user.apply(&claim(
        ", labels: {keep: a, drop: b}, annotations: {keep: a, drop: b}",
        "coolField: cool, numbers: [one, two, three], parameters: {keep: a, drop: b}",
    ))
    .await;
    let xr = bound(&user).await;
    assert_eq!(xr["spec"]["numbers"], json!(["one", "two", "three"]));
    user.apply(&claim(
        ", labels: {keep: a}, annotations: {keep: a}",
        "numbers: [one, two], parameters: {keep: a}",
    ))
    .await;
    let name = meta::name(&xr).to_owned();
    let xr = user.until(XR, &name, |o| o["spec"].get("coolField").is_none()).await;
    assert_eq!(xr["spec"]["numbers"], json!(["one", "two"]));
    assert_eq!(xr["spec"]["parameters"], json!({"keep": "a"}));
    for map in ["labels", "annotations"] {
        assert_eq!(xr["metadata"][map]["keep"], "a");
        assert!(xr["metadata"][map].get("drop").is_none(), "{map}: {xr:#}");
    }
    user.until_ready(CLAIM, "default/one").await;
    user.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_propagate_fields_removal_to_xr_after_upgrade() {
    let user = with_claims().await;
    user.apply(&composition("a", "XClaim", &json!({}), &[one_map("XClaim", "x")])).await;
    // As a control plane leaves it that syncs claims by updates: everything belongs to one who never applied.
    user.apply(&object("Claim", "default/one", "coolField: cool, parameters: {keep: a, drop: b}")).await;
    let name = meta::name(&bound(&user).await).to_owned();
    let mut xr = user.get(XR, &name).await.unwrap();
    let all = json!([{
        "manager": "crossplane", "operation": "Update", "apiVersion": "example.org/v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:coolField": {}, "f:parameters": {"f:keep": {}, "f:drop": {}}, "f:claimRef": {}}},
    }]);
    xr["metadata"]["managedFields"] = all;
    user.cluster.update(&xr, "crossplane").await.unwrap();
    // It takes two steps to become the owner of what the claim says, and the only one.
    user.until(XR, &name, |o| {
        let entries = o["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let has = |manager: &str| entries.iter().any(|e| e["manager"] == manager);
        has("apiextensions.crossplane.io/claim") && !has("before-first-apply")
    })
    .await;
    user.apply(&object("Claim", "default/one", "parameters: {keep: a}")).await;
    let xr = user.until(XR, &name, |o| o["spec"].get("coolField").is_none()).await;
    assert_eq!(xr["spec"]["parameters"], json!({"keep": "a"}));
    user.until_ready(CLAIM, "default/one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_bind_to_existing_xr() {
    let user = with_claims().await;
    user.apply(&composition("a", "XClaim", &json!({}), &[one_map("XClaim", "x")])).await;
    user.apply(&object("XClaim", "existing", "coolField: from-xr")).await;
    user.until_ready(XR, "existing").await;
    let reference = "resourceRef: {apiVersion: example.org/v1, kind: XClaim, name: existing}";
    user.apply(&object("Claim", "default/one", &format!("coolField: from-claim, {reference}"))).await;
    user.until_ready(CLAIM, "default/one").await;
    let xr = user.until(XR, "existing", |o| o["spec"]["coolField"] == "from-claim").await;
    assert_eq!(xr["spec"]["claimRef"]["name"], "one");
    user.delete(CLAIM, "default/one", None).await;
    user.until_gone(CLAIM, "default/one").await;
    user.until_gone(XR, "existing").await;
}
