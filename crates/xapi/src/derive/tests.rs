//! The CRDs of a definition.

use super::*;
use serde_json::json;
use transom_object::error_chain::chain;

fn xrd(spec: &Value) -> Definition {
    let mut all = json!({
        "group": "example.org",
        "names": {"plural": "xthings", "kind": "XThing"},
        "versions": [{"name": "v1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": {}}}],
    });
    for (field, value) in spec.as_object().unwrap() {
        all[field] = value.clone();
    }
    serde_json::from_value(json!({
        "metadata": {"name": "xthings.example.org", "uid": "u", "labels": {"a": "xrd", "b": "xrd"}}, "spec": all,
    }))
    .unwrap()
}

fn with_schema(schema: &Value) -> Definition {
    xrd(&json!({"versions": [{
        "name": "v1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": schema},
    }]}))
}

fn derived(xrd: &Definition) -> Value {
    composite_crd(xrd, Extensions::default()).unwrap()
}

#[test]
fn scopes_decide_where_machinery_goes() {
    for (scope, crd_scope, place, namespace) in [
        ("Namespaced", "Namespaced", "/spec/properties/crossplane/properties", false),
        ("Cluster", "Cluster", "/spec/properties/crossplane/properties", true),
        ("LegacyCluster", "Cluster", "/spec/properties", true),
    ] {
        let crd = derived(&xrd(&json!({"scope": scope, "defaultCompositionUpdatePolicy": "Manual"})));
        assert_eq!(crd["spec"]["scope"], crd_scope);
        let fields = crd
            .pointer(&format!("/spec/versions/0/schema/openAPIV3Schema/properties{place}"))
            .unwrap()
            .clone();
        assert_eq!(fields["compositionUpdatePolicy"]["default"], "Manual", "{scope}");
        assert_eq!(
            fields["resourceRefs"]["items"]["properties"].get("namespace").is_some(),
            namespace,
            "{scope}"
        );
        assert_eq!(fields.get("claimRef").is_some(), scope == "LegacyCluster");
        let status =
            &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
        assert_eq!(status.get("claimConditionTypes").is_some(), scope == "LegacyCluster");
    }
}

#[test]
fn only_named_parts_of_the_schema_are_kept_and_machinery_wins() {
    let crd = derived(&with_schema(&json!({
        "type": "object", "description": "d", "anyOf": [{"required": ["x"]}], "required": ["metadata"],
        "x-kubernetes-validations": [{"rule": "true"}],
        "properties": {
            "metadata": {"type": "object", "properties": {"name": {"maxLength": 10}, "labels": {"type": "object"}}},
            "extra": {"type": "string"},
            "spec": {
                "type": "object", "description": "s", "required": ["a"], "not": {"required": ["z"]},
                "oneOf": [{"required": ["a"]}], "x-kubernetes-preserve-unknown-fields": true,
                "x-kubernetes-validations": [{"rule": "has(self.a)"}], "additionalProperties": true,
                "properties": {"a": {"type": "string"}, "compositionRef": {"type": "string"}},
            },
            "status": {
                "type": "object", "required": ["p"], "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"p": {"type": "string"}, "conditions": {"type": "string"}},
            },
        },
    })));
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(schema["required"], json!(["spec"]));
    assert_eq!(schema["description"], "d");
    assert_eq!(schema["x-kubernetes-validations"], json!([{"rule": "true"}]));
    assert!(schema.get("anyOf").is_none() && schema["properties"].get("extra").is_none());
    let name = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 10}}});
    assert_eq!(schema["properties"]["metadata"], name);
    let spec = &schema["properties"]["spec"];
    assert_eq!(spec["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!((&spec["description"], &spec["required"]), (&json!("s"), &json!(["a"])));
    assert!(spec.get("not").is_none() && spec.get("additionalProperties").is_none());
    assert_eq!(spec["properties"]["a"], json!({"type": "string"}));
    assert_eq!(spec["properties"]["compositionRef"]["type"], "object", "ours wins");
    let status = &schema["properties"]["status"];
    assert!(status.get("x-kubernetes-preserve-unknown-fields").is_none());
    assert_eq!(status["properties"]["conditions"]["type"], "array", "ours wins");
}

#[test]
fn long_names_are_clamped() {
    let length = |schema: &Value| {
        let crd = derived(&with_schema(schema));
        crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/metadata/properties/name/maxLength")
            .cloned()
    };
    assert_eq!(length(&json!({})), Some(json!(63)));
    let asked = |n: i64| json!({"properties": {"metadata": {"properties": {"name": {"maxLength": n}}}}});
    assert_eq!(length(&asked(100)), Some(json!(63)));
    assert_eq!(length(&asked(20)), Some(json!(20)));
}

#[test]
fn metadata_columns_categories_and_subresources() {
    let crd = derived(&xrd(&json!({
        "names": {"plural": "xthings", "kind": "XThing", "categories": ["mine"]},
        "metadata": {"labels": {"b": "crd"}, "annotations": {"n": "1"}},
        "conversion": {"strategy": "Webhook", "webhook": {}},
        "versions": [{
            "name": "v1", "served": true, "referenceable": true, "deprecated": true, "deprecationWarning": "old",
            "schema": {"openAPIV3Schema": {}},
            "additionalPrinterColumns": [{"name": "X", "type": "string", "jsonPath": ".spec.x"}],
            "subresources": {"scale": {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r"}},
        }],
    })));
    assert_eq!(crd["metadata"]["labels"], json!({"a": "xrd", "b": "crd"}));
    assert_eq!(crd["metadata"]["annotations"], json!({"n": "1"}));
    assert_eq!(
        crd["metadata"]["ownerReferences"],
        json!([{
            "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
            "name": "xthings.example.org", "uid": "u", "controller": true, "blockOwnerDeletion": true,
        }])
    );
    assert_eq!(crd["spec"]["names"]["categories"], json!(["mine", "composite"]));
    assert_eq!(crd["spec"]["conversion"]["strategy"], "Webhook");
    let version = &crd["spec"]["versions"][0];
    assert_eq!((&version["storage"], &version["deprecated"]), (&json!(true), &json!(true)));
    let columns: Vec<_> =
        version["additionalPrinterColumns"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
    assert_eq!(columns, ["X", "SYNCED", "READY", "COMPOSITION", "COMPOSITIONREVISION", "AGE"]);
    assert_eq!(version["subresources"]["scale"]["specReplicasPath"], ".spec.r");
}

#[test]
fn claims_have_their_own_names_and_fields() {
    let claims = json!({"plural": "things", "kind": "Thing"});
    let offering = xrd(&json!({"claimNames": claims, "defaultCompositeDeletePolicy": "Foreground"}));
    let crd = claim_crd(&offering).unwrap();
    assert_eq!(
        (&crd["metadata"]["name"], &crd["spec"]["scope"]),
        (&json!("things.example.org"), &json!("Namespaced"))
    );
    let fields = crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties").unwrap();
    assert_eq!(fields["compositeDeletePolicy"]["default"], "Foreground");
    assert!(
        fields["compositionUpdatePolicy"].get("default").is_none() && fields.get("resourceRefs").is_none()
    );
    assert_eq!(
        chain(&claim_crd(&xrd(&json!({}))).unwrap_err()),
        "invalid resource claim names: missing names"
    );
    let clash = xrd(&json!({"claimNames": {"plural": "things", "kind": "XThing"}}));
    assert_eq!(
        chain(&claim_crd(&clash).unwrap_err()),
        "invalid resource claim names: \"XThing\" conflicts with composite resource name"
    );
}

#[test]
fn a_missing_or_malformed_schema_is_an_error() {
    let missing = xrd(&json!({"versions": [{"name": "v1"}]}));
    assert_eq!(
        chain(&composite_crd(&missing, Extensions::default()).unwrap_err()),
        "cannot generate CRD for \"Composite Resource\" \"xthings.example.org\": custom resource validation cannot be \
         nil"
    );
    let malformed = composite_crd(&with_schema(&json!({"type": 1})), Extensions::default()).unwrap_err();
    assert!(chain(&malformed).contains("cannot parse validation schema"), "{malformed}");
}

#[test]
fn extensions_are_extra() {
    let plain = derived(&xrd(&json!({})));
    let more = composite_crd(&xrd(&json!({})), Extensions::ALL).unwrap();
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/watchedResourceRefs";
    assert!(plain.pointer(path).is_none() && more.pointer(path).is_some());
}

#[test]
fn an_update_is_needed_only_when_something_would_change() {
    let derived = derived(&xrd(&json!({})));
    let mut live = derived.clone();
    live["metadata"]["resourceVersion"] = "5".into();
    live["metadata"]["creationTimestamp"] = "2024-01-01T00:00:00Z".into();
    live["spec"]["names"]["singular"] = "xthing".into();
    live["spec"]["names"]["listKind"] = "XThingList".into();
    live["spec"]["conversion"] = json!({"strategy": "None"});
    live["status"] = json!({"conditions": []});
    assert!(!needs_update(&live, &derived));
    for (path, value) in [
        ("/metadata/labels/a", json!("other")),
        ("/spec/versions/0/served", json!(false)),
        ("/metadata/ownerReferences/0/controller", json!(false)),
        ("/spec/conversion/strategy", json!("Webhook")),
    ] {
        let mut changed = live.clone();
        *changed.pointer_mut(path).unwrap() = value;
        assert!(needs_update(&changed, &derived), "{path}");
    }
    let properties = "/spec/versions/0/schema/openAPIV3Schema/properties";
    let mut worded = live.clone();
    worded.pointer_mut(&format!("{properties}/status/properties/conditions")).unwrap()["description"] =
        "other words".into();
    assert!(!needs_update(&worded, &derived), "Crossplane describes its fields in other words");
    worded.pointer_mut(&format!("{properties}/status/properties/conditions")).unwrap()["type"] =
        "string".into();
    assert!(needs_update(&worded, &derived));
    live["metadata"]["annotations"] = json!({"someone": "else"});
    assert!(needs_update(&live, &derived));
}
