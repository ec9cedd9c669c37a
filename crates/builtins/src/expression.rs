//! Expressions in CEL over what a function is given. On the wire every number is a double, so it is one here too,
//! whatever our own JSON makes of it.

use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_schema::cel::{CompileError, Key, Map, Text, Value};

/// How much one evaluation may cost: enough for any sensible expression, and over in well under a second.
pub const BUDGET: u64 = 10_000_000;

/// A value of the wire.
pub fn value(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Value::String(Text::Borrowed(text)),
        Json::Array(items) => Value::List(items.iter().map(value).collect::<Vec<_>>().into()),
        Json::Object(fields) => object(fields),
    }
}

fn object(fields: &serde_json::Map<String, Json>) -> Value<'_> {
    let entries: BTreeMap<Key, Value<'_>> =
        fields.iter().map(|(key, field)| (Key::String(Arc::from(key.as_str())), value(field))).collect();
    Value::Map(Map::Owned(Arc::new(entries)))
}

/// What is wrong with an expression, without the words that Kubernetes puts in front.
pub fn issues(error: &CompileError) -> String {
    let text = error.to_string();
    text.strip_prefix("compilation failed: ").map(str::to_owned).unwrap_or(text)
}
