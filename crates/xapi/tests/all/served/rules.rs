//! Definitions that cannot work are refused when they are applied, and environments are served in both versions.

use super::plane::Plane;
use super::{APIEXTENSIONS, xrd};
use serde_json::{Value, json};

fn version(name: &str, referenceable: bool) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    json!({"name": name, "served": true, "referenceable": referenceable, "schema": schema})
}

#[tokio::test]
async fn definitions_that_cannot_work_are_refused() {
    let plane = Plane::with_crossplane().await;
    let mut unschemed = version("v1", true);
    unschemed["schema"] = json!({});
    let one = "exactly one version must be referenceable";
    for (more, message) in [
        (
            json!({"names": {"plural": "xothers", "kind": "XThing"}}),
            "metadata.name must be xothers.example.org",
        ),
        (json!({"group": "other.org"}), "metadata.name must be xthings.other.org"),
        (json!({"versions": [version("v1", false)]}), one),
        (json!({"versions": [version("v1", true), version("v2", true)]}), one),
        (json!({"versions": []}), one),
        (json!({"versions": [unschemed]}), "every version needs a schema.openAPIV3Schema"),
    ] {
        for api in ["v1", "v2"] {
            let path = format!("{APIEXTENSIONS}/{api}/compositeresourcedefinitions");
            plane.refused(&path, &xrd(api, &more), message).await;
        }
    }
    let path = format!("{APIEXTENSIONS}/v1/compositeresourcedefinitions");
    for claims in
        [json!({"plural": "xthings", "kind": "Thing"}), json!({"plural": "things", "kind": "XThing"})]
    {
        plane
            .refused(&path, &xrd("v1", &json!({"claimNames": claims})), "claimNames must differ from names")
            .await;
    }
    let several = json!({"versions": [version("v1", false), version("v2", true), version("v3", false)]});
    let made = plane.post(&path, &xrd("v1", &several)).await;
    assert_eq!(made.status, 201, "{}", made.body);
}

#[tokio::test]
async fn claim_names_can_be_added_and_then_stay() {
    let plane = Plane::with_crossplane().await;
    let path = format!("{APIEXTENSIONS}/v1/compositeresourcedefinitions");
    let made = plane.post(&path, &xrd("v1", &json!({}))).await;
    let path = format!("{path}/xthings.example.org");
    let mut claimed = made.body.clone();
    claimed["spec"]["claimNames"] = json!({"plural": "things", "kind": "Thing"});
    let added = plane.put(&path, &claimed).await;
    assert_eq!(added.status, 200, "{}", added.body);
    let mut removed = added.body.clone();
    removed["spec"].as_object_mut().unwrap().remove("claimNames");
    for api in ["v1", "v2"] {
        removed["apiVersion"] = format!("apiextensions.crossplane.io/{api}").into();
        let reply = plane.put(&path.replace("/v1/", &format!("/{api}/")), &removed).await;
        assert_eq!(reply.status, 422, "{}", reply.body);
        let message = reply.body["message"].as_str().unwrap();
        assert!(message.contains("claimNames cannot be removed once they are set"), "{message}");
    }
    // Other changes are still possible.
    let mut labelled = added.body.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(plane.put(&path, &labelled).await.status, 200);
}

#[tokio::test]
async fn environment_configs_are_served_in_both_versions() {
    let plane = Plane::with_crossplane().await;
    let config = json!({
        "apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "EnvironmentConfig",
        "metadata": {"name": "e"}, "data": {"a": {"b": [1, "two"]}},
    });
    let made = plane.post(&format!("{APIEXTENSIONS}/v1alpha1/environmentconfigs"), &config).await;
    assert_eq!(made.status, 201, "{}", made.body);
    for version in ["v1alpha1", "v1beta1"] {
        let seen = plane.get(&format!("{APIEXTENSIONS}/{version}/environmentconfigs/e")).await;
        assert_eq!(seen["apiVersion"], format!("apiextensions.crossplane.io/{version}"));
        assert_eq!(seen["data"], config["data"]);
    }
}

/// `kubectl explain` has something to say about every field that is not the user's own.
#[test]
fn injected_fields_are_described() {
    let claims = json!({"claimNames": {"plural": "things", "kind": "Thing"}});
    for xrd in [xrd("v1", &claims), xrd("v2", &json!({"scope": "Namespaced"}))] {
        let definition: transom_xapi::Definition = serde_json::from_value(xrd).unwrap();
        let mut crds = vec![
            transom_xapi::derive::composite_crd(&definition, transom_xapi::derive::Extensions::ALL).unwrap(),
        ];
        crds.extend(transom_xapi::derive::claim_crd(&definition).ok());
        for crd in crds {
            for part in ["spec", "status"] {
                let part = format!("/spec/versions/0/schema/openAPIV3Schema/properties/{part}/properties");
                for (name, schema) in crd.pointer(&part).unwrap().as_object().unwrap() {
                    if !["size", "colour", "url"].contains(&name.as_str()) {
                        must_be_described(name, schema);
                    }
                }
            }
        }
    }
}

fn must_be_described(name: &str, schema: &Value) {
    assert!(schema["description"].as_str().is_some_and(|d| d.len() > 10), "{name}: {schema}");
    let items = schema.get("items").unwrap_or(schema);
    for (inner, schema) in items["properties"].as_object().into_iter().flatten() {
        must_be_described(&format!("{name}.{inner}"), schema);
    }
}
