//! Object metadata of the root and of embedded resources: read into its known fields and written back.

use crate::model::{Additional, Schema};
use crate::trail::Trail;
use serde_json::Value;
use transom_object::field::{self, Path};
use transom_object::meta::{self, CoerceOptions};

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
    let options = CoerceOptions { drop_malformed: malformed == MalformedFields::Drop };
    let mut coercion = Coercion { options, unknown: Vec::new() };
    coercion.value(value, schema, schema.embedded || is_root_resource, &Trail::Root)?;
    coercion.unknown.sort();
    Ok(coercion.unknown)
}

struct Coercion {
    options: CoerceOptions,
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
                    self.unknown.extend(meta::coerce(fields, &trail.path(&Path::root()), self.options)?);
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
}
