//! Values: merged as Helm merges them, and set by paths.

use serde_json::{Map, Value};

/// A `path=value` that cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} {problem}; write it like image.tag=v1.2.0")]
pub struct ValueError {
    text: String,
    problem: &'static str,
}

/// Puts `over` on top: maps are merged, `null` removes, everything else replaces.
pub fn merge(values: &mut Value, over: &Value) {
    match (values, over) {
        (Value::Object(values), Value::Object(over)) => {
            for (key, value) in over {
                if value.is_null() {
                    values.remove(key);
                } else {
                    merge(values.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (values, over) => *values = over.clone(),
    }
}

/// Sets a value by `path=value`. What YAML reads as a number or a truth value is one.
pub fn set(values: &mut Value, text: &str) -> Result<(), ValueError> {
    let wrong = |problem| ValueError { text: text.to_owned(), problem };
    let (path, value) = text.split_once('=').ok_or_else(|| wrong("has no ="))?;
    let mut here = values;
    for name in path.split('.') {
        if name.is_empty() {
            return Err(wrong("has an empty name in its path"));
        }
        if !here.is_object() {
            *here = Value::Object(Map::new());
        }
        let Some(fields) = here.as_object_mut() else { return Err(wrong("cannot be set")) };
        here = fields.entry(name).or_insert(Value::Null);
    }
    *here = transom_object::yaml::read(value).unwrap_or_else(|_| value.into());
    Ok(())
}
