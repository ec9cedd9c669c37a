//! Between `serde_json` and template values. Integers stay `int64`, everything else numeric is `float64`.

use std::fmt;

use super::{Form, Key, List, ListType, MAX_DEPTH, Map, MapType, Value};

/// The value nests deeper than [`MAX_DEPTH`], or contains itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NestedTooDeeply;

impl fmt::Display for NestedTooDeeply {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "value nests deeper than {MAX_DEPTH} levels or contains itself")
    }
}

impl std::error::Error for NestedTooDeeply {}

impl From<&serde_json::Value> for Value {
    fn from(json: &serde_json::Value) -> Value {
        match json {
            serde_json::Value::Null => Value::Nil,
            serde_json::Value::Bool(value) => Value::Bool(*value),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(value) => Value::int64(value),
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            serde_json::Value::String(text) => Value::str(text.as_str()),
            serde_json::Value::Array(items) => {
                Value::List(List::new(ListType::Any, items.iter().map(Value::from).collect()))
            }
            serde_json::Value::Object(entries) => {
                let map = Map::new(MapType::StrAny);
                for (key, value) in entries {
                    map.insert(Key::str(key.as_str()), Value::from(value));
                }
                Value::Map(map)
            }
        }
    }
}

impl From<serde_json::Value> for Value {
    fn from(json: serde_json::Value) -> Value {
        Value::from(&json)
    }
}

impl TryFrom<&Value> for serde_json::Value {
    type Error = NestedTooDeeply;

    fn try_from(value: &Value) -> Result<serde_json::Value, NestedTooDeeply> {
        to_json(value, 0)
    }
}

fn to_json(value: &Value, depth: usize) -> Result<serde_json::Value, NestedTooDeeply> {
    if depth > MAX_DEPTH {
        return Err(NestedTooDeeply);
    }
    Ok(match value {
        Value::Missing | Value::Nil => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(_, value) | Value::Named(_, value) => (*value).into(),
        Value::Uint(_, value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Complex(re, im) => vec![*re, *im].into(),
        Value::Str(text) => text.lossy().into_owned().into(),
        Value::List(list) if list.is_nil() => serde_json::Value::Null,
        Value::List(list) => {
            let items =
                list.items().iter().map(|item| to_json(item, depth + 1)).collect::<Result<Vec<_>, _>>()?;
            items.into()
        }
        Value::Map(map) => {
            let mut object = serde_json::Map::new();
            for (key, value) in map.entries().iter() {
                let key = transom_go::fmt::sprint(&[key.to_value()]);
                object.insert(String::from_utf8_lossy(&key).into_owned(), to_json(value, depth + 1)?);
            }
            object.into()
        }
        Value::Struct(value) if value.form == Form::Instant => value.json_instant().into(),
        Value::Struct(value) => {
            let mut object = serde_json::Map::new();
            for (name, value) in value.json_fields() {
                object.insert(name.to_owned(), to_json(value, depth + 1)?);
            }
            object.into()
        }
        Value::Time(time) => time.format("2006-01-02T15:04:05.999999999Z07:00").into(),
        Value::Version(version) => version.to_string().into(),
    })
}
