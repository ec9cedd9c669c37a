//! With managed resources, of which NopResources are examples.

use crate::scenarios::user::*;
use serde_json::json;
use transom_object::meta;

const CLAIM: &str = "example.org/v1/Claim";
const XR: &str = "example.org/v1/XClaim";
const CLAIMED: &str = "claimNames: {kind: Claim, plural: claims}";

#[tokio::test(flavor = "multi_thread")]
async fn legacy_composition() {
    let user = User::new().await;
    user.apply(&definition("XClaim", "LegacyCluster", CLAIMED)).await;
    user.apply(&definition("Nested", "Cluster", "")).await;
    let secret = "    connectionDetails:\n    - {name: username, value: fakeuser}\n  writeConnectionSecretToRef:\n    namespace: default\n    name: {{ .observed.composite.resource.metadata.uid }}-nop\n";
    let details = r#"
{{- with (index (.observed.resources | default dict) "nop") }}{{ with .connectionDetails }}
---
apiVersion: meta.gotemplating.fn.crossplane.io/v1alpha1
kind: CompositeConnectionDetails
data: {{ . | toJson }}
{{- end }}{{ end }}
---
apiVersion: example.org/v1
kind: Nested
metadata:
  annotations: {{ "{" }}{{ setResourceNameAnnotation "nested" }}{{ "}" }}
spec: {}
---
apiVersion: example.org/v1
kind: XClaim
status: {coolerField: "I'M COOL!"}
"#;
    let parent = composition(
        "parent",
        "XClaim",
        &json!({}),
        &[template(&(nop("nop", secret) + details)), auto_ready()],
    )
    .replace("\"mode\"", "\"writeConnectionSecretsToNamespace\":\"default\",\"mode\"");
    user.apply(&parent).await;
    user.apply(&composition("nested", "Nested", &json!({}), &[template(&nop("deep", "")), auto_ready()]))
        .await;
    user.apply(&object(
        "Claim",
        "default/one",
        "coolField: x, writeConnectionSecretToRef: {name: basic-secret}",
    ))
    .await;
    let claim = user.until_ready(CLAIM, "default/one").await;
    assert_eq!(claim["status"]["coolerField"], "I'M COOL!");
    let secret = user.until("v1/Secret", "default/basic-secret", |_| true).await;
    assert_eq!(secret["data"]["username"], "ZmFrZXVzZXI=");
    let xr = claim["spec"]["resourceRef"]["name"].as_str().unwrap().to_owned();
    assert_eq!(user.composed(NOP, &xr).await.len(), 2, "its own, and that of the nested one");
    user.delete(CLAIM, "default/one", None).await;
    user.until_gone(CLAIM, "default/one").await;
    user.until_gone(XR, &xr).await;
    user.until_none(NOP, &xr).await;
    user.until_none("example.org/v1/Nested", &xr).await;
    user.until_gone("v1/Secret", "default/basic-secret").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn composition_minimal() {
    let user = User::new().await;
    user.apply(&definition("XClaim", "LegacyCluster", CLAIMED)).await;
    user.apply(&composition("minimal", "XClaim", &json!({}), &[template(&nop("nop", "")), auto_ready()]))
        .await;
    user.apply(&object("Claim", "default/one", "coolField: x")).await;
    let claim = user.until_ready(CLAIM, "default/one").await;
    let xr = claim["spec"]["resourceRef"]["name"].as_str().unwrap().to_owned();
    user.delete(CLAIM, "default/one", Some("Foreground")).await;
    user.until_gone(CLAIM, "default/one").await;
    user.until_none(NOP, &xr).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn composition_patch_and_transform() {
    let user = User::new().await;
    user.apply(&definition("XClaim", "LegacyCluster", CLAIMED)).await;
    let condition = json!({"time": "0s", "conditionType": "Ready", "conditionStatus": "True", "conditionReason": "Available"});
    let input = json!({
        "apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources",
        "resources": [{
            "name": "nop",
            "base": {
                "apiVersion": "nop.crossplane.io/v1alpha1", "kind": "NopResource",
                "spec": {"forProvider": {"conditionAfter": [condition]}},
            },
            "patches": [
                {
                    "type": "FromCompositeFieldPath", "fromFieldPath": "spec.coolField",
                    "toFieldPath": "metadata.annotations[cool-field]",
                    "transforms": [{"type": "string", "string": {"type": "Convert", "convert": "ToUpper"}}],
                },
                {"type": "ToCompositeFieldPath", "fromFieldPath": "metadata.annotations[cool-field]", "toFieldPath": "status.coolerField"},
            ],
        }],
    });
    user.apply(&composition("pt", "XClaim", &json!({}), &[("function-patch-and-transform", input)])).await;
    user.apply(&object("Claim", "default/one", "coolField: I'm cool!")).await;
    user.until_ready(CLAIM, "default/one").await;
    let claim = user.until(CLAIM, "default/one", |o| o["status"]["coolerField"] == "I'M COOL!").await;
    let xr = claim["spec"]["resourceRef"]["name"].as_str().unwrap();
    assert_eq!(meta::annotation(&user.composed(NOP, xr).await[0], "cool-field"), Some("I'M COOL!"));
}

#[tokio::test(flavor = "multi_thread")]
async fn propagate_fields_removal_to_composed() {
    let user = User::new().await;
    user.apply(&definition("XClaim", "LegacyCluster", CLAIMED)).await;
    let text = r#"{{- $xr := .observed.composite.resource }}"#.to_owned()
        + &nop(
            "nop",
            "    fields: {{ dict \"numbers\" ($xr.spec.numbers | default list) \"parameters\" ($xr.spec.parameters | default dict) | toJson }}\n",
        );
    user.apply(&composition("fields", "XClaim", &json!({}), &[template(&text), auto_ready()])).await;
    user.apply(&object("Claim", "default/one", "numbers: [one, two], parameters: {keep: a, drop: b}")).await;
    let claim = user.until_ready(CLAIM, "default/one").await;
    let xr = claim["spec"]["resourceRef"]["name"].as_str().unwrap().to_owned();
    let name = meta::name(&user.composed(NOP, &xr).await[0]).to_owned();
    let fields = |o: &serde_json::Value| o["spec"]["forProvider"]["fields"].clone();
    assert_eq!(
        fields(&user.get(NOP, &name).await.unwrap()),
        json!({"numbers": ["one", "two"], "parameters": {"keep": "a", "drop": "b"}})
    );
    user.apply(&object("Claim", "default/one", "numbers: [one], parameters: {keep: a}")).await;
    user.until(NOP, &name, |o| fields(o) == json!({"numbers": ["one"], "parameters": {"keep": "a"}})).await;
}
