//! What is written and read: custom resources that are about 2.5 KB once stored, managedFields included.

use bytes::Bytes;
use serde_json::{Value, json};

pub(super) const GROUP: &str = "bench.transom.example";

/// A definition with a schema that has work to do: types, defaults, a list keyed by name, a rule.
pub(super) fn definition(plural: &str) -> Bytes {
    let kind = format!("{}{}", plural[..1].to_ascii_uppercase(), &plural[1..]);
    encoded(&json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural, "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Region", "type": "string", "jsonPath": ".spec.region"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {"openAPIV3Schema": schema()},
            }],
        },
    }))
}

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["region"],
                "x-kubernetes-validations": [{"rule": "self.replicas <= 100", "message": "too many replicas"}],
                "properties": {
                    "region": {"type": "string", "minLength": 1, "maxLength": 64},
                    "replicas": {"type": "integer", "minimum": 0, "default": 1},
                    "parameters": {"type": "object", "additionalProperties": {"type": "string"}},
                    "ports": {
                        "type": "array",
                        "maxItems": 64,
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "required": ["name", "port"],
                            "properties": {
                                "name": {"type": "string"},
                                "port": {"type": "integer", "minimum": 1, "maximum": 65535},
                                "protocol": {"type": "string", "enum": ["TCP", "UDP"], "default": "TCP"},
                            },
                        },
                    },
                    "notes": {"type": "string"},
                },
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    })
}

/// An object as a client sends it.
pub(super) fn object(plural: &str, name: &str) -> Bytes {
    let kind = format!("{}{}", plural[..1].to_ascii_uppercase(), &plural[1..]);
    let parameters: serde_json::Map<String, Value> = (0..12)
        .map(|i| (format!("parameter-{i:02}"), format!("value of parameter {i} of {name}").into()))
        .collect();
    let ports: Vec<Value> =
        (0..4).map(|i| json!({"name": format!("port-{i}"), "port": 8000 + i, "protocol": "TCP"})).collect();
    encoded(&json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": {"app": "bench", "tier": "load"},
            "annotations": {"bench.transom.example/made-by": "transom bench"},
        },
        "spec": {
            "region": "eu-central-1",
            "replicas": 3,
            "parameters": parameters,
            "ports": ports,
            "notes": "The quick brown fox jumps over the lazy dog. ".repeat(7),
        },
    }))
}

pub(super) fn collection(plural: &str, namespace: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{namespace}/{plural}")
}

fn encoded(value: &Value) -> Bytes {
    transom_object::json::encode(value).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_the_size_it_is_said_to_have() {
        let size = object("widgets", "get-00001").len();
        assert!((1_350..1_650).contains(&size), "{size}");
    }
}
