//! Bringing a value into the shape of its schema, in the order a request goes through:
//! [`coerce_metadata`], [`prune`], [`drop_nulls`], [`default`].
//!
//! All four change the value in place and walk value and schema together, so their depth is bounded by the
//! value's, which the decoder limits.

mod metadata;

pub use metadata::{MalformedFields, coerce_metadata};

use crate::model::{Additional, Schema};
use crate::trail::Trail;
use serde_json::{Map, Value};

/// The fields every resource has; no schema needs to mention them.
pub(crate) const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes every field the schema does not specify and returns their paths, sorted.
///
/// `x-kubernetes-preserve-unknown-fields` keeps what is below it, but where the schema specifies
/// properties again pruning resumes. `apiVersion`, `kind` and `metadata` are never touched at the root of a
/// resource or at an embedded one.
pub fn prune(value: &mut Value, schema: &Schema, is_root_resource: bool) -> Vec<String> {
    let mut unknown = Vec::new();
    let embedded = schema.embedded || is_root_resource;
    prune_value(value, Some(schema), embedded, &Trail::Root, &mut unknown);
    unknown.sort();
    unknown
}

fn prune_value(
    value: &mut Value,
    schema: Option<&Schema>,
    embedded: bool,
    trail: &Trail<'_>,
    unknown: &mut Vec<String>,
) {
    match value {
        Value::Object(fields) => match schema {
            Some(schema) => prune_fields(fields, schema, embedded, trail, unknown),
            None => {
                unknown.extend(fields.keys().map(|name| trail.property(name).to_string()));
                fields.clear();
            }
        },
        Value::Array(items) => {
            let preserving = schema.is_some_and(|s| s.preserve_unknown);
            let schema = schema.and_then(|s| s.items.as_deref());
            for (i, item) in items.iter_mut().enumerate() {
                let trail = trail.index(i);
                if preserving {
                    prune_preserving(item, schema, &trail, unknown);
                } else {
                    prune_value(item, schema, schema.is_some_and(|s| s.embedded), &trail, unknown);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn prune_fields(
    fields: &mut Map<String, Value>,
    schema: &Schema,
    embedded: bool,
    trail: &Trail<'_>,
    unknown: &mut Vec<String>,
) {
    fields.retain(|name, value| {
        let is_meta = META_FIELDS.contains(&name.as_str());
        if embedded && is_meta {
            return true;
        }
        let child = match (schema.properties.get(name), &schema.additional) {
            (Some(property), _) => Some(&**property),
            (None, Additional::Schema(values)) => Some(&**values),
            // `additionalProperties: true` names no schema for the values: they stay, all below them goes.
            (None, Additional::Bool(_)) => None,
            (None, Additional::Absent) => {
                if !schema.preserve_unknown && (!is_meta || !trail.is_root()) {
                    unknown.push(trail.property(name).to_string());
                }
                return schema.preserve_unknown;
            }
        };
        prune_value(value, child, child.is_some_and(|s| s.embedded), &trail.property(name), unknown);
        true
    });
}

/// Items of a preserving list preserve too, whatever their own schema.
fn prune_preserving(
    value: &mut Value,
    schema: Option<&Schema>,
    trail: &Trail<'_>,
    unknown: &mut Vec<String>,
) {
    let Some(schema) = schema else { return };
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if schema.embedded && META_FIELDS.contains(&name.as_str()) {
                    continue;
                }
                let child = match (schema.properties.get(name), &schema.additional) {
                    (Some(property), _) => Some(&**property),
                    (None, Additional::Schema(values)) => Some(&**values),
                    (None, Additional::Bool(_)) => None,
                    (None, Additional::Absent) => continue,
                };
                prune_value(value, child, child.is_some_and(|s| s.embedded), &trail.property(name), unknown);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                prune_preserving(item, schema.items.as_deref(), &trail.index(i), unknown);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes fields that are `null` although the schema neither allows that nor has a default to put there.
/// A `null` whose field has a default stays for [`default`] to replace.
pub fn drop_nulls(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| match schema.property(name) {
            Some(child) if value.is_null() => child.nullable || child.default.is_some(),
            Some(child) => {
                drop_nulls(value, child);
                true
            }
            None => true,
        }),
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| drop_nulls(item, schema));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Fills in defaults, top down: a default that is an object is itself defaulted further.
pub fn default(value: &mut Value, schema: &Schema) {
    if schema.defaults_free {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                if let Some(default) = &property.default {
                    match fields.get_mut(name) {
                        Some(present) => replace_null(present, property),
                        None => drop(fields.insert(name.clone(), default.clone())),
                    }
                }
            }
            for (name, value) in fields.iter_mut() {
                if let Some(child) = schema.property(name) {
                    replace_null(value, child);
                    self::default(value, child);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    replace_null(item, schema);
                    self::default(item, schema);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn replace_null(value: &mut Value, schema: &Schema) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
}
