//! JSON documents seen through their schema: which CEL value a node is, and what of an object rules can see.

use crate::{Additional, ListType, Schema, Type};
use serde_json::Value as Json;
use std::sync::Arc;
use transom_cel::{
    DocumentSchema, EvalError, Identity, Instant, List, Map, Members, Object, Text, Value,
    parse_schema_duration,
};
use transom_go::encoding::base64_decode;
use transom_object::json::go_type;

impl DocumentSchema for Schema {
    fn read<'a>(&'a self, json: &'a Json) -> Result<Value<'a>, EvalError> {
        read(json, self)
    }

    fn members(&self) -> Members<'_> {
        if self.embedded || !self.properties.is_empty() {
            return Members::Properties;
        }
        match &self.additional {
            Additional::Schema(values) => Members::Values(&**values),
            _ => Members::Undescribed,
        }
    }

    fn property(&self, name: &str) -> Option<&dyn DocumentSchema> {
        self.properties.get(name).map(|schema| &**schema as &dyn DocumentSchema)
    }
}

fn invalid<'a>(message: &str) -> Result<Value<'a>, EvalError> {
    Err(EvalError::failed(format!("invalid data, {message}")))
}

/// The CEL value of a node.
fn read<'a>(json: &'a Json, schema: &'a Schema) -> Result<Value<'a>, EvalError> {
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
            Json::Object(map) => Ok(Value::Map(Map::Json(Object::with_schema(map, schema)))),
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
    Ok(Value::List(List::of_document(items, item, identity)))
}

fn read_string<'a>(s: &'a str, format: Option<&str>) -> Result<Value<'a>, EvalError> {
    match format {
        Some("duration") => match parse_schema_duration(s) {
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
        Some("byte") => match base64_decode(s.as_bytes()) {
            Ok(bytes) => Ok(Value::Bytes(Arc::from(bytes))),
            Err(e) => Err(EvalError::failed(format!("Invalid byte formatted string {s}: {e}"))),
        },
        _ => Ok(Value::String(Text::Borrowed(s))),
    }
}
