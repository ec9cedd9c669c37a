//! Object metadata of the root and of embedded resources: read into its known fields and written back.

use super::object_meta;
use crate::model::{Additional, Schema};
use crate::trail::Trail;
use serde_json::Value;
use transom_object::field::{self, Path};

/// What to do with a field of the wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MalformedFields {
    /// Requests: an error.
    Refuse,
    /// What is stored already: the field is dropped.
    Drop,
}

/// Coerces `apiVersion`, `kind` and `metadata` of every embedded resource, and of the root if
/// `is_root_resource`. Unknown fields of metadata are dropped and their paths returned, sorted; so are empty
/// fields, as a typed object would not carry them.
pub fn coerce_metadata(
    value: &mut Value,
    schema: &Schema,
    is_root_resource: bool,
    malformed: MalformedFields,
) -> Result<Vec<String>, field::Error> {
    let mut coercion = Coercion { malformed, unknown: Vec::new() };
    coercion.value(value, schema, schema.embedded || is_root_resource, &Trail::Root)?;
    coercion.unknown.sort();
    Ok(coercion.unknown)
}

struct Coercion {
    malformed: MalformedFields,
    unknown: Vec<String>,
}

impl Coercion {
    fn value(
        &mut self,
        value: &mut Value,
        schema: &Schema,
        embedded: bool,
        trail: &Trail<'_>,
    ) -> Result<(), field::Error> {
        match value {
            Value::Object(fields) => {
                if embedded {
                    self.type_meta(fields, trail)?;
                    self.object_meta(fields, trail)?;
                }
                for (name, value) in fields.iter_mut() {
                    match (schema.properties.get(name), &schema.additional) {
                        (Some(child), _) => {
                            self.value(value, child, child.embedded, &trail.property(name))?;
                        }
                        (None, Additional::Schema(child)) => {
                            self.value(value, child, child.embedded, &trail.key(name))?;
                        }
                        (None, Additional::Bool(_) | Additional::Absent) => {}
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = &schema.items {
                    for (i, item) in items.iter_mut().enumerate() {
                        self.value(item, schema, schema.embedded, &trail.index(i))?;
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(())
    }

    fn type_meta(
        &self,
        fields: &mut serde_json::Map<String, Value>,
        trail: &Trail<'_>,
    ) -> Result<(), field::Error> {
        for name in ["apiVersion", "kind"] {
            match (fields.get(name), self.malformed) {
                (None | Some(Value::String(_)), _) => {}
                (Some(_), MalformedFields::Drop) => drop(fields.remove(name)),
                (Some(wrong), MalformedFields::Refuse) => {
                    let path = Path::root().child(&trail.property(name).to_string());
                    return Err(field::Error::invalid(&path, wrong.clone(), "must be a string"));
                }
            }
        }
        Ok(())
    }

    fn object_meta(
        &mut self,
        fields: &mut serde_json::Map<String, Value>,
        trail: &Trail<'_>,
    ) -> Result<(), field::Error> {
        let Some(metadata) = fields.get_mut("metadata") else { return Ok(()) };
        let at = trail.property("metadata");
        match object_meta::coerce(metadata, self.malformed) {
            Ok(unknown) => self.unknown.extend(unknown.iter().map(|field| format!("{at}.{field}"))),
            // Metadata that is no object at all cannot be repaired field by field; it is left to validation.
            Err(_) if self.malformed == MalformedFields::Drop => {}
            Err(problem) => {
                let path = Path::root().child(&at.to_string());
                return Err(field::Error::invalid(&path, metadata.clone(), problem));
            }
        }
        Ok(())
    }
}
