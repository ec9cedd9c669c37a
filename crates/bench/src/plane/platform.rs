//! The platform that is measured: composite resources of four ConfigMaps each.

use bytes::Bytes;
use serde_json::{Value, json};

const GROUP: &str = "bench.transom.example";
pub(super) const NAMESPACE: &str = "default";
/// How many ConfigMaps each composite resource has.
pub(super) const CHILDREN: usize = 4;

/// What to create before there can be composite resources: the collection to post to, and the object.
pub(super) fn objects() -> [(&'static str, Bytes); 3] {
    [
        ("/apis/pkg.crossplane.io/v1/functions", encoded(&function())),
        ("/apis/apiextensions.crossplane.io/v2/compositeresourcedefinitions", encoded(&definition())),
        ("/apis/apiextensions.crossplane.io/v1/compositions", encoded(&composition())),
    ]
}

fn function() -> Value {
    json!({
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": "Function",
        "metadata": {"name": "patch-and-transform"},
        "spec": {"package": "example.org/function-patch-and-transform:v1"},
    })
}

fn definition() -> Value {
    let text = json!({"type": "string"});
    json!({
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": format!("stacks.{GROUP}")},
        "spec": {
            "scope": "Namespaced",
            "group": GROUP,
            "names": {"plural": "stacks", "kind": "Stack"},
            "versions": [{
                "name": "v1", "served": true, "referenceable": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {"type": "object", "properties": {"value": text}},
                        "status": {"type": "object", "properties": {"value": text}},
                    },
                }},
            }],
        },
    })
}

fn composition() -> Value {
    let resource = |i: usize| {
        json!({
            "name": format!("part-{i}"),
            "base": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"part": i.to_string()}},
            "patches": [
                {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.value", "toFieldPath": "data.value"},
                {"type": "ToCompositeFieldPath", "fromFieldPath": "data.value", "toFieldPath": "status.value"},
            ],
            "readinessChecks": [{"type": "NonEmpty", "fieldPath": "data.value"}],
        })
    };
    let input = json!({
        "apiVersion": "pt.fn.crossplane.io/v1beta1",
        "kind": "Resources",
        "resources": (0..CHILDREN).map(resource).collect::<Vec<_>>(),
    });
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": "stacks"},
        "spec": {
            "compositeTypeRef": {"apiVersion": format!("{GROUP}/v1"), "kind": "Stack"},
            "mode": "Pipeline",
            "pipeline": [{"step": "compose", "functionRef": {"name": "patch-and-transform"}, "input": input}],
        },
    })
}

pub(super) fn stack(name: &str) -> Bytes {
    encoded(&json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "Stack",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"value": name},
    }))
}

/// Where composite resources are.
pub(super) fn stacks() -> String {
    format!("/apis/{GROUP}/v1/namespaces/{NAMESPACE}/stacks")
}

/// Where the ConfigMaps that they are composed of are.
pub(super) fn parts() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps")
}

pub(super) fn is_ready(stack: &Value) -> bool {
    let conditions = stack["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

fn encoded(value: &Value) -> Bytes {
    transom_object::json::encode(value).into()
}
