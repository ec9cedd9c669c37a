//! Kubernetes' protobuf requests as JSON: the `k8s\0` envelope (`runtime.Unknown`) around a message that
//! the table describes. The result equals what Go's protobuf decoder and JSON encoder make of it.

use super::table::{Shape, Ty, Type, Types, types};
use super::{scalars, typed};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use transom_object::GroupVersion;
use transom_object::time::Timestamp;

/// Why a body could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtoError {
    /// The envelope does not start with `k8s\0`.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Magic,
    /// The envelope names no kind.
    #[error("Object 'Kind' is missing in protobuf body")]
    MissingKind,
    /// The kind is not built in.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// Of the envelope.
        api_version: String,
        /// Of the envelope.
        kind: String,
    },
    /// The body ends within a field.
    #[error("unexpected EOF")]
    Truncated,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A wire type that protobuf does not have.
    #[error("proto: illegal wireType {0}")]
    WireType(u64),
    /// A wire type that the type of the field does not have.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    Mismatch {
        /// The JSON name of the field.
        field: String,
        /// The wire type in the body.
        wire: u64,
    },
    /// Messages are nested deeper than the limit.
    #[error("proto: message is nested too deeply")]
    TooDeep,
    /// More messages altogether than the limit.
    #[error("proto: message has too many parts")]
    TooMany,
    /// A value that the type of the field does not allow.
    #[error("{field}: {message}")]
    Value {
        /// The JSON name of the field.
        field: String,
        /// What is wrong with it.
        message: String,
    },
}

/// The most levels of messages within messages. Schemas of CRDs are the deepest in practice.
const MAX_DEPTH: usize = 128;

/// The most messages altogether: each costs far more as JSON than the two bytes it may have on the wire.
const MAX_MESSAGES: usize = 400_000;

/// Reads a body of `application/vnd.kubernetes.protobuf`.
pub fn decode_protobuf(body: &[u8]) -> Result<Value, ProtoError> {
    let envelope = Envelope::read(body.strip_prefix(b"k8s\0").ok_or(ProtoError::Magic)?)?;
    let types = types();
    let (api_version, kind) = (envelope.api_version, envelope.kind);
    if kind.is_empty() {
        return Err(ProtoError::MissingKind);
    }
    let known = GroupVersion::parse(&api_version)
        .and_then(|gv| types.kind(&gv.group, &gv.version, &kind))
        .and_then(|k| types.get(k.type_name));
    let Some(ty) = known else { return Err(ProtoError::UnknownKind { api_version, kind }) };
    let mut reader = Reader { types, messages: 0 };
    let mut present = Map::new();
    reader.fields(envelope.raw, ty, &mut present, 0)?;
    if ty.field("kind").is_some() && ty.field("apiVersion").is_some() {
        present.insert("apiVersion".into(), api_version.into());
        present.insert("kind".into(), kind.into());
    }
    Ok(Value::Object(typed::finish(types, ty, present)))
}

#[cfg(test)]
pub(super) fn decode_message(body: &[u8], ty: &'static Type) -> Result<Value, ProtoError> {
    Reader { types: types(), messages: 0 }.message(body, ty, 0)
}

/// `runtime.Unknown`: which type the raw bytes are.
#[derive(Default)]
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(body: &'a [u8]) -> Result<Self, ProtoError> {
        let mut out = Self::default();
        let mut wire = Wire(body);
        while let Some((number, value)) = wire.next()? {
            match (number, value) {
                (1, Part::Bytes(meta)) => {
                    let mut meta = Wire(meta);
                    while let Some(part) = meta.next()? {
                        match part {
                            (1, Part::Bytes(s)) => out.api_version = text(s),
                            (2, Part::Bytes(s)) => out.kind = text(s),
                            _ => {}
                        }
                    }
                }
                (2, Part::Bytes(raw)) => out.raw = raw,
                _ => {}
            }
        }
        Ok(out)
    }
}

/// One field on the wire.
#[derive(Clone, Copy)]
enum Part<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32,
    Bytes(&'a [u8]),
}

impl Part<'_> {
    fn wire(&self) -> u64 {
        match self {
            Part::Varint(_) => 0,
            Part::Fixed64(_) => 1,
            Part::Bytes(_) => 2,
            Part::Fixed32 => 5,
        }
    }
}

/// The rest of a message. Never copies and never reads past the end.
struct Wire<'a>(&'a [u8]);

impl<'a> Wire<'a> {
    fn next(&mut self) -> Result<Option<(u32, Part<'a>)>, ProtoError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let part = match key & 7 {
            0 => Part::Varint(self.varint()?),
            1 => Part::Fixed64(u64::from_le_bytes(
                self.take(8)?.try_into().map_err(|_| ProtoError::Truncated)?,
            )),
            2 => {
                let len = self.varint()?;
                Part::Bytes(self.take(len)?)
            }
            5 => self.take(4).map(|_| Part::Fixed32)?,
            other => return Err(ProtoError::WireType(other)),
        };
        match u32::try_from(key >> 3) {
            Ok(number) if number > 0 => Ok(Some((number, part))),
            _ => Err(ProtoError::WireType(key & 7)),
        }
    }

    fn varint(&mut self) -> Result<u64, ProtoError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.0.split_first().ok_or(ProtoError::Truncated)?;
            self.0 = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ProtoError::Overflow)
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], ProtoError> {
        let len = usize::try_from(len).map_err(|_| ProtoError::Truncated)?;
        let (head, rest) = self.0.split_at_checked(len).ok_or(ProtoError::Truncated)?;
        self.0 = rest;
        Ok(head)
    }
}

/// Go strings may hold any bytes; its JSON encoder replaces what is not UTF-8.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

struct Reader {
    types: &'static Types,
    messages: usize,
}

impl Reader {
    /// Reads a message into `present`; inlined structs land in the same map.
    fn fields(
        &mut self,
        body: &[u8],
        ty: &'static Type,
        present: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), ProtoError> {
        self.enter(depth)?;
        let mut wire = Wire(body);
        while let Some((number, part)) = wire.next()? {
            let Some(field) = ty.fields.iter().find(|f| f.number == number) else { continue };
            match (&field.ty.shape, part) {
                (Shape::Struct(index), Part::Bytes(body)) if field.inline => {
                    self.fields(body, self.types.at(*index), present, depth + 1)?;
                }
                _ => {
                    let slot = present.entry(field.name).or_insert(Value::Null);
                    self.merge(slot, part, &field.ty, field.name, depth)?;
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self, depth: usize) -> Result<(), ProtoError> {
        self.messages += 1;
        if depth > MAX_DEPTH {
            return Err(ProtoError::TooDeep);
        }
        if self.messages > MAX_MESSAGES { Err(ProtoError::TooMany) } else { Ok(()) }
    }

    /// Adds one occurrence of a field: lists and maps grow, anything else is set.
    fn merge(
        &mut self,
        slot: &mut Value,
        part: Part<'_>,
        ty: &'static Ty,
        name: &str,
        depth: usize,
    ) -> Result<(), ProtoError> {
        match (&ty.shape, part) {
            (Shape::List(inner), Part::Bytes(packed)) if is_varint(inner) => {
                let mut wire = Wire(packed);
                while !wire.0.is_empty() {
                    let item = self.value(Part::Varint(wire.varint()?), inner, name, depth)?;
                    list(slot).push(item);
                }
            }
            (Shape::List(inner), part) => {
                let item = self.value(part, inner, name, depth)?;
                list(slot).push(item);
            }
            (Shape::Map(inner), Part::Bytes(entry)) => {
                let (key, value) = self.entry(entry, inner, name, depth)?;
                if !slot.is_object() {
                    *slot = Value::Object(Map::new());
                }
                if let Value::Object(map) = slot {
                    map.insert(key, value);
                }
            }
            _ => *slot = self.value(part, ty, name, depth)?,
        }
        Ok(())
    }

    fn entry(
        &mut self,
        body: &[u8],
        inner: &'static Ty,
        name: &str,
        depth: usize,
    ) -> Result<(String, Value), ProtoError> {
        self.enter(depth)?;
        let (mut key, mut value) = (String::new(), None);
        let mut wire = Wire(body);
        while let Some((number, part)) = wire.next()? {
            match (number, part) {
                (1, Part::Bytes(s)) => key = text(s),
                (2, part) => value = Some(self.value(part, inner, name, depth + 1)?),
                _ => {}
            }
        }
        let missing = || match inner.shape {
            Shape::Bytes => "".into(),
            Shape::Wrapped(_) => Value::Array(Vec::new()),
            _ => typed::zero(self.types, inner),
        };
        Ok((key, value.unwrap_or_else(missing)))
    }

    fn value(
        &mut self,
        part: Part<'_>,
        ty: &'static Ty,
        name: &str,
        depth: usize,
    ) -> Result<Value, ProtoError> {
        let mismatch = || ProtoError::Mismatch { field: name.to_owned(), wire: part.wire() };
        match (&ty.shape, part) {
            (Shape::Pointer(inner), part) => self.value(part, inner, name, depth),
            (Shape::Bool, Part::Varint(v)) => Ok((v != 0).into()),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "int32 on the wire is sign-extended to 64 bits"
            )]
            (Shape::Int32, Part::Varint(v)) => Ok((v as i32).into()),
            (Shape::Int64, Part::Varint(v)) => Ok(v.cast_signed().into()),
            (Shape::Float64, Part::Fixed64(bits)) => Ok(typed::float(f64::from_bits(bits))),
            (Shape::String, Part::Bytes(s)) => Ok(text(s).into()),
            (Shape::Bytes, Part::Bytes(b)) => Ok(STANDARD.encode(b).into()),
            (Shape::Struct(index), Part::Bytes(body)) => self.message(body, self.types.at(*index), depth),
            (Shape::Wrapped(inner), Part::Bytes(body)) => self.wrapped(body, inner, name, depth),
            (_, Part::Bytes(body)) => self.special(body, &ty.shape, name, depth)?.ok_or_else(mismatch),
            _ => Err(mismatch()),
        }
    }

    fn message(&mut self, body: &[u8], ty: &'static Type, depth: usize) -> Result<Value, ProtoError> {
        let mut present = Map::new();
        self.fields(body, ty, &mut present, depth + 1)?;
        Ok(Value::Object(typed::finish(self.types, ty, present)))
    }

    fn wrapped(
        &mut self,
        body: &[u8],
        inner: &'static Ty,
        name: &str,
        depth: usize,
    ) -> Result<Value, ProtoError> {
        self.enter(depth)?;
        let mut items = Value::Array(Vec::new());
        let mut wire = Wire(body);
        while let Some((number, part)) = wire.next()? {
            if number == 1 {
                let item = self.value(part, inner, name, depth + 1)?;
                list(&mut items).push(item);
            }
        }
        Ok(items)
    }

    /// The messages whose JSON is not their fields. `None` for shapes that are not messages.
    fn special(
        &mut self,
        body: &[u8],
        shape: &Shape,
        name: &str,
        depth: usize,
    ) -> Result<Option<Value>, ProtoError> {
        self.enter(depth)?;
        let bad = |message: String| ProtoError::Value { field: name.to_owned(), message };
        Ok(Some(match shape {
            Shape::Time | Shape::MicroTime => moment(body, matches!(shape, Shape::MicroTime))?,
            Shape::Quantity => match find_bytes(body, 1)? {
                None => "0".into(),
                Some(s) => scalars::quantity(&text(s)).map_err(|e| bad(e.to_string()))?.into(),
            },
            Shape::IntOrString => int_or_string(body)?,
            Shape::Raw | Shape::FieldsV1 | Shape::Json => match find_bytes(body, 1)? {
                None | Some([]) => Value::Null,
                Some(raw) => serde_json::from_slice(raw).map_err(|e| bad(e.to_string()))?,
            },
            Shape::PropsOrArray | Shape::PropsOrBool | Shape::PropsOrStrings => {
                self.props(body, shape, depth)?
            }
            _ => return Ok(None),
        }))
    }

    fn props(&mut self, body: &[u8], shape: &Shape, depth: usize) -> Result<Value, ProtoError> {
        let props = self.types.at(self.types.json_schema_props());
        let schema_number = if matches!(shape, Shape::PropsOrBool) { 2 } else { 1 };
        let (mut schema, mut allows, mut items) = (None, false, Vec::new());
        let mut wire = Wire(body);
        while let Some((number, part)) = wire.next()? {
            match (shape, part) {
                (_, Part::Bytes(body)) if number == schema_number => {
                    schema = Some(self.message(body, props, depth)?);
                }
                (Shape::PropsOrBool, Part::Varint(v)) if number == 1 => allows = v != 0,
                (Shape::PropsOrArray, Part::Bytes(body)) if number == 2 => {
                    items.push(self.message(body, props, depth)?);
                }
                (Shape::PropsOrStrings, Part::Bytes(s)) if number == 2 => items.push(text(s).into()),
                _ => {}
            }
        }
        Ok(match (shape, schema) {
            (Shape::PropsOrBool, None) => allows.into(),
            _ if !items.is_empty() => Value::Array(items),
            (_, schema) => schema.unwrap_or_default(),
        })
    }
}

fn is_varint(ty: &Ty) -> bool {
    matches!(ty.shape, Shape::Bool | Shape::Int32 | Shape::Int64)
}

fn list(slot: &mut Value) -> &mut Vec<Value> {
    if !slot.is_array() {
        *slot = Value::Array(Vec::new());
    }
    match slot {
        Value::Array(items) => items,
        _ => unreachable!("just made a list"),
    }
}

fn find_bytes(body: &[u8], wanted: u32) -> Result<Option<&[u8]>, ProtoError> {
    let mut found = None;
    let mut wire = Wire(body);
    while let Some((number, part)) = wire.next()? {
        if let (true, Part::Bytes(b)) = (number == wanted, part) {
            found = Some(b);
        }
    }
    Ok(found)
}

/// Seconds and nanoseconds; an empty message is the zero time.
fn moment(body: &[u8], micro: bool) -> Result<Value, ProtoError> {
    if body.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut wire = Wire(body);
    while let Some((number, part)) = wire.next()? {
        match (number, part) {
            (1, Part::Varint(v)) => seconds = v.cast_signed(),
            (2, Part::Varint(v)) => nanos = v.cast_signed(),
            _ => {}
        }
    }
    let at = i32::try_from(nanos)
        .ok()
        .and_then(|nanos| Timestamp::new(seconds, if micro { nanos } else { 0 }).ok());
    let at =
        at.ok_or_else(|| ProtoError::Value { field: "seconds".into(), message: "time out of range".into() })?;
    Ok(scalars::moment(at, micro))
}

fn int_or_string(body: &[u8]) -> Result<Value, ProtoError> {
    let (mut kind, mut int, mut string) = (0, 0i32, String::new());
    let mut wire = Wire(body);
    while let Some((number, part)) = wire.next()? {
        match (number, part) {
            (1, Part::Varint(v)) => kind = v,
            #[expect(
                clippy::cast_possible_truncation,
                reason = "int32 on the wire is sign-extended to 64 bits"
            )]
            (2, Part::Varint(v)) => int = v as i32,
            (3, Part::Bytes(s)) => string = text(s),
            _ => {}
        }
    }
    Ok(if kind == 0 { int.into() } else { string.into() })
}
