//! What users write into the annotation of kept fields themselves.

use super::{converter, object, schema};
use serde_json::{Value, json};
use transom_conversion::{ANNOTATION, Converter, STATUS_FIELD};

/// `v1` has all that `v1alpha1` has, and more.
fn versions() -> Converter {
    let node = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let old = json!({"size": {"type": "integer", "maximum": 10}, "nodes": {"type": "array", "items": node}});
    let mut new = old.clone();
    new["class"] = json!({"type": "string", "enum": ["standard", "fast"]});
    new["zones"] = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    new["least"] = json!({"type": "integer"});
    new["nodes"]["items"]["properties"]["zone"] = json!({"type": "string"});
    let (old, mut new) = (schema(old), schema(new));
    let rule = json!([{"rule": "!has(self.least) || !has(self.size) || self.least <= self.size"}]);
    new["properties"]["spec"]["x-kubernetes-validations"] = rule;
    let status = |fields: Value| json!({"type": "object", "properties": fields});
    let (mut old, mut new) = (old, new);
    let text = json!({"type": "string"});
    old["properties"]["status"] = status(json!({"phase": text, STATUS_FIELD: text}));
    new["properties"]["status"] = status(json!({"phase": text, "vpcId": text, STATUS_FIELD: text}));
    converter(&[("v1alpha1", old), ("v1", new)], json!([{"from": "v1alpha1", "to": "v1"}]))
}

/// What becomes of an object of the old version in the new one.
fn stored(converter: &Converter, spec: &Value, annotation: &str) -> Value {
    let mut old = object("v1alpha1", spec.clone());
    old["metadata"]["annotations"] = json!({ANNOTATION: annotation, "mine": "yes"});
    old["status"] = json!({"phase": "Up"});
    converter.convert(&old, "v1").unwrap()
}

#[test]
fn forged_fields_do_not_come_back() {
    let converter = versions();
    let spec = json!({"size": 5, "nodes": [{"name": "a"}]});
    let honest = stored(&converter, &spec, "{}");
    assert_eq!(honest["spec"], spec);
    for forged in [
        // The wrong type, outside of an enum, a list that is not a set.
        json!([["spec", "class"], 7]),
        json!([["spec", "class"], "huge"]),
        json!([["spec", "class"], {"a": 1}]),
        json!([["spec", "zones"], ["a", "a"]]),
        json!([["spec", "nodes", [0, ""], "zone"], []]),
        // Fields that no version has, or that both have.
        json!([["spec", "nope"], 1]),
        json!([["spec", "size", "x"], 1]),
        json!([["spec", "size"], 11]),
        json!([["spec", "nodes", {"name": "a"}, "zone"], "z"]),
        // Refused by a rule about several fields.
        json!([["spec", "least"], 6]),
        // Elsewhere.
        json!([["metadata", "labels", "k"], "v"]),
        json!([["metadata", "annotations", "k"], "v"]),
        json!([["metadata", "namespace"], "kube-system"]),
        json!([["status"], {"vpcId": "x"}]),
        json!([["status", "vpcId"], "x"]),
        json!([["status", "conditions"], []]),
        json!([["spec"], {"class": "fast"}]),
        json!([["data"], "x"]),
        json!([["data", "x"], "x"]),
        json!([[], 1]),
    ] {
        let annotation = json!({"v1": [forged]}).to_string();
        assert_eq!(stored(&converter, &spec, &annotation), honest, "{forged}");
    }
}

#[test]
fn what_the_schema_accepts_comes_back_beside_what_it_refuses() {
    let converter = versions();
    let kept = json!({"v1": [[["spec", "class"], "fast"], [["spec", "zones"], 3]]}).to_string();
    assert_eq!(stored(&converter, &json!({"size": 5}), &kept)["spec"], json!({"size": 5, "class": "fast"}));
}

#[test]
fn kept_fields_of_the_status_are_in_the_status() {
    let converter = versions();
    assert_eq!(converter.check(), []);
    let mut new = object("v1", json!({"size": 5, "class": "fast"}));
    new["status"] = json!({"phase": "Up", "vpcId": "v"});
    let old = converter.convert(&new, "v1alpha1").unwrap();
    assert_eq!(old["status"], json!({"phase": "Up", STATUS_FIELD: r#"{"v1":[[["status","vpcId"],"v"]]}"#}));
    assert_eq!(old["metadata"]["annotations"], json!({ANNOTATION: r#"{"v1":[[["spec","class"],"fast"]]}"#}));
    assert_eq!(converter.convert(&old, "v1").unwrap(), new);
    // A client that removes the annotation does not change the status, and the status does not change the spec.
    let mut forged = old;
    forged["metadata"].as_object_mut().unwrap().remove("annotations");
    let kept = json!({"v1": [[["status", "vpcId"], "v"], [["spec", "class"], "fast"]]}).to_string();
    forged["status"][STATUS_FIELD] = kept.into();
    let stored = converter.convert(&forged, "v1").unwrap();
    assert_eq!((&stored["status"], &stored["spec"]), (&new["status"], &json!({"size": 5})));
}

#[test]
fn objects_that_are_none_are_refused() {
    let converter = versions();
    for (metadata, why) in [
        (json!("x"), "metadata must be an object"),
        (json!([1]), "metadata must be an object"),
        (json!({"annotations": "x"}), "metadata.annotations must be an object"),
        (json!({"annotations": [1]}), "metadata.annotations must be an object"),
    ] {
        let mut new = object("v1", json!({"class": "fast"}));
        new["metadata"] = metadata;
        let refused = converter.convert(&new, "v1alpha1").unwrap_err();
        assert_eq!(refused.to_string(), why);
    }
}

#[test]
fn bounds_at_the_end_of_the_integers_are_bounds() {
    let whole = |n: f64| json!({"type": "integer", "minimum": n, "exclusiveMinimum": true});
    let least = |n: f64| json!({"type": "integer", "maximum": n, "exclusiveMaximum": true});
    for bound in [whole(1e30), least(-1e30)] {
        let one = schema(json!({"a": bound}));
        let converter = converter(&[("v1", one.clone()), ("v2", one)], json!([{"from": "v1", "to": "v2"}]));
        converter.check();
    }
}
