//! Manifests that tests apply: definitions, Compositions and Functions of the group `example.org`.

use serde_json::{Value, json};

/// A Function whose package is a built-in function of the same name. Annotations are written as `key: value`, separated by
/// commas.
pub fn function(name: &str, annotations: &str) -> String {
    format!(
        "apiVersion: pkg.crossplane.io/v1\nkind: Function\nmetadata: {{name: {name}, annotations: {{{annotations}}}}}\n\
         spec: {{package: example.org/{name}:v1}}\n"
    )
}

/// The plural name that [`Definition`] has unless it is given another one.
pub fn plural(kind: &str) -> String {
    kind.to_lowercase() + "s"
}

/// A CompositeResourceDefinition with one version, `v1`.
pub struct Definition<'a> {
    /// The kind of its composite resources.
    pub kind: &'a str,
    /// The plural of the kind.
    pub plural: &'a str,
    /// `Namespaced`, `Cluster` or `LegacyCluster`.
    pub scope: &'a str,
    /// Properties of `spec`, as YAML in one line.
    pub spec: &'a str,
    /// Properties of `status`, as YAML in one line.
    pub status: &'a str,
    /// More fields of the definition's spec, as YAML, further lines indented by two.
    pub more: &'a str,
}

impl Definition<'_> {
    /// The definition as a manifest.
    pub fn yaml(&self) -> String {
        let Self { kind, plural, scope, spec, status, more } = self;
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
          spec: {{type: object, properties: {{{spec}}}}}
          status: {{type: object, properties: {{{status}}}}}
"
        )
    }
}

/// A Composition of `example.org/v1`, as JSON: the functions of its steps with their inputs. A null input is left out.
pub fn composition(name: &str, kind: &str, labels: &Value, pipeline: &[(&str, Value)]) -> Value {
    let step = |(i, (function, input)): (usize, &(&str, Value))| {
        let mut step = json!({"step": format!("step-{i}"), "functionRef": {"name": function}});
        if !input.is_null() {
            step["input"] = input.clone();
        }
        step
    };
    let pipeline: Vec<Value> = pipeline.iter().enumerate().map(step).collect();
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": kind},
            "mode": "Pipeline",
            "pipeline": pipeline,
        },
    })
}

/// A step that renders a template.
pub fn template(text: &str) -> (&'static str, Value) {
    let input = json!({
        "apiVersion": "gotemplating.fn.crossplane.io/v1beta1",
        "kind": "GoTemplate",
        "source": "Inline",
        "inline": {"template": text},
    });
    ("function-go-templating", input)
}

/// A step that reports composed resources as ready when they have the condition `Ready`, or no conditions at all.
pub fn auto_ready() -> (&'static str, Value) {
    ("function-auto-ready", Value::Null)
}

/// The condition of an object, or null.
pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let list = object["status"]["conditions"].as_array();
    list.into_iter().flatten().find(|c| c["type"] == kind).unwrap_or(&Value::Null)
}

/// The status of a condition, or an empty string.
pub fn status_of<'a>(object: &'a Value, kind: &str) -> &'a str {
    condition(object, kind)["status"].as_str().unwrap_or_default()
}
