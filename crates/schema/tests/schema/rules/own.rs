//! Rules by our own cases: messages, reasons and paths of errors, and rules that do not compile.

use serde_json::json;
use transom_object::field::Path;
use transom_schema::rules::Rules;
use transom_schema::structural;

#[test]
fn rules_of_a_schema() {
    let schema = structural::parse(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "x-kubernetes-validations": [
            {"rule": "self.min <= self.max", "message": "min must not exceed max", "fieldPath": ".min"},
            {"rule": "self.name == oldSelf.name", "messageExpression": "'name was ' + oldSelf.name", "reason": "FieldValueForbidden"},
        ],
        "properties": {
            "min": {"type": "integer"}, "max": {"type": "integer"}, "name": {"type": "string"},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string",
                "x-kubernetes-validations": [{"rule": "self.size() < 4"}]}},
        }}}}))
    .unwrap();
    let rules = Rules::compile(&schema).unwrap();
    let show = |new, old: Option<&serde_json::Value>| -> Vec<String> {
        rules.validate(new, old, &Path::root()).iter().map(ToString::to_string).collect()
    };
    let good = json!({"spec": {"min": 1, "max": 2, "name": "a", "tags": ["x"]}});
    assert!(show(&good, None).is_empty());
    let bad = json!({"spec": {"min": 3, "max": 2, "name": "b", "tags": ["long tag"]}});
    assert_eq!(
        show(&bad, Some(&good)),
        [
            "spec.min: Invalid value: min must not exceed max",
            "spec: Forbidden: name was a",
            "spec.tags[0]: Invalid value: \"long tag\": failed rule: self.size() < 4",
        ]
    );
    // What an update leaves as it was may stay wrong.
    assert!(show(&bad, Some(&bad)).is_empty());
    assert!(Rules::compile(&structural::parse(&json!({"type": "object"})).unwrap()).unwrap().is_empty());
}

#[test]
fn rules_that_do_not_compile_are_named() {
    let schema = structural::parse(&json!({"type": "object", "properties": {"n": {"type": "integer",
        "x-kubernetes-validations": [{"rule": "self == 'a'"}, {"rule": "self"}]}}}))
    .unwrap();
    let errors = Rules::compile(&schema).unwrap_err();
    let shown: Vec<String> = errors.iter().map(|e| format!("{}: {}", e.path, e.error)).collect();
    assert!(shown[0].starts_with(
        "properties[n].x-kubernetes-validations[0].rule: compilation failed: ERROR: <input>:1:6: found no matching overload"
    ));
    assert_eq!(
        shown[1],
        "properties[n].x-kubernetes-validations[1].rule: cel expression must evaluate to a bool"
    );
}
