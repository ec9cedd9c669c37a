//! XRDs: what they derive, and how they change and go.

use crate::life::basics::*;
use crate::life::fixture::*;
use serde_json::json;
use transom_object::meta;

const CRD: &str = "apiextensions.k8s.io/v1/CustomResourceDefinition";

#[tokio::test]
async fn xrd_validation() {
    let plane = Plane::new().await;
    plane.apply(&definition("Cluster", false)).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    let immutable = plane
        .try_apply(&definition("Cluster", false).replace("group: example.org", "group: other.org"))
        .await;
    assert!(immutable.is_err_and(|e| e.is_invalid()));
    let claimed = definition("Cluster", true).replace("xthings", "xothers").replace("XThing", "XOther");
    assert!(plane.try_apply(&claimed).await.is_err_and(|e| e.is_invalid()), "only legacy ones offer claims");
}

#[tokio::test]
async fn xrd_subresources() {
    let plane = Plane::new().await;
    let scaled = definition("Cluster", false)
        + "    subresources: {scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}\n";
    plane.apply(&scaled).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    let crd = plane.get(CRD, "xthings.example.org").await.unwrap();
    assert_eq!(crd["spec"]["versions"][0]["subresources"]["scale"]["specReplicasPath"], ".spec.replicas");
}

#[tokio::test]
async fn xrd_referenceable_version_change() {
    let plane = with_things("Cluster", false).await;
    plane.apply(&xr("old", "small")).await;
    plane.until_true(XR, "old", "Ready").await;
    let both = definition("Cluster", false).replace("referenceable: true", "referenceable: false")
        + "  - name: v2\n    served: true\n    referenceable: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          spec: {type: object, properties: {size: {type: string}}}\n          status: {type: object, properties: {size: {type: string}}}\n";
    plane.apply(&both).await;
    plane
        .until(XRD, "xthings.example.org", |o| {
            o["status"]["controllers"]["compositeResourceType"]["apiVersion"] == "example.org/v2"
        })
        .await;
    plane.apply(&composition("things-v2", &["sizer"]).replace("example.org/v1", "example.org/v2")).await;
    plane.apply(&xr("new", "large")).await;
    let new = plane.until_true("example.org/v2/XThing", "new", "Ready").await;
    assert_eq!(new["spec"]["crossplane"]["compositionRef"]["name"], "things-v2");
    let events = plane.events_of("xthings.example.org").await;
    let restarted =
        "Normal RestartComposite: XRD specification changed; restarting controller to apply updates";
    assert!(events.iter().any(|e| e == restarted), "{events:#?}");
}

#[tokio::test]
async fn a_definition_does_not_take_over_a_foreign_crd() {
    let plane = Plane::new().await;
    plane
        .apply(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: xthings.example.org\n  \
             ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: x, uid: foreign, controller: true}]\nspec:\n  \
             group: example.org\n  scope: Cluster\n  names: {kind: XThing, plural: xthings}\n  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]\n",
        )
        .await;
    plane.apply(&definition("Cluster", false)).await;
    plane.until(XRD, "xthings.example.org", |o| status_of(o, "Established") == "False").await;
    plane.until_idle().await;
    let events = plane.events_of("xthings.example.org").await;
    assert!(
        events.iter().any(|e| e.starts_with("Warning EstablishComposite: cannot apply rendered")),
        "{events:#?}"
    );
    let refused = plane.get(XRD, "xthings.example.org").await.unwrap();
    assert_eq!(
        (status_of(&refused, "Established"), reason_of(&refused, "Established")),
        ("False", "NamesNotAccepted")
    );
    assert!(message_of(&refused, "Established").contains("controlled by ConfigMap \"x\""), "{refused:#}");
    plane.delete(XRD, "xthings.example.org").await;
    plane.until_gone(XRD, "xthings.example.org").await;
}

#[tokio::test]
async fn what_others_change_on_a_derived_crd_is_reverted() {
    let plane = with_things("Cluster", false).await;
    plane.patch(CRD, "xthings.example.org", json!({"metadata": {"labels": {"mine": "x"}}})).await;
    plane.until(CRD, "xthings.example.org", |o| o["metadata"]["labels"].get("mine").is_none()).await;
    assert_eq!(
        meta::finalizers(&plane.get(XRD, "xthings.example.org").await.unwrap()),
        ["defined.apiextensions.crossplane.io"]
    );
}

#[tokio::test]
async fn a_definition_with_instances_goes_from_the_inside_out() {
    let plane = with_things("LegacyCluster", true).await;
    plane.apply("apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: one, namespace: default}\nspec: {size: s}\n").await;
    let claim = plane.until_true("example.org/v1/Thing", "default/one", "Ready").await;
    let xr = plane.get(XR, claim["spec"]["resourceRef"]["name"].as_str().unwrap()).await.unwrap();
    plane.delete(XRD, "xthings.example.org").await;
    plane.until_gone(XRD, "xthings.example.org").await;
    plane.until_gone(CRD, "xthings.example.org").await;
    plane.until_gone(CRD, "things.example.org").await;
    plane.until_gone("v1/ConfigMap", &composed_name(&xr)).await;
    // And it can come back.
    plane.apply(&definition("LegacyCluster", true)).await;
    plane.until_true(XRD, "xthings.example.org", "Offered").await;
    plane.apply(&crate::life::basics::xr("again", "small")).await;
    plane.until_true(XR, "again", "Ready").await;
}

#[tokio::test]
async fn a_claim_goes_although_the_kind_of_its_composite_resource_is_gone() {
    const CLAIM: &str = "example.org/v1/Thing";
    let plane = with_things("LegacyCluster", true).await;
    let claim = |paused: &str| {
        let meta =
            format!("{{name: one, namespace: default, annotations: {{crossplane.io/paused: '{paused}'}}}}");
        format!("apiVersion: example.org/v1\nkind: Thing\nmetadata: {meta}\nspec: {{size: s}}\n")
    };
    plane.apply(&claim("false")).await;
    plane.until_true(CLAIM, "default/one", "Ready").await;
    plane.apply(&claim("true")).await;
    plane.until(CLAIM, "default/one", |o| reason_of(o, "Synced") == "ReconcilePaused").await;
    plane.delete(XRD, "xthings.example.org").await;
    plane.until_gone(CRD, "xthings.example.org").await;
    plane.apply(&claim("false")).await;
    plane.until_gone(XRD, "xthings.example.org").await;
    plane.until_gone(CRD, "things.example.org").await;
}

#[tokio::test]
async fn a_definition_that_cannot_work_says_why_and_recovers() {
    let plane = Plane::new().await;
    sizer(&plane).await;
    let good = definition("LegacyCluster", true);
    let bad = good.replace("size: {type: string}", "size: {type: intger}");
    plane.apply(&bad).await;
    for condition in ["Established", "Offered"] {
        let refused = plane.until(XRD, "xthings.example.org", |o| status_of(o, condition) == "False").await;
        assert_eq!(reason_of(&refused, condition), "InvalidDefinition");
        let message = message_of(&refused, condition);
        assert!(
            message
                .contains("spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].type")
                && message.contains("\"intger\""),
            "{message}"
        );
        assert!(!message.contains(" is invalid: ") && !message.contains("{\""), "{message}");
    }
    assert!(plane.get(CRD, "xthings.example.org").await.is_none());
    plane.apply(&good).await;
    things(&plane, &["sizer"]).await;
    let offered = plane.until_true(XRD, "xthings.example.org", "Offered").await;
    assert_eq!((status_of(&offered, "Established"), message_of(&offered, "Established")), ("True", ""));
    plane.apply(&xr("one", "small")).await;
    plane.until_true(XR, "one", "Ready").await;
    // A change for the worse is reported, and what is served stays.
    plane.apply(&bad).await;
    plane.until(XRD, "xthings.example.org", |o| status_of(o, "Established") == "False").await;
    plane.apply(&xr("one", "large")).await;
    plane.until(XR, "one", |o| o["status"]["size"] == "large").await;
    plane.apply(&good).await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
    plane.until_true(XRD, "xthings.example.org", "Offered").await;
}

#[tokio::test]
async fn a_definition_whose_kind_is_taken_says_so_until_it_is_free() {
    let plane = Plane::new().await;
    plane
        .apply(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: others.example.org}\n\
             spec:\n  group: example.org\n  scope: Cluster\n  names: {kind: XThing, plural: others}\n  \
             versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]\n",
        )
        .await;
    plane.apply(&definition("Cluster", false)).await;
    let refused = plane.until(XRD, "xthings.example.org", |o| status_of(o, "Established") == "False").await;
    assert_eq!(reason_of(&refused, "Established"), "NamesNotAccepted");
    assert!(message_of(&refused, "Established").starts_with("spec.names: "), "{refused:#}");
    plane.delete(CRD, "others.example.org").await;
    plane.until_true(XRD, "xthings.example.org", "Established").await;
}

#[tokio::test]
async fn a_keyword_of_the_wrong_type_is_named() {
    let plane = Plane::new().await;
    plane.apply(&definition("Cluster", false).replace("size: {type: string}", "size: {type: 5}")).await;
    let refused = plane.until(XRD, "xthings.example.org", |o| status_of(o, "Established") == "False").await;
    assert_eq!(
        message_of(&refused, "Established"),
        "spec.versions: schema.openAPIV3Schema.properties.spec.properties.size.type: must be a string, not number"
    );
}
