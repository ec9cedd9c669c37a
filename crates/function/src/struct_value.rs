//! `google.protobuf.Struct` without a second tree: a JSON object that encodes to and decodes from the wire by
//! itself. The protocol has only doubles, so integral numbers within 64 bits arrive as JSON integers, which is what
//! Kubernetes' own JSON would have made of them.

use bytes::{Buf, BufMut};
use prost::DecodeError;
use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, encoded_len_varint,
    skip_field,
};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Number, Value};
use std::sync::Arc;
use transom_object::json::MAX_DEPTH;

/// `Struct.fields`, and `ListValue.values`.
const ENTRIES: u32 = 1;
/// The two fields of a map's entry.
const ENTRY_KEY: u32 = 1;
const ENTRY_VALUE: u32 = 2;
/// `Value`'s kinds.
const NULL: u32 = 1;
const NUMBER: u32 = 2;
const STRING: u32 = 3;
const BOOL: u32 = 4;
const STRUCT: u32 = 5;
const LIST: u32 = 6;

/// A JSON object that is a `google.protobuf.Struct` on the wire. Clones share the object until one of them is changed:
/// every step of a pipeline gets the whole observed state.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "Map<String, Value>")]
pub struct Struct(Arc<Value>);

impl Default for Struct {
    fn default() -> Self {
        Self::from(Map::new())
    }
}

impl Serialize for Struct {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl Struct {
    /// The object as a JSON value; always `Value::Object`.
    pub fn as_value(&self) -> &Value {
        &self.0
    }

    /// The object as a JSON value; always `Value::Object`. A copy, if it is shared.
    pub fn into_value(self) -> Value {
        Arc::unwrap_or_clone(self.0)
    }

    /// The object's fields.
    pub fn fields(&self) -> &Map<String, Value> {
        match &*self.0 {
            Value::Object(fields) => fields,
            _ => unreachable!("a Struct is made of objects only"),
        }
    }

    /// The object's fields, to change them. Clones are not changed.
    pub fn fields_mut(&mut self) -> &mut Map<String, Value> {
        match Arc::make_mut(&mut self.0) {
            Value::Object(fields) => fields,
            _ => unreachable!("a Struct is made of objects only"),
        }
    }

    /// Changes the object through its value. If the value is not an object afterwards, it becomes an empty one.
    pub(crate) fn with_value<T>(&mut self, change: impl FnOnce(&mut Value) -> T) -> T {
        let result = change(Arc::make_mut(&mut self.0));
        if !self.0.is_object() {
            *self = Self::default();
        }
        result
    }
}

impl From<Map<String, Value>> for Struct {
    fn from(fields: Map<String, Value>) -> Self {
        Self(Arc::new(Value::Object(fields)))
    }
}

impl From<Struct> for Map<String, Value> {
    fn from(mut object: Struct) -> Self {
        std::mem::take(object.fields_mut())
    }
}

/// A JSON value that is not an object cannot be a [`Struct`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a JSON object, found {0}")]
pub struct NotAnObject(&'static str);

impl TryFrom<Value> for Struct {
    type Error = NotAnObject;

    fn try_from(value: Value) -> Result<Self, NotAnObject> {
        Self::try_from(Arc::new(value))
    }
}

impl TryFrom<Arc<Value>> for Struct {
    type Error = NotAnObject;

    fn try_from(value: Arc<Value>) -> Result<Self, NotAnObject> {
        match &*value {
            Value::Object(_) => Ok(Self(value)),
            Value::Null => Err(NotAnObject("null")),
            Value::Bool(_) => Err(NotAnObject("a boolean")),
            Value::Number(_) => Err(NotAnObject("a number")),
            Value::String(_) => Err(NotAnObject("a string")),
            Value::Array(_) => Err(NotAnObject("an array")),
        }
    }
}

impl prost::Message for Struct {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        let mut sizes = Vec::new();
        measure_fields(self.fields(), &mut sizes);
        encode_fields(self.fields(), &mut sizes.into_iter().peekable(), buf);
    }

    fn encoded_len(&self) -> usize {
        measure_fields(self.fields(), &mut Vec::new())
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag != ENTRIES {
            return skip_field(wire_type, tag, buf, ctx);
        }
        expect(wire_type, WireType::LengthDelimited)?;
        let length = decode_varint(buf)?;
        if length > buf.remaining() as u64 {
            return Err(malformed("a field ends after its message"));
        }
        // Within `remaining`, so it fits; zero-copy when the buffer is a `Bytes`.
        let entry = buf.copy_to_bytes(length as usize);
        decode_entry(&entry, self.fields_mut(), 1)
    }

    fn clear(&mut self) {
        self.fields_mut().clear();
    }
}

/// The length of a length-delimited field with a tag below 16.
fn delimited(length: usize) -> usize {
    1 + encoded_len_varint(length as u64) + length
}

/// The length of the `Value` message around content of the given length (of objects and arrays; else ignored).
fn value_len(value: &Value, content: usize) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 2,
        Value::Number(_) => 9,
        Value::String(text) => delimited(text.len()),
        Value::Array(_) | Value::Object(_) => delimited(content),
    }
}

/// Lengths are computed once and bottom-up, and kept in the order in which encoding needs them: asking each level
/// for its length while encoding would cost the square of the depth.
fn measure_fields(fields: &Map<String, Value>, sizes: &mut Vec<usize>) -> usize {
    let entry = |(key, value): (&String, &Value)| {
        let value = measure(value, sizes);
        delimited(delimited(key.len()) + delimited(value))
    };
    fields.iter().map(entry).sum()
}

fn measure(value: &Value, sizes: &mut Vec<usize>) -> usize {
    let slot = sizes.len();
    let content = match value {
        Value::Object(fields) => {
            sizes.push(0);
            measure_fields(fields, sizes)
        }
        Value::Array(items) => {
            sizes.push(0);
            items.iter().map(|item| delimited(measure(item, sizes))).sum()
        }
        scalar => return value_len(scalar, 0),
    };
    sizes[slot] = content;
    value_len(value, content)
}

type Sizes = std::iter::Peekable<std::vec::IntoIter<usize>>;

fn encode_fields(fields: &Map<String, Value>, sizes: &mut Sizes, buf: &mut impl BufMut) {
    for (key, value) in fields {
        let length = value_len(value, sizes.peek().copied().unwrap_or_default());
        encode_key(ENTRIES, WireType::LengthDelimited, buf);
        encode_varint((delimited(key.len()) + delimited(length)) as u64, buf);
        encode_bytes(ENTRY_KEY, key.as_bytes(), buf);
        encode_key(ENTRY_VALUE, WireType::LengthDelimited, buf);
        encode_varint(length as u64, buf);
        encode_value(value, sizes, buf);
    }
}

fn encode_bytes(tag: u32, bytes: &[u8], buf: &mut impl BufMut) {
    encode_key(tag, WireType::LengthDelimited, buf);
    encode_varint(bytes.len() as u64, buf);
    buf.put_slice(bytes);
}

fn encode_value(value: &Value, sizes: &mut Sizes, buf: &mut impl BufMut) {
    match value {
        Value::Null => {
            encode_key(NULL, WireType::Varint, buf);
            encode_varint(0, buf);
        }
        Value::Bool(truth) => {
            encode_key(BOOL, WireType::Varint, buf);
            encode_varint(u64::from(*truth), buf);
        }
        Value::Number(number) => {
            encode_key(NUMBER, WireType::SixtyFourBit, buf);
            buf.put_f64_le(number.as_f64().unwrap_or_default());
        }
        Value::String(text) => encode_bytes(STRING, text.as_bytes(), buf),
        Value::Array(items) => {
            encode_key(LIST, WireType::LengthDelimited, buf);
            encode_varint(sizes.next().unwrap_or_default() as u64, buf);
            for item in items {
                let length = value_len(item, sizes.peek().copied().unwrap_or_default());
                encode_key(ENTRIES, WireType::LengthDelimited, buf);
                encode_varint(length as u64, buf);
                encode_value(item, sizes, buf);
            }
        }
        Value::Object(fields) => {
            encode_key(STRUCT, WireType::LengthDelimited, buf);
            encode_varint(sizes.next().unwrap_or_default() as u64, buf);
            encode_fields(fields, sizes, buf);
        }
    }
}

#[expect(deprecated, reason = "prost has no other way to say why a hand-written message refuses its bytes")]
fn malformed(why: &'static str) -> DecodeError {
    DecodeError::new(why)
}

fn expect(found: WireType, expected: WireType) -> Result<(), DecodeError> {
    if found == expected { Ok(()) } else { Err(malformed("invalid wire type in a google.protobuf.Struct")) }
}

/// Takes a length-delimited field's content off the front of `buf`.
fn take<'b>(wire_type: WireType, buf: &mut &'b [u8]) -> Result<&'b [u8], DecodeError> {
    expect(wire_type, WireType::LengthDelimited)?;
    let length = usize::try_from(decode_varint(buf)?).unwrap_or(usize::MAX);
    let (content, rest) =
        buf.split_at_checked(length).ok_or_else(|| malformed("a field ends after its message"))?;
    *buf = rest;
    Ok(content)
}

fn text(bytes: &[u8]) -> Result<String, DecodeError> {
    let text = std::str::from_utf8(bytes).map_err(|_| malformed("a string is not UTF-8"))?;
    Ok(text.to_owned())
}

fn decode_entry(mut buf: &[u8], fields: &mut Map<String, Value>, depth: usize) -> Result<(), DecodeError> {
    let (mut key, mut value) = (String::new(), Value::Null);
    while !buf.is_empty() {
        let (tag, wire_type) = decode_key(&mut buf)?;
        match tag {
            ENTRY_KEY => key = text(take(wire_type, &mut buf)?)?,
            ENTRY_VALUE => decode_value(take(wire_type, &mut buf)?, &mut value, depth)?,
            _ => skip_field(wire_type, tag, &mut buf, DecodeContext::default())?,
        }
    }
    fields.insert(key, value);
    Ok(())
}

/// Merges an encoded `Value` into `value`: as in all of protobuf, a repeated scalar replaces and a repeated message
/// adds.
fn decode_value(mut buf: &[u8], value: &mut Value, depth: usize) -> Result<(), DecodeError> {
    while !buf.is_empty() {
        let (tag, wire_type) = decode_key(&mut buf)?;
        match tag {
            NULL => {
                expect(wire_type, WireType::Varint)?;
                decode_varint(&mut buf)?;
                *value = Value::Null;
            }
            NUMBER => {
                expect(wire_type, WireType::SixtyFourBit)?;
                let float = buf.try_get_f64_le().map_err(|_| malformed("a number ends after its message"))?;
                *value = Value::Number(number(float)?);
            }
            STRING => *value = Value::String(text(take(wire_type, &mut buf)?)?),
            BOOL => {
                expect(wire_type, WireType::Varint)?;
                *value = Value::Bool(decode_varint(&mut buf)? != 0);
            }
            STRUCT | LIST => decode_nested(tag, take(wire_type, &mut buf)?, value, depth + 1)?,
            _ => skip_field(wire_type, tag, &mut buf, DecodeContext::default())?,
        }
    }
    Ok(())
}

fn decode_nested(kind: u32, mut buf: &[u8], value: &mut Value, depth: usize) -> Result<(), DecodeError> {
    if depth > MAX_DEPTH {
        return Err(malformed("a google.protobuf.Struct is nested too deeply"));
    }
    match (kind, &value) {
        (STRUCT, Value::Object(_)) | (LIST, Value::Array(_)) => {}
        (STRUCT, _) => *value = Value::Object(Map::new()),
        _ => *value = Value::Array(Vec::new()),
    }
    while !buf.is_empty() {
        let (tag, wire_type) = decode_key(&mut buf)?;
        if tag != ENTRIES {
            skip_field(wire_type, tag, &mut buf, DecodeContext::default())?;
            continue;
        }
        let content = take(wire_type, &mut buf)?;
        match value {
            Value::Object(fields) => decode_entry(content, fields, depth)?,
            Value::Array(items) => {
                let mut item = Value::Null;
                decode_value(content, &mut item, depth)?;
                items.push(item);
            }
            _ => {}
        }
    }
    Ok(())
}

/// The JSON number for a double: an integer when it is one and fits 64 signed bits.
fn number(float: f64) -> Result<Number, DecodeError> {
    // Both bounds are exact doubles; the upper is the first that does not fit.
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    if float.fract() == 0.0 && (-BOUND..BOUND).contains(&float) {
        return Ok(Number::from(float as i64));
    }
    Number::from_f64(float)
        .ok_or_else(|| malformed("a number is infinite or not a number, which JSON cannot say"))
}

#[cfg(test)]
#[path = "struct_value_tests.rs"]
mod tests;
