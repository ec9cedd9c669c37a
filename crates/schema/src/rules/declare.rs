//! Declarations from schemas: which CEL type a schema node has, and how large its values can get.
//!
//! A node that has no CEL type (no `type`, or preserved unknown data) is invisible to rules.

use crate::{Additional, Schema, Type as JsonType};
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_cel::{Decl, MAX_REQUEST_BYTES, ObjectType, Shape, Type, escape};

/// The declaration of a schema node, `None` when it has no CEL type. `name` is the prefix of the names of its object types.
pub fn declare(schema: &Schema, name: &str) -> Option<Arc<Decl>> {
    let checks = &schema.checks;
    if schema.int_or_string {
        let max = checks.max_length.map_or(MAX_REQUEST_BYTES - 2, |n| n.max(0).saturating_mul(4));
        return Some(Decl::scalar(Type::Dyn, max, 1));
    }
    match schema.ty {
        JsonType::Array => {
            let item = declare(schema.items.as_deref()?, &format!("{name}.@idx"))?;
            let fits = (MAX_REQUEST_BYTES - 2) / (item.min_size + 1);
            let max_elements = checks.max_items.map_or(fits, |n| n.max(0));
            Some(Arc::new(Decl {
                ty: Type::list(item.ty.clone()),
                max_elements,
                min_size: 2,
                shape: Shape::List(item),
            }))
        }
        JsonType::Object => declare_object(schema, name),
        JsonType::String => declare_string(schema),
        JsonType::Boolean => Some(Decl::scalar(Type::Bool, 0, 4)),
        JsonType::Number => Some(Decl::scalar(Type::Double, 0, 1)),
        JsonType::Integer => Some(Decl::scalar(Type::Int, 0, 1)),
        JsonType::Any => None,
    }
}

fn declare_object(schema: &Schema, name: &str) -> Option<Arc<Decl>> {
    if let Additional::Schema(values) = &schema.additional {
        let value = declare(values, &format!("{name}.@elem"))?;
        let fits = (MAX_REQUEST_BYTES - 2) / (value.min_size + 6);
        let max_elements = schema.checks.max_properties.map_or(fits, |n| n.max(0));
        return Some(Arc::new(Decl {
            ty: Type::map(Type::String, value.ty.clone()),
            max_elements,
            min_size: 2,
            shape: Shape::Map(value),
        }));
    }
    let mut fields = BTreeMap::new();
    let mut min_size = 2;
    for (key, property) in &schema.properties {
        let escaped = escape(key);
        let Some(decl) = declare(property, &format!("{name}.{}", escaped.as_deref().unwrap_or(key))) else {
            continue;
        };
        if schema.checks.required.contains(key) && property.default.is_none() {
            min_size += i64::try_from(key.len()).unwrap_or(i64::MAX) + decl.min_size + 4;
        }
        if let Some(escaped) = escaped {
            fields.insert(escaped, decl);
        }
    }
    let types = fields.iter().map(|(k, d)| (k.clone(), d.ty.clone())).collect();
    let ty = Type::Object(Arc::new(ObjectType { name: name.to_owned(), fields: types }));
    Some(Arc::new(Decl { ty, max_elements: 0, min_size, shape: Shape::Object(fields) }))
}

fn declare_string(schema: &Schema) -> Option<Arc<Decl>> {
    let checks = &schema.checks;
    match schema.format.as_deref() {
        Some("byte") => {
            let max = checks.max_length.map_or(MAX_REQUEST_BYTES - 2, |n| n.max(0));
            Some(Decl::scalar(Type::Bytes, max, 2))
        }
        Some("duration") => Some(Decl::scalar(Type::Duration, 32, 3)),
        Some("date") => Some(Decl::scalar(Type::Timestamp, 12, 12)),
        Some("date-time") => Some(Decl::scalar(Type::Timestamp, 32, 21)),
        _ => {
            let longest = checks
                .enumeration
                .as_ref()
                .filter(|e| !e.is_empty())
                .map(|values| values.iter().filter_map(|v| v.as_str()).map(str::len).max().unwrap_or(0));
            let max = match (checks.max_length, longest) {
                // A code point takes up to four bytes.
                (Some(n), _) => n.max(0).saturating_mul(4),
                (None, Some(longest)) => i64::try_from(longest).unwrap_or(i64::MAX),
                (None, None) => MAX_REQUEST_BYTES - 2,
            };
            Some(Decl::scalar(Type::String, max, 2))
        }
    }
}

const NAME_MAX_LENGTH: i64 = 253;

/// The schema as rules see it: resource roots (the object itself, and embedded resources) always have
/// `apiVersion`, `kind`, `metadata.name` and `metadata.generateName`, and of metadata nothing else.
pub(super) fn as_seen_by_rules(schema: &Schema, root: bool) -> Schema {
    let mut seen = schema.clone();
    let child = |s: &Arc<Schema>| Arc::new(as_seen_by_rules(s, s.embedded));
    seen.properties = schema.properties.iter().map(|(k, s)| (k.clone(), child(s))).collect();
    seen.items = schema.items.as_ref().map(child);
    if let Additional::Schema(values) = &schema.additional {
        seen.additional = Additional::Schema(child(values));
    }
    if root && !has_object_meta(schema) {
        add_object_meta(&mut seen);
    }
    seen
}

fn has_object_meta(schema: &Schema) -> bool {
    let is = |s: &Schema, name: &str, ty| s.properties.get(name).is_some_and(|p| p.ty == ty);
    is(schema, "kind", JsonType::String)
        && is(schema, "apiVersion", JsonType::String)
        && is(schema, "metadata", JsonType::Object)
        && schema
            .properties
            .get("metadata")
            .is_some_and(|m| is(m, "name", JsonType::String) && is(m, "generateName", JsonType::String))
}

fn add_object_meta(schema: &mut Schema) {
    let string = |max_length| {
        let mut s = Schema { ty: JsonType::String, ..Schema::default() };
        s.checks.max_length = max_length;
        Arc::new(s)
    };
    let given = schema.properties.get("metadata").cloned();
    let capped = |name: &str, max: i64| {
        let own = given.as_ref().and_then(|m| m.properties.get(name)?.checks.max_length);
        string(Some(own.map_or(max, |n| n.min(max))))
    };
    let mut metadata = Schema { ty: JsonType::Object, ..Schema::default() };
    metadata.properties.insert("name".to_owned(), capped("name", NAME_MAX_LENGTH));
    metadata.properties.insert("generateName".to_owned(), capped("generateName", NAME_MAX_LENGTH - 1));
    schema.properties.insert("metadata".to_owned(), Arc::new(metadata));
    schema.properties.insert("kind".to_owned(), string(None));
    schema.properties.insert("apiVersion".to_owned(), string(None));
}
