//! The schema of a custom kind, from its definition as stored.

use crate::crd::STORE_KEY;
use crate::kinds::openapi::Dialect;
use crate::resource::Resource;
use crate::server::Inner;
use serde_json::{Map, Value, json};
use transom_store::Key;

/// `org.example.v1.Widget`: the group's labels in reverse, then version and kind.
pub(super) fn schema_name(r: &Resource) -> String {
    let mut labels: Vec<&str> = r.group.split('.').rev().collect();
    labels.push(&r.version);
    labels.push(&r.names.kind);
    labels.join(".")
}

pub(super) fn reference(name: &str, dialect: Dialect) -> Value {
    let root = match dialect {
        Dialect::V2 => "#/definitions/",
        Dialect::V3 => "#/components/schemas/",
    };
    json!({"$ref": format!("{root}{name}")})
}

/// A reference with a sentence beside it, which OpenAPI v3 allows only around it.
fn described(name: &str, dialect: Dialect, description: &str) -> Value {
    let reference = reference(name, dialect);
    match dialect {
        Dialect::V2 => {
            let mut r = reference;
            r["description"] = description.into();
            r
        }
        Dialect::V3 => json!({"allOf": [reference], "description": description}),
    }
}

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// The kind and its list.
pub(super) fn schemas(server: &Inner, r: &Resource, dialect: Dialect) -> Vec<(String, Value)> {
    let name = schema_name(r);
    let mut kind = published(server, r, dialect);
    let properties = entry(&mut kind, "properties");
    properties.insert("apiVersion".into(), json!({"type": "string", "description": API_VERSION}));
    properties.insert("kind".into(), json!({"type": "string", "description": KIND}));
    properties.insert(
        "metadata".into(),
        described(OBJECT_META, dialect, "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"),
    );
    kind["type"] = "object".into();
    kind["x-kubernetes-group-version-kind"] = gvk(r, &r.names.kind);
    let list = json!({
        "type": "object",
        "description": format!("{} is a list of {}", r.names.list_kind, r.names.kind),
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": API_VERSION},
            "kind": {"type": "string", "description": KIND},
            "metadata": described(LIST_META, dialect, "Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"),
            "items": {
                "type": "array",
                "description": format!("List of {}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md", r.names.plural),
                "items": reference(&name, dialect),
            },
        },
        "x-kubernetes-group-version-kind": gvk(r, &r.names.list_kind),
    });
    let list_name = format!("{}.{}", name.rsplit_once('.').map_or("", |(p, _)| p), r.names.list_kind);
    vec![(name, kind), (list_name, list)]
}

pub(super) fn gvk(r: &Resource, kind: &str) -> Value {
    json!([{"group": r.group, "version": r.version, "kind": kind}])
}

fn entry<'a>(value: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    if !value[key].is_object() {
        value[key] = json!({});
    }
    match &mut value[key] {
        Value::Object(map) => map,
        _ => unreachable!("just made an object"),
    }
}

/// The schema as the definition has it, without what the dialect cannot say.
fn published(server: &Inner, r: &Resource, dialect: Dialect) -> Value {
    let definition = server
        .store
        .get(&Key::new(STORE_KEY, "", &r.store_key))
        .and_then(|e| serde_json::from_slice::<Value>(&e.body).ok());
    let mut schema = definition
        .as_ref()
        .and_then(|d| d["spec"]["versions"].as_array())
        .and_then(|versions| versions.iter().find(|v| v["name"] == r.version.as_str()))
        .map(|v| v["schema"]["openAPIV3Schema"].clone())
        .filter(Value::is_object)
        .unwrap_or_else(|| json!({}));
    if dialect == Dialect::V2 {
        if schema["x-kubernetes-preserve-unknown-fields"] == true {
            // Clients that validate by v2 would refuse fields they do not see.
            return json!({"x-kubernetes-preserve-unknown-fields": true, "description": schema["description"].as_str().unwrap_or_default()});
        }
        degrade(&mut schema);
    }
    schema
}

/// OpenAPI v2 knows neither `nullable` nor alternatives, and clients take any type where an integer or string
/// is meant.
fn degrade(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    for key in ["oneOf", "anyOf", "allOf", "not", "x-kubernetes-validations"] {
        map.remove(key);
    }
    let nullable = map.remove("nullable") == Some(Value::Bool(true));
    let int_or_string = map.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
    let preserves = map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    if nullable || int_or_string {
        for key in ["type", "items", "properties", "additionalProperties"] {
            map.remove(key);
        }
    } else if preserves {
        for key in ["items", "properties"] {
            map.remove(key);
        }
    }
    if let Some(items) = map.get_mut("items") {
        degrade(items);
    }
    if let Some(additional) = map.get_mut("additionalProperties") {
        degrade(additional);
    }
    for (_, property) in map.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        degrade(property);
    }
}
