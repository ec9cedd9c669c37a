//! What users apply: definitions, compositions, what functions are asked for, and instances.

use serde_json::{Value, json};
use transom_testkit::manifests::{self, Definition};
pub(super) use transom_testkit::manifests::{auto_ready, condition, function, plural, status_of, template};

/// A definition of `kind` (plural: lower case and an s) with a few fields.
pub(super) fn definition(kind: &str, scope: &str, more: &str) -> String {
    let spec = "coolField: {type: string}, numbers: {type: array, items: {type: string}}, \
                parameters: {type: object, additionalProperties: {type: string}}";
    let status = "coolerField: {type: string}";
    Definition { kind, plural: &plural(kind), scope, spec, status, more }.yaml()
}

/// A definition with a rule for whole objects. What breaks it is refused with the words "it is against the rules",
/// also when the control plane writes it: that is how its writes fail.
pub(super) fn ruled(definition: &str, rule: &str) -> String {
    let start = "      openAPIV3Schema:\n        type: object\n";
    let message = "it is against the rules";
    let rules = json!([{"rule": rule, "message": message}]);
    definition.replace(start, &format!("{start}        x-kubernetes-validations: {rules}\n"))
}

/// A Composition with a step for each function and its input, as JSON.
pub(super) fn composition(name: &str, kind: &str, labels: &Value, pipeline: &[(&str, Value)]) -> String {
    manifests::composition(name, kind, labels, pipeline).to_string()
}

/// What function-dummy answers.
pub(super) fn answer(response: &Value) -> (&'static str, Value) {
    let input =
        json!({"apiVersion": "dummy.fn.crossplane.io/v1beta1", "kind": "Response", "response": response});
    ("function-dummy", input)
}

/// An answer that composes one ready ConfigMap and says something in the status.
pub(super) fn one_map(kind: &str, says: &str) -> (&'static str, Value) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"}, "data": {"says": says}});
    answer(&json!({"desired": {
        "composite": {"resource": {
            "apiVersion": "example.org/v1", "kind": kind, "status": {"coolerField": says},
        }},
        "resources": {"map": {"resource": map, "ready": "READY_TRUE"}},
    }}))
}

/// A managed resource that is ready at once.
pub(super) fn nop(resource: &str, more: &str) -> String {
    format!(
        r#"
---
apiVersion: nop.crossplane.io/v1alpha1
kind: NopResource
metadata:
  labels: {{part: {resource}}}
  annotations:
    {{{{ setResourceNameAnnotation "{resource}" }}}}
spec:
  forProvider:
    conditionAfter:
    - {{time: 0s, conditionType: Ready, conditionStatus: "True", conditionReason: Available}}
{more}
"#
    )
}

pub(super) fn object(kind: &str, name: &str, spec: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    let namespace = if namespace.is_empty() { String::new() } else { format!(", namespace: {namespace}") };
    format!(
        "apiVersion: example.org/v1\nkind: {kind}\nmetadata: {{name: {name}{namespace}}}\nspec: {{{spec}}}\n"
    )
}
