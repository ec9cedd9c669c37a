//! The client of these tests, and objects that it sends.

use serde_json::{Value, json};
pub(crate) use transom_testkit::embedded::{Client, Reply};

pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}

/// A definition of a namespaced kind of `example.org/v1` with a status and a scale.
pub(crate) fn definition(kind: &str) -> Value {
    let singular = kind.to_lowercase();
    let count = json!({"type": "integer"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{singular}s.example.org")},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": format!("{singular}s"), "singular": singular},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {"type": "object", "properties": {
                            "replicas": count,
                            "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
                            "tags": {"type": "array", "items": {"type": "string"}},
                        }},
                        "status": {"type": "object", "properties": {"replicas": count}},
                    },
                }},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "selectableFields": [{"jsonPath": ".spec.color"}],
            }],
        },
    })
}

/// Defines widgets. Returns where they are in the default namespace, and one of them.
pub(crate) async fn widgets(client: &Client) -> (String, Value) {
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    client.post(crds, &definition("Widget")).await.expect(201);
    let widget = json!({
        "apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"},
        "spec": {"replicas": 2},
    });
    ("/apis/example.org/v1/namespaces/default/widgets".to_owned(), widget)
}
