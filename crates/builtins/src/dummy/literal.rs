//! A response spelt out in JSON, as protobuf reads it: a null field is an absent field, and where a message
//! is expected only an object is accepted. The messages themselves define the fields and their types.

use serde_json::Value;

/// The fields of a message, and what they hold.
pub(super) struct Shape(&'static [(&'static str, Holds)]);

enum Holds {
    One(&'static Shape),
    List(&'static Shape),
    ByName(&'static Shape),
    /// An object of the user's own, nulls and all.
    Struct,
    /// Something that the field itself will check.
    Plain,
}

/// `RunFunctionResponse`.
pub(super) const RESPONSE: Shape = Shape(&[
    ("meta", Holds::One(&META)),
    ("desired", Holds::One(&STATE)),
    ("results", Holds::List(&RESULT)),
    ("context", Holds::Struct),
    ("requirements", Holds::One(&REQUIREMENTS)),
    ("conditions", Holds::List(&CONDITION)),
    ("output", Holds::Struct),
]);
const META: Shape = Shape(&[("tag", Holds::Plain), ("ttl", Holds::Plain)]);
const STATE: Shape = Shape(&[("composite", Holds::One(&RESOURCE)), ("resources", Holds::ByName(&RESOURCE))]);
const RESOURCE: Shape = Shape(&[
    ("resource", Holds::Struct),
    ("connectionDetails", Holds::Plain),
    ("connection_details", Holds::Plain),
    ("ready", Holds::Plain),
]);
const RESULT: Shape = Shape(&[
    ("severity", Holds::Plain),
    ("message", Holds::Plain),
    ("reason", Holds::Plain),
    ("target", Holds::Plain),
]);
const CONDITION: Shape = Shape(&[
    ("type", Holds::Plain),
    ("status", Holds::Plain),
    ("reason", Holds::Plain),
    ("message", Holds::Plain),
    ("target", Holds::Plain),
]);
const REQUIREMENTS: Shape = Shape(&[
    ("extraResources", Holds::ByName(&SELECTOR)),
    ("extra_resources", Holds::ByName(&SELECTOR)),
    ("resources", Holds::ByName(&SELECTOR)),
    ("schemas", Holds::ByName(&TYPE)),
]);
const SELECTOR: Shape = Shape(&[
    ("apiVersion", Holds::Plain),
    ("api_version", Holds::Plain),
    ("kind", Holds::Plain),
    ("matchName", Holds::Plain),
    ("match_name", Holds::Plain),
    ("matchLabels", Holds::One(&LABELS)),
    ("match_labels", Holds::One(&LABELS)),
    ("namespace", Holds::Plain),
]);
const LABELS: Shape = Shape(&[("labels", Holds::Plain)]);
const TYPE: Shape =
    Shape(&[("apiVersion", Holds::Plain), ("api_version", Holds::Plain), ("kind", Holds::Plain)]);

/// A message without the fields that are null.
pub(super) fn tidied(shape: &Shape, message: Value) -> Result<Value, String> {
    let Value::Object(mut fields) = message else { return Err(unexpected(&message)) };
    let holds = |name: &str| shape.0.iter().find(|(field, _)| *field == name).map(|(_, holds)| holds);
    // An unknown field is an error even if it is null.
    fields.retain(|name, value| !value.is_null() || holds(name).is_none());
    for (name, value) in &mut fields {
        match (holds(name).unwrap_or(&Holds::Plain), &mut *value) {
            (Holds::One(shape), value) => *value = tidied(shape, value.take())?,
            (Holds::List(shape), Value::Array(items)) => {
                for item in items {
                    *item = tidied(shape, item.take())?;
                }
            }
            (Holds::ByName(shape), Value::Object(entries)) => {
                for entry in entries.values_mut() {
                    *entry = tidied(shape, entry.take())?;
                }
            }
            (Holds::Struct, Value::Object(_)) | (Holds::Plain, _) => {}
            (_, other) => return Err(unexpected(other)),
        }
    }
    Ok(Value::Object(fields))
}

fn unexpected(value: &Value) -> String {
    match value {
        Value::Array(_) => "unexpected token [".to_owned(),
        Value::Object(_) => "unexpected token {".to_owned(),
        scalar => format!("unexpected token {scalar}"),
    }
}
