//! Edge cases 72 to 78: the CRDs that come of definitions.

use super::definitions::{CLAIMED, NAME, with_schema};
use crate::scenarios::user::*;
use serde_json::{Value, json};
use transom_object::meta;

fn schema_of(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

async fn derived(user: &User, name: &str) -> Value {
    user.until_true(XRD, name, "Established").await;
    user.get(CRD, name).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn case_72_a_version_needs_a_schema_which_may_be_empty() {
    let user = User::new().await;
    let none = with_schema("Thing", &Value::Null);
    let why = user.refusal(&none.replace(",\"schema\":null", "").replace("\"schema\":null,", "")).await;
    assert!(why.contains("every version needs a schema.openAPIV3Schema"), "{why}");
    user.apply(&with_schema("Empty", &json!({"openAPIV3Schema": {}}))).await;
    user.until_true(XRD, "emptys.example.org", "Established").await;
    user.apply(&composition("e", "Empty", &json!({}), &[answer(&json!({}))])).await;
    user.apply(&object("Empty", "one", "")).await;
    user.until_ready("example.org/v1/Empty", "one").await;
    assert!(user.get(CRD, NAME).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn case_73_names_are_no_longer_than_a_label_may_be() {
    let user = User::new().await;
    for (kind, asked, expected) in [("Short", 20, 20), ("Long", 100, 63), ("Silent", 0, 63)] {
        let mut schema = json!({"openAPIV3Schema": {"type": "object"}});
        if asked > 0 {
            schema["openAPIV3Schema"]["properties"] = json!({"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": asked}}}});
        }
        user.apply(&with_schema(kind, &schema)).await;
        let crd = derived(&user, &format!("{}.example.org", plural(kind))).await;
        let name = json!({"type": "string", "maxLength": expected});
        assert_eq!(schema_of(&crd)["properties"]["metadata"]["properties"]["name"], name, "{kind}");
        user.apply(&object(kind, &"x".repeat(expected), "")).await;
        let why = user.refusal(&object(kind, &"x".repeat(expected + 1), "")).await;
        assert!(why.contains("metadata.name: Too long"), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_74_75_unknown_fields_and_rules_are_kept() {
    let user = User::new().await;
    let rule = json!([{"rule": "self.metadata.name != 'forbidden'", "message": "not that one"}]);
    let schema = json!({"openAPIV3Schema": {
        "type": "object", "x-kubernetes-validations": rule,
        "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    }});
    user.apply(&with_schema("Thing", &schema)).await;
    let crd = derived(&user, NAME).await;
    let schema = schema_of(&crd);
    assert_eq!(schema["x-kubernetes-validations"], rule);
    assert_eq!(schema["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"], true);
    assert!(schema["properties"]["status"].get("x-kubernetes-preserve-unknown-fields").is_none());
    user.apply(&object("Thing", "allowed", "anything: {goes: here}")).await;
    let thing = user.get(THING, "allowed").await.unwrap();
    assert_eq!(thing["spec"]["anything"], json!({"goes": "here"}));
    let why = user.refusal(&object("Thing", "forbidden", "")).await;
    assert!(why.contains("not that one"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_76_claims_have_names_of_their_own() {
    let user = User::new().await;
    let own = "kind: Thing, plural: things, singular: thing, listKind: ThingList";
    let xrd = definition("Thing", "LegacyCluster", "claimNames: {CLAIMS}")
        .replace("kind: Thing, plural: things", own)
        .replace("Thing", "X@")
        .replace("things", "x@s")
        .replace("singular: thing", "singular: x@");
    for (i, (claims, taken)) in [
        ("kind: X@, plural: c@s", "X@"),
        ("kind: C@, plural: x@s", "x@s"),
        ("kind: C@, plural: c@s, singular: x@", "x@"),
        ("kind: C@, plural: c@s, listKind: X@List", "X@List"),
    ]
    .into_iter()
    .enumerate()
    {
        let letter = ["a", "b", "c", "d"][i];
        let why = user.refusal(&xrd.replace("CLAIMS", claims).replace('@', letter)).await;
        assert!(why.contains("claimNames must differ from names"), "{taken}: {why}");
        assert!(user.get(CRD, &format!("c{letter}s.example.org")).await.is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_77_policies_have_the_defaults_that_the_definition_sets() {
    let user = User::new().await;
    let set = format!(
        "{CLAIMED}\n  defaultCompositeDeletePolicy: Foreground\n  defaultCompositionUpdatePolicy: Manual"
    );
    user.apply(&definition("Thing", "LegacyCluster", &set)).await;
    let silent = "claimNames: {kind: Quiet, plural: quiets}";
    user.apply(&definition("Silent", "LegacyCluster", silent)).await;
    for (composite, claim, delete, update) in
        [("things", "claims", "Foreground", "Manual"), ("silents", "quiets", "Background", "Automatic")]
    {
        let xrd = user.until_true(XRD, &format!("{composite}.example.org"), "Offered").await;
        assert_eq!(
            xrd["spec"]["defaultCompositeDeletePolicy"], delete,
            "the server sets what the user does not"
        );
        let claims = user.get(CRD, &format!("{claim}.example.org")).await.unwrap();
        let fields = &schema_of(&claims)["properties"]["spec"]["properties"];
        assert_eq!(fields["compositeDeletePolicy"]["default"], delete);
        assert_eq!(
            fields["compositionUpdatePolicy"].get("default"),
            None,
            "that is for the composite resource to say"
        );
        let crd = derived(&user, &format!("{composite}.example.org")).await;
        let fields = &schema_of(&crd)["properties"]["spec"]["properties"];
        assert_eq!(fields["compositionUpdatePolicy"]["default"], update);
        assert!(fields.get("compositeDeletePolicy").is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_78_crds_have_the_labels_of_both_and_the_annotations_of_the_specification() {
    let user = User::new().await;
    let more = format!("{CLAIMED}\n  metadata: {{labels: {{b: crd}}, annotations: {{note: '1'}}}}");
    let own = format!("{{name: {NAME}, labels: {{a: xrd, b: xrd}}, annotations: {{own: x}}}}");
    let xrd = definition("Thing", "LegacyCluster", &more).replace(&format!("{{name: {NAME}}}"), &own);
    user.apply(&xrd).await;
    user.until_true(XRD, NAME, "Offered").await;
    for name in [NAME, "claims.example.org"] {
        let crd = user.until(CRD, name, |_| true).await;
        assert_eq!(crd["metadata"]["labels"], json!({"a": "xrd", "b": "crd"}), "{name}");
        assert_eq!(crd["metadata"]["annotations"], json!({"note": "1"}), "{name}");
        user.patch(CRD, name, json!({"metadata": {"labels": {"c": "mine"}, "annotations": {"more": "2"}}}))
            .await;
        let crd = user.until(CRD, name, |o| meta::label(o, "c").is_none()).await;
        assert_eq!(
            crd["metadata"]["annotations"],
            json!({"note": "1"}),
            "the definition is the only authority"
        );
    }
}
