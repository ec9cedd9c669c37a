//! The schema in a definition of the design, as today's definitions have it.
//!
//! In its examples the schema is that of the spec alone: `properties` lists the fields of `spec`. A schema of the whole object,
//! whose properties are `spec` and perhaps `status`, is taken as it is.

use super::catalogue::Role;
use super::field::Field;
use super::notes::{Difference, Notes, Problem};
use super::part::Part;
use crate::derive;
use serde_json::{Map, Value, json};

/// Today's schema of the whole object.
pub(super) fn of_object(schema: &Part<'_>, role: Role, notes: &mut Notes) -> Option<Value> {
    let fields = schema.object(notes)?;
    let mut translated = Value::from(fields.clone());
    integers(&mut translated, &schema.field, notes);
    if is_of_whole_object(fields) {
        if let Some(spec) = schema.get("properties").and_then(|properties| properties.get("spec")) {
            refuse_reserved(&spec, role, notes);
        }
        return Some(translated);
    }
    refuse_reserved(schema, role, notes);
    translated.as_object_mut()?.entry("type").or_insert_with(|| "object".into());
    Some(json!({"type": "object", "properties": {"spec": translated}}))
}

fn is_of_whole_object(schema: &Map<String, Value>) -> bool {
    const OF_OBJECT: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.is_some_and(|properties| {
        properties.contains_key("spec") && properties.keys().all(|name| OF_OBJECT.contains(&name.as_str()))
    })
}

/// Fields of the control plane would replace fields of the user.
fn refuse_reserved(spec: &Part<'_>, role: Role, notes: &mut Notes) {
    let reserved: Vec<String> = match role {
        Role::Application => ["application", "crossplane"].map(str::to_owned).into(),
        Role::Infrastructure => derive::composite_spec_fields()
            .chain(derive::claim_only_fields())
            .chain(["infrastructure".to_owned()])
            .collect(),
    };
    let Some(properties) = spec.get("properties") else { return };
    for name in
        properties.object(notes).into_iter().flat_map(Map::keys).filter(|name| reserved.contains(name))
    {
        notes.wrong(&properties.field.child(name), Problem::Reserved);
    }
}

/// Writes `integer` for `int`, in the schema and in all schemas in it.
fn integers(schema: &mut Value, field: &Field, notes: &mut Notes) {
    let Some(keywords) = schema.as_object_mut() else { return };
    for (keyword, value) in keywords {
        let field = field.child(keyword);
        match (keyword.as_str(), value) {
            ("type", value) if value == "int" => {
                *value = "integer".into();
                notes.remark(&field, Difference::Int);
            }
            ("properties" | "patternProperties", Value::Object(properties)) => {
                for (name, schema) in properties {
                    integers(schema, &field.child(name), notes);
                }
            }
            ("allOf" | "anyOf" | "oneOf" | "items", Value::Array(schemas)) => {
                for (index, schema) in schemas.iter_mut().enumerate() {
                    integers(schema, &field.item(index), notes);
                }
            }
            ("items" | "additionalProperties" | "not", schema) => integers(schema, &field, notes),
            _ => {}
        }
    }
}
