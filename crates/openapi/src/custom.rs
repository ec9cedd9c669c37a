//! The schema of a custom kind, from its definition.

use crate::resource::Resource;
use crate::selected;
use serde_json::{Map, Value, json};
use transom_kinds::openapi::{API_VERSION, Dialect, KIND, LIST_METADATA, METADATA};

/// A kind and its list, by schema name.
pub(super) struct Published {
    pub(super) kind: (String, Value),
    pub(super) list: (String, Value),
}

pub(super) fn reference(name: &str, dialect: Dialect) -> Value {
    json!({"$ref": format!("{}{name}", dialect.root())})
}

/// A reference with a sentence beside it, which OpenAPI v3 allows only around it.
fn described(name: &str, dialect: Dialect, description: &str) -> Value {
    match dialect {
        Dialect::V2 => {
            json!({"$ref": format!("{}{name}", dialect.root()), "description": description})
        }
        Dialect::V3 => json!({"allOf": [reference(name, dialect)], "description": description}),
    }
}

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const EMBEDDED_API_VERSION: &str = "apiVersion defines the versioned schema of this representation of an object. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const EMBEDDED_KIND: &str = "kind is a string value representing the type of this object. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// The kind and its list. `version` is the one in the kind's definition.
pub(super) fn schemas(r: &Resource, version: &Value, dialect: Dialect) -> Published {
    let schema = version.pointer("/schema/openAPIV3Schema").filter(|s| s.is_object());
    // `org.example.v1.Widget`: the group's labels in reverse, then version and kind.
    let mut labels: Vec<&str> = r.group.split('.').rev().collect();
    labels.push(&r.version);
    let prefix = labels.join(".");
    let name = format!("{prefix}.{}", r.kind);
    let mut kind = object(schema, dialect);
    kind["x-kubernetes-group-version-kind"] = gvk(r, &r.kind);
    let mut list = list(r, &name, dialect);
    let selectable = selected(version, "selectableFields");
    if !selectable.is_empty() {
        let path = |f: &Value| f["jsonPath"].as_str().unwrap_or_default().trim_start_matches('.').to_owned();
        let fields: Value = selectable.iter().map(|f| json!({"fieldPath": path(f)})).collect();
        kind["x-kubernetes-selectable-fields"] = fields.clone();
        list["x-kubernetes-selectable-fields"] = fields;
    }
    Published { kind: (name, kind), list: (format!("{prefix}.{}", r.list_kind), list) }
}

fn object(schema: Option<&Value>, dialect: Dialect) -> Value {
    let open = |s: &Value| is(s, "x-kubernetes-preserve-unknown-fields");
    // Clients that validate by v2 refuse fields they do not see, so an open object shows none.
    let Some(schema) = schema.filter(|s| dialect == Dialect::V3 || !open(s)) else {
        return json!({"type": "object"});
    };
    let mut kind = schema.clone();
    publish(&mut kind, dialect);
    let properties = entry(&mut kind, "properties");
    properties.insert("apiVersion".into(), json!({"type": "string", "description": API_VERSION}));
    properties.insert("kind".into(), json!({"type": "string", "description": KIND}));
    properties.insert("metadata".into(), described(OBJECT_META, dialect, METADATA));
    kind
}

fn list(r: &Resource, item: &str, dialect: Dialect) -> Value {
    json!({
        "type": "object",
        "description": format!("{} is a list of {}", r.list_kind, r.kind),
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": API_VERSION},
            "kind": {"type": "string", "description": KIND},
            "metadata": described(LIST_META, dialect, LIST_METADATA),
            "items": {
                "type": "array",
                "description": format!("List of {}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md", r.plural),
                "items": reference(item, dialect),
            },
        },
        "x-kubernetes-group-version-kind": gvk(r, &r.list_kind),
    })
}

fn gvk(r: &Resource, kind: &str) -> Value {
    json!([{"group": r.group, "version": r.version, "kind": kind}])
}

fn is(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
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

/// The schema as it was written, with what its extensions imply written out, and in v2 without what that version cannot express.
fn publish(schema: &mut Value, dialect: Dialect) {
    if !schema.is_object() {
        return;
    }
    if let Some(map) = schema.as_object_mut() {
        // The only extension that may be written as `false`, which has no meaning.
        if map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            map.remove("x-kubernetes-preserve-unknown-fields");
        }
    }
    match dialect {
        Dialect::V3 => unfold(schema),
        Dialect::V2 => degrade(schema),
    }
    let Some(map) = schema.as_object_mut() else { return };
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(key) {
            publish(inner, dialect);
        }
    }
    for (_, property) in map.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        publish(property, dialect);
    }
    embed(schema, dialect);
}

/// An integer or a string is also expressed with the keywords of OpenAPI.
fn unfold(schema: &mut Value) {
    let alternatives = json!([{"type": "integer"}, {"type": "string"}]);
    if !is(schema, "x-kubernetes-int-or-string")
        || schema.get("anyOf") == Some(&alternatives)
        || schema.pointer("/allOf/0/anyOf") == Some(&alternatives)
    {
        return;
    }
    if schema.get("anyOf").is_none() {
        schema["anyOf"] = alternatives;
    } else {
        let mut all = vec![json!({"anyOf": alternatives})];
        all.extend(selected(schema, "allOf").iter().cloned());
        schema["allOf"] = all.into();
    }
}

/// OpenAPI v2 has neither alternatives nor null nor defaults; and clients that read it take a typed value without
/// properties or items for one that may have none.
fn degrade(schema: &mut Value) {
    let optional: Vec<String> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, property)| is(property, "nullable"))
        .map(|(name, _)| name.clone())
        .collect();
    let all_optional = is(&schema["additionalProperties"], "nullable");
    let Some(map) = schema.as_object_mut() else { return };
    for key in ["oneOf", "anyOf", "allOf", "not", "default"] {
        map.remove(key);
    }
    let nullable = map.remove("nullable") == Some(Value::Bool(true));
    let open = map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    if nullable || open {
        map.remove("items");
        map.remove("properties");
    }
    let bare_list = map.get("type").is_some_and(|t| t == "array") && !map.contains_key("items");
    let open_object = open && map.get("type").is_some_and(|t| t == "object");
    if nullable || bare_list || open_object {
        map.remove("type");
    }
    if let Some(Value::Array(required)) = map.get_mut("required") {
        required
            .retain(|name| !all_optional && name.as_str().is_none_or(|n| !optional.iter().any(|o| o == n)));
        if required.is_empty() {
            map.remove("required");
        }
    }
}

/// An embedded object has what every object has.
fn embed(schema: &mut Value, dialect: Dialect) {
    let hidden = dialect == Dialect::V2 && is(schema, "x-kubernetes-preserve-unknown-fields");
    if !is(schema, "x-kubernetes-embedded-resource") || hidden {
        return;
    }
    let properties = entry(schema, "properties");
    properties.insert("apiVersion".into(), json!({"type": "string", "description": EMBEDDED_API_VERSION}));
    properties.insert("kind".into(), json!({"type": "string", "description": EMBEDDED_KIND}));
    properties.insert("metadata".into(), described(OBJECT_META, dialect, METADATA));
    let mut required = selected(schema, "required").to_vec();
    for name in ["kind", "apiVersion"] {
        if !required.iter().any(|r| r == name) {
            required.push(name.into());
        }
    }
    schema["required"] = required.into();
}
