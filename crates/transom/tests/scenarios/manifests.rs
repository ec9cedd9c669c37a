//! What users apply: definitions, compositions, what functions are asked for, and instances.

use serde_json::{Value, json};

pub fn function(name: &str, annotations: &str) -> String {
    format!(
        "apiVersion: pkg.crossplane.io/v1\nkind: Function\nmetadata: {{name: {name}, annotations: {{{annotations}}}}}\n\
         spec: {{package: example.org/{name}:v1}}\n"
    )
}

/// A definition of `kind` (plural: lower case and an s) with a few fields.
pub fn definition(kind: &str, scope: &str, more: &str) -> String {
    let plural = plural(kind);
    format!(
        r"
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {{name: {plural}.example.org}}
spec:
  group: example.org
  scope: {scope}
  names: {{kind: {kind}, plural: {plural}}}
  {more}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              coolField: {{type: string}}
              numbers: {{type: array, items: {{type: string}}}}
              parameters: {{type: object, additionalProperties: {{type: string}}}}
          status:
            type: object
            properties:
              coolerField: {{type: string}}
"
    )
}

/// A definition with a rule for whole objects. What breaks it is refused with the words "it is against the rules",
/// whoever writes it: that is how writes of the control plane fail.
pub fn ruled(definition: &str, rule: &str) -> String {
    let start = "      openAPIV3Schema:\n        type: object\n";
    let message = "it is against the rules";
    let rules = json!([{"rule": rule, "message": message}]);
    definition.replace(start, &format!("{start}        x-kubernetes-validations: {rules}\n"))
}

pub fn plural(kind: &str) -> String {
    kind.to_lowercase() + "s"
}

/// A Composition whose steps are `name: function` with an input each, as JSON.
pub fn composition(name: &str, kind: &str, labels: &Value, pipeline: &[(&str, Value)]) -> String {
    let steps: Vec<Value> = pipeline
        .iter()
        .enumerate()
        .map(|(i, (function, input))| {
            let mut step = json!({"step": format!("step-{i}"), "functionRef": {"name": function}});
            if !input.is_null() {
                step["input"] = input.clone();
            }
            step
        })
        .collect();
    let object = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": kind},
            "mode": "Pipeline", "pipeline": steps,
        },
    });
    object.to_string()
}

/// What function-dummy answers.
pub fn answer(response: &Value) -> (&'static str, Value) {
    let input =
        json!({"apiVersion": "dummy.fn.crossplane.io/v1beta1", "kind": "Response", "response": response});
    ("function-dummy", input)
}

/// An answer that composes one ready ConfigMap and says something in the status.
pub fn one_map(kind: &str, says: &str) -> (&'static str, Value) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"}, "data": {"says": says}});
    answer(&json!({"desired": {
        "composite": {"resource": {
            "apiVersion": "example.org/v1", "kind": kind, "status": {"coolerField": says},
        }},
        "resources": {"map": {"resource": map, "ready": "READY_TRUE"}},
    }}))
}

/// What renders a template.
pub fn template(text: &str) -> (&'static str, Value) {
    let input = json!({
        "apiVersion": "gotemplating.fn.crossplane.io/v1beta1", "kind": "GoTemplate",
        "source": "Inline", "inline": {"template": text},
    });
    ("function-go-templating", input)
}

pub fn auto_ready() -> (&'static str, Value) {
    ("function-auto-ready", Value::Null)
}

/// A managed resource that is ready at once.
pub fn nop(resource: &str, more: &str) -> String {
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

pub fn object(kind: &str, name: &str, spec: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    let namespace = if namespace.is_empty() { String::new() } else { format!(", namespace: {namespace}") };
    format!(
        "apiVersion: example.org/v1\nkind: {kind}\nmetadata: {{name: {name}{namespace}}}\nspec: {{{spec}}}\n"
    )
}
