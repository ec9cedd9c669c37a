//! Declarations from schemas: which CEL type a schema node has, and how large its values can get.
//!
//! A node that has no CEL type (no `type`, or preserved unknown data) is invisible to rules.

use super::escaping::escape;
use super::types::{Object, Type};
use crate::{Additional, Schema};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The largest request an API server takes, from which sizes without other bound are derived.
pub(crate) const MAX_REQUEST_BYTES: i64 = 3 * 1024 * 1024;

/// A declared type with the bounds that cost estimation needs.
#[derive(Debug)]
pub(crate) struct Decl {
    pub ty: Type,
    /// The most elements, code points or entries a value can have; zero where that has no meaning.
    pub max_elements: i64,
    /// The least bytes a value takes in JSON.
    pub min_size: i64,
    pub shape: Shape,
}

#[derive(Debug)]
pub(crate) enum Shape {
    Scalar,
    List(Arc<Decl>),
    Map(Arc<Decl>),
    Object(BTreeMap<String, Arc<Decl>>),
}

impl Decl {
    fn scalar(ty: Type, max_elements: i64, min_size: i64) -> Option<Arc<Self>> {
        Some(Arc::new(Self { ty, max_elements, min_size, shape: Shape::Scalar }))
    }

    /// Follows one step of a path as the cost estimator names it.
    pub(crate) fn step(&self, name: &str) -> Option<Arc<Decl>> {
        match (&self.shape, name) {
            (Shape::List(item), "@items" | "@values") | (Shape::Map(item), "@items" | "@values") => {
                Some(item.clone())
            }
            (Shape::Map(_), "@keys") => Self::scalar(Type::String, 0, 2),
            (Shape::Object(fields), name) => fields.get(name).cloned(),
            _ => None,
        }
    }

    /// How many values of this size fit into one request.
    pub(crate) fn max_cardinality(&self) -> u64 {
        u64::try_from(MAX_REQUEST_BYTES / (self.min_size + 1)).unwrap_or(0)
    }
}

/// The declaration of a schema node. `name` names its object types.
pub(crate) fn declare(schema: &Schema, name: &str) -> Option<Arc<Decl>> {
    let checks = &schema.checks;
    if schema.int_or_string {
        let max = checks.max_length.map_or(MAX_REQUEST_BYTES - 2, |n| n.max(0).saturating_mul(4));
        return Decl::scalar(Type::Dyn, max, 1);
    }
    match schema.ty {
        crate::Type::Array => {
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
        crate::Type::Object => declare_object(schema, name),
        crate::Type::String => declare_string(schema),
        crate::Type::Boolean => Decl::scalar(Type::Bool, 0, 4),
        crate::Type::Number => Decl::scalar(Type::Double, 0, 1),
        crate::Type::Integer => Decl::scalar(Type::Int, 0, 1),
        crate::Type::Any => None,
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
    let ty = Type::Object(Arc::new(Object { name: name.to_owned(), fields: types }));
    Some(Arc::new(Decl { ty, max_elements: 0, min_size, shape: Shape::Object(fields) }))
}

fn declare_string(schema: &Schema) -> Option<Arc<Decl>> {
    let checks = &schema.checks;
    match schema.format.as_deref() {
        Some("byte") => {
            Decl::scalar(Type::Bytes, checks.max_length.map_or(MAX_REQUEST_BYTES - 2, |n| n.max(0)), 2)
        }
        Some("duration") => Decl::scalar(Type::Duration, 32, 3),
        Some("date") => Decl::scalar(Type::Timestamp, 12, 12),
        Some("date-time") => Decl::scalar(Type::Timestamp, 32, 21),
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
            Decl::scalar(Type::String, max, 2)
        }
    }
}

const NAME_MAX_LENGTH: i64 = 253;

/// The schema as rules see it: resource roots (the object itself, and embedded resources) always have
/// `apiVersion`, `kind`, `metadata.name` and `metadata.generateName`, and of metadata nothing else.
pub(crate) fn as_seen_by_rules(schema: &Schema, root: bool) -> Schema {
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
    is(schema, "kind", crate::Type::String)
        && is(schema, "apiVersion", crate::Type::String)
        && is(schema, "metadata", crate::Type::Object)
        && schema
            .properties
            .get("metadata")
            .is_some_and(|m| is(m, "name", crate::Type::String) && is(m, "generateName", crate::Type::String))
}

fn add_object_meta(schema: &mut Schema) {
    let string = |max_length| {
        let mut s = Schema { ty: crate::Type::String, ..Schema::default() };
        s.checks.max_length = max_length;
        Arc::new(s)
    };
    let given = schema.properties.get("metadata").cloned();
    let capped = |name: &str, max: i64| {
        let own = given.as_ref().and_then(|m| m.properties.get(name)?.checks.max_length);
        string(Some(own.map_or(max, |n| n.min(max))))
    };
    let mut metadata = Schema { ty: crate::Type::Object, ..Schema::default() };
    metadata.properties.insert("name".to_owned(), capped("name", NAME_MAX_LENGTH));
    metadata.properties.insert("generateName".to_owned(), capped("generateName", NAME_MAX_LENGTH - 1));
    schema.properties.insert("metadata".to_owned(), Arc::new(metadata));
    schema.properties.insert("kind".to_owned(), string(None));
    schema.properties.insert("apiVersion".to_owned(), string(None));
}
