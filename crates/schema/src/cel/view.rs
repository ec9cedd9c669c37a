//! JSON documents seen through their schema: which CEL value a node is, and what of an object rules can see.

use super::escaping::{escape, unescape};
use super::time::{self, Instant};
use super::value::{EvalError, Identity, Items, List, Map, Text, Value};
use crate::{Additional, ListType, Schema, Type};
use base64::alphabet;
use base64::engine::{Engine as _, GeneralPurpose, general_purpose};
use serde_json::Value as Json;
use std::sync::Arc;
use transom_object::json::go_type;

/// A JSON object. With a schema that names properties only those are visible, under their escaped names.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    pub(crate) map: &'a serde_json::Map<String, Json>,
    pub(crate) schema: Option<&'a Schema>,
}

/// How a schema describes the members of an object.
enum Members<'a> {
    /// No schema: everything is visible as it is.
    Dynamic,
    Properties(&'a Schema),
    Values(&'a Schema),
    Nothing,
}

impl<'a> Object<'a> {
    fn members(&self) -> Members<'a> {
        let Some(schema) = self.schema else { return Members::Dynamic };
        if schema.embedded || !schema.properties.is_empty() {
            return Members::Properties(schema);
        }
        match &schema.additional {
            Additional::Schema(values) => Members::Values(values),
            _ => Members::Nothing,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    /// The schema of a raw key, if rules can see it.
    pub(crate) fn schema_of(&self, key: &str) -> Option<Option<&'a Schema>> {
        match self.members() {
            Members::Dynamic => Some(None),
            Members::Properties(schema) => schema.properties.get(key).map(|s| Some(&**s)),
            Members::Values(schema) => Some(Some(schema)),
            Members::Nothing => None,
        }
    }

    pub(crate) fn find(&self, name: &str) -> Result<Option<Value<'a>>, EvalError> {
        let unescaped;
        let members = self.members();
        let key = if matches!(members, Members::Properties(_)) {
            match unescape(name) {
                Some(key) => {
                    unescaped = key;
                    unescaped.as_str()
                }
                None => return Ok(None),
            }
        } else {
            name
        };
        let Some(value) = self.map.get(key) else { return Ok(None) };
        // A null property is an absent one; a null entry of a map is an entry.
        if value.is_null() && matches!(members, Members::Properties(_)) {
            return Ok(None);
        }
        match self.schema_of(key) {
            Some(schema) => read(value, schema).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        let escaped = matches!(self.members(), Members::Properties(_));
        let visible =
            self.map.iter().filter(|(k, v)| self.schema_of(k).is_some() && !(escaped && v.is_null()));
        visible
            .map(|(key, _)| match escape(key).filter(|e| escaped && e != key) {
                Some(name) => Value::text(name),
                None => Value::String(Text::Borrowed(key)),
            })
            .collect()
    }
}

/// A document without a schema.
pub(crate) fn dynamic(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(b) => Value::Bool(*b),
        Json::Number(n) => match n.as_i64() {
            Some(i) => Value::Int(i),
            None => Value::Double(n.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(s) => Value::String(Text::Borrowed(s)),
        Json::Array(items) => {
            Value::List(List { items: Items::Json(items, None), identity: Identity::Position })
        }
        Json::Object(map) => Value::Map(Map::Json(Object { map, schema: None })),
    }
}

fn invalid<'a>(message: &str) -> Result<Value<'a>, EvalError> {
    Err(EvalError::failed(format!("invalid data, {message}")))
}

/// The CEL value of a node.
pub(crate) fn read<'a>(json: &'a Json, schema: Option<&'a Schema>) -> Result<Value<'a>, EvalError> {
    let Some(schema) = schema else { return Ok(dynamic(json)) };
    if json.is_null() {
        return if schema.nullable {
            Ok(Value::Null)
        } else {
            invalid("got null for schema with nullable=false")
        };
    }
    if schema.int_or_string {
        return match json {
            Json::String(s) => Ok(Value::String(Text::Borrowed(s))),
            Json::Number(n) if n.is_i64() => Ok(Value::Int(n.as_i64().unwrap_or_default())),
            _ => invalid("expected XIntOrString value to be either a string or integer"),
        };
    }
    match schema.ty {
        Type::Object => match json {
            Json::Object(map) => Ok(Value::Map(Map::Json(Object { map, schema: Some(schema) }))),
            _ => invalid("expected a map for the provided schema with type=object"),
        },
        Type::Array => read_list(json, schema),
        Type::String => match json {
            Json::String(s) => read_string(s, schema.format.as_deref()),
            other => invalid(&format!("expected string, got {}", go_type(other))),
        },
        Type::Number => match json {
            Json::Number(n) => Ok(Value::Double(n.as_f64().unwrap_or(f64::NAN))),
            other => invalid(&format!("expected float, got {}", go_type(other))),
        },
        Type::Integer => match json.as_i64() {
            Some(n) => Ok(Value::Int(n)),
            None => invalid(&format!("expected int, got {}", go_type(json))),
        },
        Type::Boolean => match json {
            Json::Bool(b) => Ok(Value::Bool(*b)),
            other => invalid(&format!("expected bool, got {}", go_type(other))),
        },
        Type::Any if schema.preserve_unknown => Ok(Value::Preserved(json)),
        Type::Any => Err(EvalError::failed(
            "invalid type, expected object, array, number, integer, boolean or string, or no type with \
             x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got ",
        )),
    }
}

fn read_list<'a>(json: &'a Json, schema: &'a Schema) -> Result<Value<'a>, EvalError> {
    let Json::Array(items) = json else {
        return invalid("expected an array for the provided schema with type=array");
    };
    let Some(item) = schema.items.as_deref() else {
        return Err(EvalError::failed("invalid array type, expected Items with a non-empty Schema"));
    };
    let identity = match &schema.list_type {
        Some(ListType::Set) => Identity::Value,
        Some(ListType::Map(keys)) => Identity::Keys(keys),
        Some(ListType::Atomic) | None => Identity::Position,
    };
    Ok(Value::List(List { items: Items::Json(items, Some(item)), identity }))
}

/// Base64 as Go reads it: bits of the last symbol that stand for nothing and line breaks are skipped.
fn decode(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    const LENIENT: GeneralPurpose =
        GeneralPurpose::new(&alphabet::STANDARD, general_purpose::PAD.with_decode_allow_trailing_bits(true));
    LENIENT.decode(text.replace(['\r', '\n'], ""))
}

fn read_string<'a>(s: &'a str, format: Option<&str>) -> Result<Value<'a>, EvalError> {
    match format {
        Some("duration") => match time::parse_schema_duration(s) {
            Some(nanos) => Ok(Value::Duration(nanos)),
            None => Err(EvalError::failed(format!("Invalid duration {s}: unable to parse {s} as duration"))),
        },
        Some("date") => match Instant::parse_date(s) {
            Some(t) => Ok(Value::Timestamp(t)),
            None => Err(EvalError::failed(format!("Invalid date formatted string {s}"))),
        },
        Some("date-time") => match Instant::parse_lenient(s) {
            Some(t) => Ok(Value::Timestamp(t)),
            None => Err(EvalError::failed(format!("Invalid date-time formatted string {s}"))),
        },
        Some("byte") => match decode(s) {
            Ok(bytes) => Ok(Value::Bytes(Arc::from(bytes))),
            Err(e) => Err(EvalError::failed(format!("Invalid byte formatted string {s}: {e}"))),
        },
        _ => Ok(Value::String(Text::Borrowed(s))),
    }
}
