//! The OpenAPI v2 document as the protobuf message `openapi.v2.Document`, which client-go reads instead of JSON.
//!
//! A message is a table from JSON keys to field numbers and forms; one function walks document and table
//! together. Keys that begin with `x-` go to the message's list of extensions as YAML text, of which JSON is a
//! part. Protobuf has no place for any other key, so such a key is left out (a test proves that we write none).

mod messages;
mod wire;

use serde_json::{Map, Value};

/// How the value of a JSON key is written.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Flag,
    Integer,
    Number,
    /// Any JSON value.
    Any,
    One(&'static Message),
    /// A list of something.
    Each(&'static Form),
    /// A map: a message whose field 1 repeats `{1: key, 2: value}`.
    Map(&'static Form),
    /// A single value or a list, as a message whose field 1 repeats it.
    Some(&'static Form),
    /// Alternatives, chosen by looking at the value: a message with the chosen one as its only field.
    Choice(fn(&Value) -> (u32, Form)),
}

/// A message: its fields by JSON key, and the field numbers of its extensions and of its other keys.
struct Message {
    fields: &'static [(&'static str, u32, Form)],
    extensions: u32,
    /// Keys that are not fields, such as paths and status codes.
    others: Option<(u32, Form)>,
}

/// An OpenAPI v2 document in protobuf.
pub fn encode(document: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    message(&mut out, &messages::DOCUMENT, document);
    out
}

fn message(out: &mut Vec<u8>, shape: &Message, value: &Value) {
    for (key, inner) in value.as_object().into_iter().flatten() {
        if let Some((_, number, form)) = shape.fields.iter().find(|(name, ..)| name == key) {
            field(out, *number, *form, inner);
        } else if key.starts_with("x-") {
            if shape.extensions != 0 {
                named(out, shape.extensions, key, Form::Any, inner);
            }
        } else if let Some((number, form)) = shape.others {
            named(out, number, key, form, inner);
        }
    }
}

/// One field. Protobuf leaves out what is zero, and so does a value of the wrong type.
fn field(out: &mut Vec<u8>, number: u32, form: Form, value: &Value) {
    match form {
        Form::Text => wire::text(out, number, value.as_str().unwrap_or_default()),
        Form::Flag => wire::integer(out, number, value.as_bool().unwrap_or_default().into()),
        Form::Integer => wire::integer(out, number, whole(value)),
        Form::Number => wire::double(out, number, value.as_f64().unwrap_or_default()),
        Form::Any => wire::nested(out, number, |out| wire::text(out, 2, &wire::yaml(value))),
        Form::One(shape) => wire::nested(out, number, |out| message(out, shape, value)),
        Form::Each(form) => elements(out, number, *form, value),
        Form::Map(form) => wire::nested(out, number, |out| {
            for (key, inner) in value.as_object().unwrap_or(&Map::new()) {
                named(out, 1, key, *form, inner);
            }
        }),
        Form::Some(form) => wire::nested(out, number, |out| elements(out, 1, *form, value)),
        Form::Choice(choose) => {
            let (chosen, form) = choose(value);
            wire::nested(out, number, |out| match form {
                // A chosen `false` is still chosen.
                Form::Flag => wire::chosen_flag(out, chosen, value.as_bool().unwrap_or_default()),
                form => field(out, chosen, form, value),
            });
        }
    }
}

fn named(out: &mut Vec<u8>, number: u32, key: &str, form: Form, value: &Value) {
    wire::nested(out, number, |out| {
        wire::text(out, 1, key);
        field(out, 2, form, value);
    });
}

/// Elements are written even when they are empty.
fn elements(out: &mut Vec<u8>, number: u32, form: Form, value: &Value) {
    let all = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    for element in all {
        match (form, element.as_str()) {
            (Form::Text, Some(text)) => wire::element(out, number, text),
            (Form::Text, None) => {}
            _ => field(out, number, form, element),
        }
    }
}

/// Validation bounds may have been written as `5.0`.
#[expect(clippy::cast_possible_truncation, reason = "bounds beyond 64 bits saturate")]
fn whole(value: &Value) -> i64 {
    value.as_i64().or_else(|| value.as_f64().map(|f| f as i64)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
