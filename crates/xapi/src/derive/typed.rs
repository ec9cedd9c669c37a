//! A user's schema as Kubernetes' types hold it: unknown fields dropped, empty ones left out, others of the right type.
//!
//! So the derived CRD is exactly what the API server would store of it, and comparing the two means something.

use serde_json::{Map, Value};
use transom_object::json::{is_empty, kind_of};

/// How a field is typed in Go.
#[derive(Clone, Copy)]
enum Shape {
    /// A text that is left out when empty.
    Text,
    /// A pointer to a text.
    OptionalText,
    /// A flag that is left out when false.
    Flag,
    OptionalFlag,
    Integer,
    Number,
    /// Any value.
    Any,
    AnyList,
    Texts,
    Schema,
    Schemas,
    SchemaMap,
    SchemaOrList,
    SchemaOrFlag,
    /// Schemas or lists of texts by name.
    Dependencies,
    Rules,
    Docs,
}

fn shape(field: &str) -> Option<Shape> {
    Some(match field {
        "id" | "$schema" | "description" | "type" | "format" | "title" | "pattern" => Shape::Text,
        "$ref" | "x-kubernetes-list-type" | "x-kubernetes-map-type" => Shape::OptionalText,
        "exclusiveMaximum" | "exclusiveMinimum" | "uniqueItems" | "nullable" => Shape::Flag,
        "x-kubernetes-embedded-resource" | "x-kubernetes-int-or-string" => Shape::Flag,
        "x-kubernetes-preserve-unknown-fields" => Shape::OptionalFlag,
        "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties" => {
            Shape::Integer
        }
        "maximum" | "minimum" | "multipleOf" => Shape::Number,
        "default" | "example" => Shape::Any,
        "enum" => Shape::AnyList,
        "required" | "x-kubernetes-list-map-keys" => Shape::Texts,
        "not" => Shape::Schema,
        "allOf" | "anyOf" | "oneOf" => Shape::Schemas,
        "properties" | "patternProperties" | "definitions" => Shape::SchemaMap,
        "items" => Shape::SchemaOrList,
        "additionalProperties" | "additionalItems" => Shape::SchemaOrFlag,
        "dependencies" => Shape::Dependencies,
        "x-kubernetes-validations" => Shape::Rules,
        "externalDocs" => Shape::Docs,
        _ => return None,
    })
}

/// Reads a schema; the error names the field that does not fit.
pub(super) fn schema(value: &Value) -> Result<Map<String, Value>, String> {
    object_schema(value, "")
}

fn misfit(value: &Value, path: &str, go_type: &str) -> String {
    let field =
        if path.is_empty() { "JSONSchemaProps".to_owned() } else { format!("JSONSchemaProps.{path}") };
    let what = if path.is_empty() { "Go value".to_owned() } else { format!("Go struct field {field}") };
    format!("json: cannot unmarshal {} into {what} of type {go_type}", kind_of(value))
}

fn object_schema(value: &Value, path: &str) -> Result<Map<String, Value>, String> {
    let Some(fields) = value.as_object() else {
        if value.is_null() {
            return Ok(Map::new());
        }
        return Err(misfit(value, path, "v1.JSONSchemaProps"));
    };
    let mut out = Map::new();
    for (name, value) in fields {
        let Some(shape) = shape(name).filter(|_| !value.is_null()) else { continue };
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if let Some(value) = read(shape, value, &path)? {
            out.insert(name.clone(), value);
        }
    }
    Ok(out)
}

/// `None` for what Go would leave out.
fn read(shape: Shape, value: &Value, path: &str) -> Result<Option<Value>, String> {
    let keep = |fits: bool, go_type: &str| {
        if fits { Ok(Some(value.clone())) } else { Err(misfit(value, path, go_type)) }
    };
    let non_empty = |value: Value| Some(value).filter(|v| !is_empty(v));
    Ok(match shape {
        Shape::Text => keep(value.is_string(), "string")?.and_then(non_empty),
        Shape::OptionalText => keep(value.is_string(), "string")?,
        Shape::Flag => keep(value.is_boolean(), "bool")?.and_then(non_empty),
        Shape::OptionalFlag => keep(value.is_boolean(), "bool")?,
        Shape::Integer => keep(value.is_i64(), "int64")?,
        Shape::Number => keep(value.is_number(), "float64")?,
        Shape::Any => Some(value.clone()),
        Shape::AnyList => keep(value.is_array(), "[]v1.JSON")?.and_then(non_empty),
        Shape::Texts => keep(is_text_list(value), "[]string")?.and_then(non_empty),
        Shape::Schema => Some(object_schema(value, path)?.into()),
        Shape::Schemas => non_empty(schema_list(value, path)?),
        Shape::SchemaMap => {
            non_empty(schema_map(value, path, |v, p| object_schema(v, p).map(Value::Object))?)
        }
        Shape::SchemaOrList if value.is_array() => Some(schema_list(value, path)?),
        Shape::SchemaOrList => Some(object_schema(value, path)?.into()),
        Shape::SchemaOrFlag if value.is_boolean() => Some(value.clone()),
        Shape::SchemaOrFlag => Some(object_schema(value, path)?.into()),
        Shape::Dependencies => non_empty(schema_map(value, path, dependency)?),
        Shape::Rules => non_empty(rules(value, path)?),
        Shape::Docs => {
            Some(texts_of(value, path, "v1.ExternalDocumentation", &["description", "url"])?.into())
        }
    })
}

fn is_text_list(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(Value::is_string))
}

fn schema_list(value: &Value, path: &str) -> Result<Value, String> {
    let list = value.as_array().ok_or_else(|| misfit(value, path, "[]v1.JSONSchemaProps"))?;
    list.iter().map(|v| object_schema(v, path).map(Value::Object)).collect()
}

fn schema_map(
    value: &Value,
    path: &str,
    read: impl Fn(&Value, &str) -> Result<Value, String>,
) -> Result<Value, String> {
    let map = value.as_object().ok_or_else(|| misfit(value, path, "map[string]v1.JSONSchemaProps"))?;
    map.iter().map(|(name, value)| Ok((name.clone(), read(value, &format!("{path}.{name}"))?))).collect()
}

fn dependency(value: &Value, path: &str) -> Result<Value, String> {
    if is_text_list(value) { Ok(value.clone()) } else { object_schema(value, path).map(Value::Object) }
}

fn texts_of(value: &Value, path: &str, go_type: &str, fields: &[&str]) -> Result<Map<String, Value>, String> {
    let map = value.as_object().ok_or_else(|| misfit(value, path, go_type))?;
    let mut out = Map::new();
    for field in fields {
        match map.get(*field) {
            None | Some(Value::Null) => {}
            Some(text @ Value::String(s)) if !s.is_empty() => {
                drop(out.insert((*field).to_owned(), text.clone()));
            }
            Some(Value::String(_)) => {}
            Some(other) => return Err(misfit(other, &format!("{path}.{field}"), "string")),
        }
    }
    Ok(out)
}

fn rules(value: &Value, path: &str) -> Result<Value, String> {
    const TEXTS: &[&str] = &["rule", "message", "messageExpression", "reason", "fieldPath"];
    let list = value.as_array().ok_or_else(|| misfit(value, path, "v1.ValidationRules"))?;
    let read = |rule: &Value| {
        let mut out = texts_of(rule, path, "v1.ValidationRule", TEXTS)?;
        out.entry("rule").or_insert_with(|| "".into());
        match rule.get("optionalOldSelf") {
            None | Some(Value::Null) => {}
            Some(flag @ Value::Bool(_)) => drop(out.insert("optionalOldSelf".to_owned(), flag.clone())),
            Some(other) => return Err(misfit(other, &format!("{path}.optionalOldSelf"), "bool")),
        }
        Ok(Value::Object(out))
    };
    list.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_and_empty_fields_go_and_zeros_that_mean_something_stay() {
        let user = json!({
            "type": "object", "description": "", "nullable": false, "x-unknown": 1, "required": [],
            "properties": {
                "a": {"type": "integer", "minimum": 0, "default": 0, "enum": [0]},
                "b": {"additionalProperties": false, "x-kubernetes-preserve-unknown-fields": false},
                "c": null,
                "d": {"type": "array", "items": [{"type": "string", "bogus": true}], "maxItems": 0},
            },
        });
        let kept = json!({
            "type": "object",
            "properties": {
                "a": {"type": "integer", "minimum": 0, "default": 0, "enum": [0]},
                "b": {"additionalProperties": false, "x-kubernetes-preserve-unknown-fields": false},
                "c": {},
                "d": {"type": "array", "items": [{"type": "string"}], "maxItems": 0},
            },
        });
        assert_eq!(Value::Object(schema(&user).unwrap()), kept);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (user, problem) in [
            (json!("x"), "json: cannot unmarshal string into Go value of type v1.JSONSchemaProps"),
            (
                json!({"properties": {"spec": {"type": 5}}}),
                "json: cannot unmarshal number into Go struct field JSONSchemaProps.properties.spec.type of type string",
            ),
            (
                json!({"properties": []}),
                "json: cannot unmarshal array into Go struct field JSONSchemaProps.properties of type \
                 map[string]v1.JSONSchemaProps",
            ),
            (
                json!({"required": [1]}),
                "json: cannot unmarshal array into Go struct field JSONSchemaProps.required of type []string",
            ),
        ] {
            assert_eq!(schema(&user).unwrap_err(), problem);
        }
    }
}
