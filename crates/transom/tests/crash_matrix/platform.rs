//! The manifests on the plane: kinds of every scope, composed by built-in functions, some of them nested, with a connection
//! secret that goes all the way from a managed resource to a claim.

use serde_json::Value;
use transom_testkit::manifests::{self, Definition};

/// A definition of a kind with `spec.size`, and `status.size` that functions write.
pub(crate) fn definition(kind: &str, plural: &str, scope: &str, more: &str) -> String {
    let (spec, status) = ("size: {type: integer}", "size: {type: string}");
    Definition { kind, plural, scope, spec, status, more }.yaml()
}

/// A Composition that renders a template and takes what exists for ready.
pub(crate) fn composition(kind: &str, plural: &str, template: &str) -> String {
    let template = template.lines().map(|l| format!("          {l}\n")).collect::<String>();
    format!(
        r"
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {{name: {plural}}}
spec:
  compositeTypeRef: {{apiVersion: example.org/v1, kind: {kind}}}
  writeConnectionSecretsToNamespace: default
  mode: Pipeline
  pipeline:
  - step: render
    functionRef: {{name: function-go-templating}}
    input:
      apiVersion: gotemplating.fn.crossplane.io/v1beta1
      kind: GoTemplate
      source: Inline
      inline:
        template: |
{template}
  - step: ready
    functionRef: {{name: function-auto-ready}}
"
    )
}

/// As many ConfigMaps as the size says, each with a name that begins with `prefix`, and the size in the status.
fn counted(kind: &str, prefix: &str, namespace: &str) -> String {
    format!(
        r#"{{{{- $xr := .observed.composite.resource }}}}
{{{{- range $i := until (int $xr.spec.size) }}}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  {namespace}
  annotations:
    {{{{ setResourceNameAnnotation (printf "{prefix}-%d" $i) }}}}
data:
  i: "{{{{ $i }}}}"
{{{{- end }}}}
---
apiVersion: example.org/v1
kind: {kind}
status:
  size: {prefix}-{{{{ $xr.spec.size }}}}
"#
    )
}

/// Another composite resource, one size.
fn nested(kind: &str) -> String {
    format!(
        r#"
---
apiVersion: example.org/v1
kind: {kind}
metadata:
  annotations:
    {{{{ setResourceNameAnnotation "nested" }}}}
spec:
  size: 1
"#
    )
}

/// A managed resource, whose connection details become the composite resource's.
const MANAGED: &str = r#"
---
apiVersion: nop.crossplane.io/v1alpha1
kind: NopResource
metadata:
  annotations:
    {{ setResourceNameAnnotation "nop" }}
spec:
  forProvider:
    conditionAfter:
    - {time: 0s, conditionType: Ready, conditionStatus: "True", conditionReason: Available}
    connectionDetails:
    - {name: password, value: sesame}
    - {name: other, value: x}
  writeConnectionSecretToRef:
    namespace: default
    name: nop-{{ $xr.metadata.uid }}
{{- with (index (.observed.resources | default dict) "nop") }}
{{- with .connectionDetails }}
---
apiVersion: meta.gotemplating.fn.crossplane.io/v1alpha1
kind: CompositeConnectionDetails
data: {{ . | toJson }}
{{- end }}
{{- end }}
"#;

/// How stores are composed: ConfigMaps, a nested composite resource, a managed resource.
pub(crate) fn stores(prefix: &str) -> String {
    let template = counted("XStore", prefix, "namespace: default") + &nested("Cell") + MANAGED;
    composition("XStore", "xstores", &template)
}

/// How rooms are composed: ConfigMaps and a nested composite resource, all in their own namespace.
pub(crate) fn rooms(prefix: &str) -> String {
    composition("Room", "rooms", &(counted("Room", prefix, "") + &nested("Desk")))
}

/// The manifests that exist before a run begins, in the order in which they are applied.
pub(crate) fn initial() -> String {
    let functions =
        ["function-go-templating", "function-auto-ready"].map(|name| manifests::function(name, ""));
    let claim = "claimNames: {kind: Store, plural: stores}\n  connectionSecretKeys: [password]";
    let definitions = [
        definition("XStore", "xstores", "LegacyCluster", claim),
        definition("Cell", "cells", "Cluster", ""),
        definition("Room", "rooms", "Namespaced", ""),
        definition("Desk", "desks", "Namespaced", ""),
    ];
    let compositions = [
        stores("a"),
        composition("Cell", "cells", &counted("Cell", "cell", "namespace: default")),
        rooms("a"),
        composition("Desk", "desks", &counted("Desk", "desk", "")),
    ];
    functions.into_iter().chain(definitions).chain(compositions).collect::<Vec<_>>().join("\n---\n")
}

pub(crate) fn documents(yaml: &str) -> Vec<Value> {
    let documents = transom_object::yaml::read_documents(yaml).expect("it is YAML");
    documents.into_iter().map(|d| d.value).filter(|v| !v.is_null()).collect()
}

/// Where an object is served.
pub(crate) fn path(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let plural = match text("/kind") {
        "CompositeResourceDefinition" => "compositeresourcedefinitions".to_owned(),
        kind => kind.to_lowercase() + "s",
    };
    let namespace = match text("/metadata/namespace") {
        "" => String::new(),
        namespace => format!("namespaces/{namespace}/"),
    };
    format!("/apis/{}/{namespace}{plural}/{}", text("/apiVersion"), text("/metadata/name"))
}
