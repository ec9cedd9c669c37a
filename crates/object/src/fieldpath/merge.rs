//! Setting a value by merging it with the one that is there.
//!
//! | options | objects | scalars | arrays |
//! |---|---|---|---|
//! | none | replaced | replaced | replaced |
//! | neither set | merged | the new one | the new one |
//! | keep | merged | the old one, unless empty | the old one, unless empty |
//! | append | merged | the new one | appended |
//! | keep and append | merged | the old one, unless empty | appended |
//!
//! *Empty* is null, `""`, 0, `false`, `{}` and `[]`. Appending at the path itself leaves out elements that are
//! there already; appending below it does not.

use super::Error;
use super::paved::{get, set};
use crate::json::{go_type, is_empty};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// How a value merges with the one at its path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeOptions {
    /// Keep values that are there.
    pub keep_map_values: bool,
    /// Append to arrays instead of replacing them.
    pub append_slice: bool,
}

/// Merges a value into an object at a path; without options it replaces what is there.
pub fn merge(root: &mut Value, path: &str, value: Value, options: Option<MergeOptions>) -> Result<(), Error> {
    let Some(options) = options else { return set(root, path, value) };
    let existing = match get(root, path) {
        Ok(existing) => existing.clone(),
        Err(error) if error.is_not_found() => Value::Null,
        Err(error) => return Err(error),
    };
    let merged = merge_values(existing, value, options)
        .map_err(|message| Error::new(message).context("failed to merge values"))?;
    set(root, path, merged)
}

fn merge_values(existing: Value, value: Value, options: MergeOptions) -> Result<Value, String> {
    let value = match (&existing, value) {
        (_, Value::Null) => return Ok(Value::Null),
        (Value::Null, value) => return Ok(value),
        (Value::Array(old), Value::Array(new)) if options.append_slice => {
            // By text, in which 1 and 1.0 differ as they do in Go, and which can be hashed.
            let known: HashSet<String> = old.iter().map(Value::to_string).collect();
            Value::Array(new.into_iter().filter(|item| !known.contains(&item.to_string())).collect())
        }
        (_, value) => value,
    };
    merge_value(existing, value, options)
}

fn merge_value(existing: Value, value: Value, options: MergeOptions) -> Result<Value, String> {
    match (existing, value) {
        (Value::Object(old), Value::Object(new)) => merge_objects(old, new, options).map(Value::Object),
        (Value::Array(mut old), Value::Array(new)) if options.append_slice => {
            old.extend(new);
            Ok(Value::Array(old))
        }
        (Value::Null, new @ Value::Array(_)) => Ok(new),
        (old, Value::Array(_)) if options.append_slice => {
            Err(format!("cannot append two slices with different type ([]interface {{}}, {})", go_type(&old)))
        }
        (old, new) if options.keep_map_values && (new.is_null() || !is_empty(&old)) => Ok(old),
        (_, new) => Ok(new),
    }
}

fn merge_objects(
    mut old: Map<String, Value>,
    new: Map<String, Value>,
    options: MergeOptions,
) -> Result<Map<String, Value>, String> {
    for (key, value) in new {
        let merged = match old.remove(&key) {
            Some(existing) => merge_value(existing, value, options)?,
            None => value,
        };
        old.insert(key, merged);
    }
    Ok(old)
}
