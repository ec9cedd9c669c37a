//! The schema of a kind, out of the OpenAPI v3 documents that API servers publish.

use crate::world::WorldError;
use serde_json::{Map, Value, json};
use transom_object::GroupVersionKind;

const REFERENCE_PREFIX: &str = "#/components/schemas/";
const GROUP_VERSION_KIND: &str = "x-kubernetes-group-version-kind";

/// Documents are finite, but what they refer to need not be small: this many schemas are written out at most.
const MAX_SCHEMAS: usize = 200_000;

/// The schema of a kind with all references written out; `None` when no document knows the kind.
pub fn schema_of<'a>(
    documents: impl IntoIterator<Item = &'a Value>,
    kind: &GroupVersionKind,
) -> Result<Option<Value>, WorldError> {
    for document in documents {
        let schemas = document.get("components").and_then(|c| c.get("schemas")).and_then(Value::as_object);
        let Some(schemas) = schemas else { continue };
        let found = schemas.iter().find(|(_, schema)| is_of(schema, kind));
        if let Some((name, schema)) = found {
            let mut flattening = Flattening { schemas, path: vec![name.as_str()], written: 0 };
            return flattening.flatten(schema).map(Some);
        }
    }
    Ok(None)
}

/// A schema that lists several kinds, such as DeleteOptions, is the schema of none of them.
fn is_of(schema: &Value, kind: &GroupVersionKind) -> bool {
    let Some([owner]) = schema.get(GROUP_VERSION_KIND).and_then(Value::as_array).map(Vec::as_slice) else {
        return false;
    };
    let text = |field| owner.get(field).and_then(Value::as_str).unwrap_or_default();
    (text("group"), text("version"), text("kind")) == (&kind.group, &kind.version, &kind.kind)
}

struct Flattening<'a> {
    schemas: &'a Map<String, Value>,
    /// The schemas around the current one.
    path: Vec<&'a str>,
    written: usize,
}

impl<'a> Flattening<'a> {
    fn flatten(&mut self, schema: &'a Value) -> Result<Value, WorldError> {
        self.written += 1;
        if self.written > MAX_SCHEMAS {
            return Err(WorldError::TooManyReferences);
        }
        if let Some(name) = reference(schema) {
            // A schema within itself has no end; an object stands for it.
            if self.path.contains(&name) {
                return Ok(json!({"type": "object"}));
            }
            let target = self.schemas.get(name);
            let target = target.ok_or_else(|| WorldError::Unresolved(format!("{REFERENCE_PREFIX}{name}")))?;
            self.path.push(name);
            let flat = self.flatten(target);
            self.path.pop();
            return flat;
        }
        let Some(fields) = schema.as_object() else { return Ok(schema.clone()) };
        let mut flat = fields.clone();
        for field in ["additionalProperties", "items"] {
            if let Some(inner) = fields.get(field).filter(|inner| inner.is_object()) {
                flat.insert(field.to_owned(), self.flatten(inner)?);
            }
        }
        if let Some(properties) = fields.get("properties").and_then(Value::as_object) {
            let properties: Result<Map<_, _>, WorldError> =
                properties.iter().map(|(name, inner)| Ok((name.clone(), self.flatten(inner)?))).collect();
            flat.insert("properties".to_owned(), properties?.into());
        }
        Ok(flat.into())
    }
}

/// What a schema refers to: by itself, or wrapped to give it a default.
fn reference(schema: &Value) -> Option<&str> {
    let direct = schema.get("$ref").and_then(Value::as_str);
    let wrapped = || match schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([only]) => only.get("$ref").and_then(Value::as_str),
        _ => None,
    };
    direct.or_else(wrapped).map(|reference| reference.trim_start_matches(REFERENCE_PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(kind: &str) -> GroupVersionKind {
        GroupVersionKind::new("example.org", "v1", kind)
    }

    #[test]
    fn references_are_written_out() {
        let owner = |kind: &str| json!([{"group": "example.org", "version": "v1", "kind": kind}]);
        let document = json!({"components": {"schemas": {
            "thing": {
                GROUP_VERSION_KIND: owner("Thing"),
                "properties": {
                    "spec": {"allOf": [{"$ref": "#/components/schemas/spec"}], "default": {}},
                    "self": {"$ref": "#/components/schemas/thing"},
                },
            },
            "spec": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/name"},
                     "properties": {"names": {"items": {"$ref": "#/components/schemas/name"}}}},
            "name": {"type": "string"},
            "broken": {GROUP_VERSION_KIND: owner("Broken"), "items": {"$ref": "#/components/schemas/x"}},
            "shared": {GROUP_VERSION_KIND: [{"kind": "A"}, {"kind": "Shared"}]},
        }}});
        let documents = [json!({}), document];
        let schema = schema_of(&documents, &kind("Thing")).unwrap().unwrap();
        assert_eq!(
            schema["properties"],
            json!({
                "self": {"type": "object"},
                "spec": {"type": "object", "additionalProperties": {"type": "string"},
                         "properties": {"names": {"items": {"type": "string"}}}},
            })
        );
        assert!(schema_of(&documents, &kind("Shared")).unwrap().is_none());
        assert!(schema_of(&documents, &kind("Broken")).is_err());
    }

    #[test]
    fn a_schema_that_explodes_is_refused() {
        let mut schemas = Map::new();
        for level in 0..30 {
            let next = json!({"$ref": format!("{REFERENCE_PREFIX}s{}", level + 1)});
            schemas.insert(format!("s{level}"), json!({"properties": {"a": next, "b": next}}));
        }
        schemas.insert("s30".to_owned(), json!({}));
        schemas["s0"][GROUP_VERSION_KIND] =
            json!([{"group": "example.org", "version": "v1", "kind": "Bomb"}]);
        let document = json!({"components": {"schemas": schemas}});
        assert!(schema_of([&document], &kind("Bomb")).unwrap_err().to_string().contains("too many"));
    }
}
