//! JSON documents as CEL values, seen through a schema where there is one. Nothing is copied: values look into the
//! document.
//!
//! Schemas are used only through the trait [`DocumentSchema`].

use super::escaping::{escape, unescape};
use super::value::{EvalError, Identity, Items, List, Map, Text, Value};
use serde_json::Value as Json;
use std::fmt;

/// A schema that documents are read through.
pub trait DocumentSchema: fmt::Debug + Send + Sync {
    /// The CEL value of a node. Fails where the document and the schema do not agree.
    fn read<'a>(&'a self, json: &'a Json) -> Result<Value<'a>, EvalError>;

    /// How the schema describes the members of an object.
    fn members(&self) -> Members<'_>;

    /// The schema of a property, by its unescaped name.
    fn property(&self, name: &str) -> Option<&dyn DocumentSchema>;
}

/// How a schema describes the members of an object.
#[derive(Clone, Copy, Debug)]
pub enum Members<'a> {
    /// Named properties: expressions see these alone, under their escaped names.
    Properties,
    /// The entries of a map, whose values all have this schema.
    Values(&'a dyn DocumentSchema),
    /// Not at all: expressions see none.
    Undescribed,
}

/// A JSON object. With a schema that names properties only those are visible, under their escaped names.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    pub(crate) map: &'a serde_json::Map<String, Json>,
    /// `None`: everything is visible as it is.
    schema: Option<&'a dyn DocumentSchema>,
}

impl<'a> Object<'a> {
    /// An object seen through its schema.
    pub fn with_schema(map: &'a serde_json::Map<String, Json>, schema: &'a dyn DocumentSchema) -> Self {
        Self { map, schema: Some(schema) }
    }

    fn has_properties(&self) -> bool {
        matches!(self.schema.map(|s| s.members()), Some(Members::Properties))
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    /// The schema of a raw key, if rules can see it.
    pub(crate) fn schema_of(&self, key: &str) -> Option<Option<&'a dyn DocumentSchema>> {
        let Some(schema) = self.schema else { return Some(None) };
        match schema.members() {
            Members::Properties => schema.property(key).map(Some),
            Members::Values(values) => Some(Some(values)),
            Members::Undescribed => None,
        }
    }

    pub(crate) fn find(&self, name: &str) -> Result<Option<Value<'a>>, EvalError> {
        let unescaped;
        let properties = self.has_properties();
        let key = if properties {
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
        if value.is_null() && properties {
            return Ok(None);
        }
        match self.schema_of(key) {
            Some(schema) => read(value, schema).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        let escaped = self.has_properties();
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

/// The CEL value of a node, through its schema where it has one.
pub(crate) fn read<'a>(
    json: &'a Json,
    schema: Option<&'a dyn DocumentSchema>,
) -> Result<Value<'a>, EvalError> {
    match schema {
        Some(schema) => schema.read(json),
        None => Ok(dynamic(json)),
    }
}
