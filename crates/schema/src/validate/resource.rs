//! Type and object metadata of resources inside a value.

use crate::model::{Additional, Schema};
use crate::normalize::object_meta_problem;
use crate::trail::Trail;
use serde_json::{Map, Value};
use transom_object::GroupVersion;
use transom_object::field::{self, Path};

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
                    self.resource(fields, trail);
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

    fn resource(&mut self, fields: &Map<String, Value>, trail: &Trail<'_>) {
        for name in ["apiVersion", "kind"] {
            let Some(value) = fields.get(name) else {
                self.errors.push(field::Error::required(&self.path(trail, name), ""));
                continue;
            };
            let problem = match value {
                Value::String(text) if text.is_empty() => Some("must not be empty".to_owned()),
                Value::String(text) if name == "kind" => kind_problem(text),
                Value::String(text) if GroupVersion::parse(text).is_some() => None,
                Value::String(text) => Some(format!("unexpected GroupVersion string: {text}")),
                _ => Some("must be a string".to_owned()),
            };
            if let Some(problem) = problem {
                self.errors.push(field::Error::invalid(&self.path(trail, name), value.clone(), problem));
            }
        }
        if let Some(metadata) = fields.get("metadata")
            && let Some(problem) = object_meta_problem(metadata)
        {
            self.errors.push(field::Error::invalid(&self.path(trail, "metadata"), metadata.clone(), problem));
        }
    }

    fn path(&self, trail: &Trail<'_>, name: &str) -> Path {
        self.base.child(&trail.property(name).to_string())
    }
}

/// A kind in lower case is a DNS label that starts with a letter.
fn kind_problem(kind: &str) -> Option<String> {
    let lower = kind.to_lowercase();
    let bytes = lower.as_bytes();
    let shaped = bytes.len() <= 63
        && bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.last().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-');
    (!shaped).then(|| "may have mixed case, but should otherwise match: a DNS-1035 label".to_owned())
}
