//! The objects patches read and write, and what Go makes of the numbers in them.
//!
//! The protocol has only doubles, so the original sees a `float64` wherever an object has just arrived, and an `int64`
//! in an object that has been through its JSON decoder, which happens with every write. The difference shows: `%d`
//! prints only integers, and an integer is not a duplicate of a float. Our objects always hold canonical numbers;
//! [`Numbers`] remembers what they count as.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};
use transom_gotemplate::{Key, Map as GoMap, MapType, Value as Go};
use transom_object::json::{encode_escaped, format_float};

/// What the integral numbers of an object count as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    Floats,
    Integers,
}

/// An object, and what its numbers count as. It is copied when it is first written to.
#[derive(Clone, Debug)]
pub(super) struct Document<'o> {
    object: Cow<'o, Value>,
    numbers: Numbers,
}

impl<'o> Document<'o> {
    /// An object; anything else counts as an empty one.
    pub(super) fn new(object: Value, numbers: Numbers) -> Self {
        let object = if object.is_object() { object } else { Value::Object(Map::new()) };
        Self { object: Cow::Owned(object), numbers }
    }

    /// An object that belongs to another.
    pub(super) fn of(object: &'o Value, numbers: Numbers) -> Self {
        match object {
            Value::Object(_) => Self { object: Cow::Borrowed(object), numbers },
            _ => Self::new(Value::Null, numbers),
        }
    }

    pub(super) fn value(&self) -> &Value {
        &self.object
    }

    pub(super) fn into_value(self) -> Value {
        self.object.into_owned()
    }

    pub(super) fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// The object to write to: from then on its numbers are integers.
    pub(super) fn write(&mut self) -> &mut Value {
        self.numbers = Numbers::Integers;
        self.object.to_mut()
    }

    /// A string field at the top level; empty when it is not a string.
    pub(super) fn text(&self, field: &str) -> &str {
        self.object.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// Sets a text field at the top, whatever was there.
    pub(super) fn set_text(&mut self, field: &str, text: &str) {
        if let Value::Object(fields) = self.object.to_mut() {
            fields.insert(field.to_owned(), text.into());
        }
    }

    /// A string field of the metadata; empty when it is not a string.
    pub(super) fn metadata(&self, field: &str) -> &str {
        self.object
            .get("metadata")
            .and_then(|metadata| metadata.get(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Sets a text field of the metadata, or removes it when the text is empty. Metadata that is not an object is left
    /// alone.
    pub(super) fn set_metadata(&mut self, field: &str, text: &str) {
        let Value::Object(fields) = self.object.to_mut() else { return };
        if text.is_empty() {
            if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
                metadata.remove(field);
            }
        } else if let Value::Object(metadata) = fields.entry("metadata").or_insert_with(|| Map::new().into())
        {
            metadata.insert(field.to_owned(), text.into());
        }
    }

    /// The group and version, and the kind, or nothing when the former cannot be read.
    fn identity(&self) -> Option<(&str, &str)> {
        let api_version = self.text("apiVersion");
        (api_version.matches('/').count() < 2).then(|| (api_version, self.text("kind")))
    }

    /// Whether it lacks an identity altogether.
    pub(super) fn is_anonymous(&self) -> bool {
        self.identity().is_none_or(|(api_version, kind)| matches!(api_version, "" | "/") && kind.is_empty())
    }

    /// Every object must have a kind to be decoded.
    pub(super) fn check_kind(&self) -> Result<(), String> {
        match self.identity() {
            Some((_, kind)) if !kind.is_empty() => Ok(()),
            _ => Err(format!("Object 'Kind' is missing in '{}'", encode_escaped(&self.object))),
        }
    }
}

/// A value as Go holds it.
pub(super) fn to_go(value: &Value, numbers: Numbers) -> Go {
    match value {
        Value::Number(number) if numbers == Numbers::Floats => Go::Float(number.as_f64().unwrap_or(f64::NAN)),
        Value::Array(items) => Go::list(items.iter().map(|item| to_go(item, numbers)).collect()),
        Value::Object(fields) => {
            let map = GoMap::new(MapType::StrAny);
            for (key, value) in fields {
                map.insert(Key::str(key.as_str()), to_go(value, numbers));
            }
            Go::Map(map)
        }
        scalar => Go::from(scalar),
    }
}

/// The JSON of a value, with floats still distinct from integers. Infinities and NaN have none.
pub(super) fn to_json(value: &Go) -> Result<Value, String> {
    Ok(match value {
        Go::Bool(truth) => (*truth).into(),
        Go::Int(_, number) => (*number).into(),
        Go::Float(number) => match Number::from_f64(*number) {
            Some(number) => number.into(),
            None => return Err(format!("json: unsupported value: {}", infinity(*number))),
        },
        Go::Str(text) => text_of(text).into(),
        Go::List(list) if !list.is_nil() => {
            list.items().iter().map(to_json).collect::<Result<Vec<_>, _>>()?.into()
        }
        Go::Map(map) if !map.is_nil() => {
            let mut fields = Map::new();
            for (key, value) in map.entries().iter() {
                if let Key::Str(key) = key {
                    fields.insert(text_of(key), to_json(value)?);
                }
            }
            fields.into()
        }
        _ => Value::Null,
    })
}

fn infinity(number: f64) -> &'static str {
    match number {
        f64::INFINITY => "+Inf",
        f64::NEG_INFINITY => "-Inf",
        _ => "NaN",
    }
}

/// Bytes as Go's JSON has them: every byte that is not part of a character becomes U+FFFD.
pub(super) fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// Makes every number count as a float.
pub(super) fn float(value: &mut Value) {
    each_number(value, &|number| number.as_f64().and_then(Number::from_f64));
}

/// Makes integral floats the integers their text would be read back as.
pub(super) fn normalize(value: &mut Value) {
    each_number(value, &|number| {
        let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0)?;
        format_float(float).parse::<i64>().ok().map(Number::from)
    });
}

fn each_number(value: &mut Value, change: &impl Fn(&Number) -> Option<Number>) {
    match value {
        Value::Number(number) => {
            if let Some(changed) = change(number) {
                *number = changed;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_number(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|item| each_number(item, change)),
        _ => {}
    }
}

/// Roughly the bytes a value takes in JSON; enough to bound how much is written.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(key, item)| key.len() + size(item) + 4).sum::<usize>() + 2
        }
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn integers_and_floats_are_distinguished() {
        let value = json!({"n": 5, "f": 1.5, "l": [1e18]});
        assert_eq!(to_json(&to_go(&value, Numbers::Integers)), Ok(value.clone()));
        let mut floats = value.clone();
        float(&mut floats);
        assert_eq!(to_json(&to_go(&value, Numbers::Floats)), Ok(floats.clone()));
        assert_eq!(floats["n"], json!(5.0));
        normalize(&mut floats);
        assert_eq!(floats, json!({"n": 5, "f": 1.5, "l": [1_000_000_000_000_000_000_i64]}));
        let mut huge = json!([1e21, 1e19, -0.0]);
        normalize(&mut huge);
        assert_eq!(huge, json!([1e21, 1e19, 0]));
        assert_eq!(to_json(&Go::Float(f64::NAN)), Err("json: unsupported value: NaN".to_owned()));
    }

    #[test]
    fn identities_are_checked() {
        for (object, ok, anonymous) in [
            (json!({"apiVersion": "v1", "kind": "A"}), true, false),
            (json!({"kind": "A"}), true, false),
            (json!({"apiVersion": "v1"}), false, false),
            (json!({"apiVersion": "a/b/c", "kind": "A"}), false, true),
            (json!({"apiVersion": 1, "kind": 2}), false, true),
            (json!({}), false, true),
        ] {
            let document = Document::new(object.clone(), Numbers::Floats);
            assert_eq!((document.check_kind().is_ok(), document.is_anonymous()), (ok, anonymous), "{object}");
        }
    }

    #[test]
    fn metadata_is_set_where_it_can_be() {
        for (object, text, expected) in [
            (json!({}), "a", json!({"metadata": {"name": "a"}})),
            (json!({}), "", json!({})),
            (json!({"metadata": null}), "a", json!({"metadata": null})),
            (json!({"metadata": {"name": "b", "x": 1}}), "", json!({"metadata": {"x": 1}})),
        ] {
            let mut document = Document::new(object, Numbers::Integers);
            document.set_metadata("name", text);
            assert_eq!(document.into_value(), expected);
        }
    }
}
