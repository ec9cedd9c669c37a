//! Type and object metadata of resources inside a value.

use crate::model::{Additional, Schema};
use crate::trail::Trail;
use serde_json::Value;
use transom_object::field::{self, Path};
use transom_object::meta::validate_embedded_resource;

/// Violations in `apiVersion`, `kind` and `metadata` of embedded resources, and of the root if
/// `is_root_resource`.
pub fn embedded(value: &Value, schema: &Schema, is_root_resource: bool, path: &Path) -> Vec<field::Error> {
    let mut found = Found { base: path, errors: Vec::new() };
    found.value(value, schema, schema.embedded || is_root_resource, &Trail::Root);
    found.errors
}

struct Found<'p> {
    base: &'p Path,
    errors: Vec<field::Error>,
}

impl Found<'_> {
    fn value(&mut self, value: &Value, schema: &Schema, embedded: bool, trail: &Trail<'_>) {
        match value {
            Value::Object(fields) => {
                if embedded {
                    self.errors.extend(validate_embedded_resource(fields, &trail.path(self.base)));
                }
                for (name, value) in fields {
                    match (schema.properties.get(name), &schema.additional) {
                        (Some(child), _) => self.value(value, child, child.embedded, &trail.property(name)),
                        (None, Additional::Schema(child)) => {
                            self.value(value, child, child.embedded, &trail.key(name));
                        }
                        (None, Additional::Bool(_) | Additional::Absent) => {}
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = &schema.items {
                    for (i, item) in items.iter().enumerate() {
                        self.value(item, schema, schema.embedded, &trail.index(i));
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
