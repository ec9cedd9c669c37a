//! A JSON document as Go's typed decoder and encoder read and write it: unknown fields are dropped, wrong
//! types are errors with Go's messages, and zero values are written or left out by the `omitempty` of each field.

use super::scalars;
use super::table::{Field, Flat, Shape, Ty, Type, Types, types};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};
use std::collections::BTreeSet;
use transom_object::json::{is_empty, kind_of};
use transom_object::quantity::ParseError;

/// A document that does not fit its type, with the wording of Go's decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TypeError(pub String);

/// Strict decoding names at most this many fields, as upstream does.
const MAX_UNKNOWN_FIELDS: usize = 100;

/// Rewrites `value` as a decode into the Go type and an encode would.
/// Returns the paths of the fields that the type does not have.
pub fn normalize(value: &mut Value, type_name: &str) -> Result<Vec<String>, TypeError> {
    let types = types();
    let index = types.index(type_name).ok_or_else(|| TypeError(format!("unknown type {type_name}")))?;
    let mut walk =
        Walk { types, path: Vec::new(), owner: None, unknown: BTreeSet::new(), quiet: false, saved: None };
    let ty = types.at(index);
    *value = match value.take() {
        Value::Object(map) => Value::Object(walk.object(map, ty)?),
        Value::Null => zero_struct(types, ty),
        other => return Err(walk.mismatch(kind_of(&other), ty.go)),
    };
    walk.saved.map_or(Ok(()), Err)?;
    Ok(walk.unknown.into_iter().collect())
}

enum Segment {
    Field(&'static Flat),
    Key(String),
    Index(usize),
}

struct Walk {
    types: &'static Types,
    path: Vec<Segment>,
    /// The innermost struct, which Go names in its errors.
    owner: Option<&'static str>,
    unknown: BTreeSet<String>,
    /// Inside types with a decoder of their own, unknown fields are not reported.
    quiet: bool,
    /// The first wrong type. Go reads on after one, because an error from a type with a decoder of its
    /// own ends the reading at once and wins.
    saved: Option<TypeError>,
}

impl Walk {
    fn object(
        &mut self,
        map: Map<String, Value>,
        ty: &'static Type,
    ) -> Result<Map<String, Value>, TypeError> {
        let outer = self.owner;
        let mut present = Map::new();
        for (name, value) in map {
            let Some(f) = ty.field(&name) else {
                self.report(&name);
                continue;
            };
            self.owner = Some(ty.short_name());
            self.path.push(Segment::Field(f));
            if let Some(value) = self.value(value, &f.ty)? {
                present.insert(name, value);
            }
            self.path.pop();
        }
        self.owner = outer;
        Ok(finish(self.types, ty, present))
    }

    /// The value as encoded again; `None` where Go keeps the zero value.
    fn value(&mut self, value: Value, ty: &'static Ty) -> Result<Option<Value>, TypeError> {
        if let Shape::Pointer(inner) = &ty.shape {
            if value.is_null() {
                return Ok(None);
            }
            let types = self.types;
            return self.value(value, inner).map(|v| v.or_else(|| Some(zero(types, inner))));
        }
        if value.is_null() && !matches!(ty.shape, Shape::PropsOrBool) {
            return Ok(None);
        }
        match (&ty.shape, value) {
            (Shape::List(inner) | Shape::Wrapped(inner), Value::Array(items)) => {
                self.list(items, inner).map(Some)
            }
            (Shape::Map(inner), Value::Object(map)) => self.map(map, inner).map(Some),
            (Shape::Struct(index), Value::Object(map)) => {
                Ok(Some(Value::Object(self.object(map, self.types.at(*index))?)))
            }
            (Shape::PropsOrArray | Shape::PropsOrBool | Shape::PropsOrStrings, value) => {
                self.props(value, &ty.shape)
            }
            (Shape::Raw | Shape::FieldsV1 | Shape::Json | Shape::Any, value) => Ok(Some(value)),
            (Shape::Time | Shape::MicroTime | Shape::Quantity | Shape::IntOrString, value) => {
                self.special(value, &ty.shape).map(Some)
            }
            (_, value) => Ok(self.scalar(value, ty).map_or_else(|e| self.save(e), Some)),
        }
    }

    fn save(&mut self, error: TypeError) -> Option<Value> {
        self.saved.get_or_insert(error);
        None
    }

    fn list(&mut self, items: Vec<Value>, inner: &'static Ty) -> Result<Value, TypeError> {
        let mut out = Vec::with_capacity(items.len());
        for (i, item) in items.into_iter().enumerate() {
            self.path.push(Segment::Index(i));
            out.push(self.value(item, inner)?.unwrap_or_else(|| zero(self.types, inner)));
            self.path.pop();
        }
        Ok(Value::Array(out))
    }

    fn map(&mut self, map: Map<String, Value>, inner: &'static Ty) -> Result<Value, TypeError> {
        let mut out = Map::new();
        for (key, item) in map {
            self.path.push(Segment::Key(key.clone()));
            let item = self.value(item, inner)?.unwrap_or_else(|| zero(self.types, inner));
            self.path.pop();
            out.insert(key, item);
        }
        Ok(Value::Object(out))
    }

    fn scalar(&self, value: Value, ty: &Ty) -> Result<Value, TypeError> {
        let overflow = |n| self.mismatch(&format!("number {n}"), &ty.go_name(self.types));
        match (&ty.shape, value) {
            (Shape::String, v @ Value::String(_)) | (Shape::Bool, v @ Value::Bool(_)) => Ok(v),
            (Shape::Int32, Value::Number(n)) => int32(&n).ok_or_else(|| overflow(n)),
            (Shape::Int64, Value::Number(n)) => n.as_i64().map(Value::from).ok_or_else(|| overflow(n)),
            (Shape::Float64, Value::Number(n)) => Ok(float(n.as_f64().unwrap_or_default())),
            (Shape::Bytes, Value::String(s)) => match decode_base64(s.as_bytes()) {
                Ok(bytes) => Ok(STANDARD.encode(bytes).into()),
                Err(at) => Err(TypeError(format!("illegal base64 data at input byte {at}"))),
            },
            (_, v) => Err(self.mismatch(kind_of(&v), &ty.go_name(self.types))),
        }
    }

    /// Scalars with a decoder of their own.
    fn special(&self, value: Value, shape: &Shape) -> Result<Value, TypeError> {
        match (shape, value) {
            (Shape::Time, Value::String(s)) => scalars::time(&s, false).map_err(TypeError),
            (Shape::MicroTime, Value::String(s)) => scalars::time(&s, true).map_err(TypeError),
            (Shape::Quantity, Value::String(s)) => scalars::quantity(&s).map(Value::from).map_err(wording),
            (Shape::Quantity, v) => scalars::quantity(&v.to_string()).map(Value::from).map_err(wording),
            (Shape::IntOrString, v @ Value::String(_)) => Ok(v),
            (Shape::IntOrString, Value::Number(n)) => {
                int32(&n).ok_or_else(|| self.mismatch(&format!("number {n}"), "int32"))
            }
            (Shape::IntOrString, v) => Err(self.mismatch(kind_of(&v), "int32")),
            (_, v) => Err(self.mismatch(kind_of(&v), "string")),
        }
    }

    /// The three unions of JSON schema: a schema, or something simpler.
    fn props(&mut self, value: Value, shape: &Shape) -> Result<Option<Value>, TypeError> {
        let props = self.types.at(self.types.json_schema_props());
        let was_quiet = std::mem::replace(&mut self.quiet, true);
        let was_saved = self.saved.take();
        let out = match (shape, value) {
            (_, Value::Object(map)) => Some(Value::Object(self.object(map, props)?)),
            (Shape::PropsOrBool, v @ Value::Bool(_)) => Some(v),
            (Shape::PropsOrBool, _) => return Err(TypeError("boolean or JSON schema expected".into())),
            (Shape::PropsOrArray, Value::Array(items)) => self.schemas(items, props)?,
            (Shape::PropsOrStrings, Value::Array(items)) => self.strings(items)?,
            _ => Some(Value::Null),
        };
        self.quiet = was_quiet;
        // An inner decoder has read to its end; what it saved is now the union's own error.
        std::mem::replace(&mut self.saved, was_saved).map_or(Ok(out), Err)
    }

    fn schemas(&mut self, items: Vec<Value>, props: &'static Type) -> Result<Option<Value>, TypeError> {
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            out.push(match item {
                Value::Object(map) => Value::Object(self.object(map, props)?),
                Value::Null => zero_struct(self.types, props),
                other => {
                    let error = self.mismatch(kind_of(&other), props.go);
                    self.save(error).unwrap_or_default()
                }
            });
        }
        Ok(Some(if out.is_empty() { Value::Null } else { Value::Array(out) }))
    }

    fn strings(&self, items: Vec<Value>) -> Result<Option<Value>, TypeError> {
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            out.push(match item {
                v @ Value::String(_) => v,
                Value::Null => "".into(),
                other => return Err(self.mismatch(kind_of(&other), "string")),
            });
        }
        Ok(Some(if out.is_empty() { Value::Null } else { Value::Array(out) }))
    }

    fn mismatch(&self, what: &str, ty: &str) -> TypeError {
        let Some(owner) = self.owner else {
            return TypeError(format!("json: cannot unmarshal {what} into Go value of type {ty}"));
        };
        let fields: Vec<&str> = self
            .path
            .iter()
            .filter_map(|s| if let Segment::Field(f) = s { Some(&*f.go_path) } else { None })
            .collect();
        let field = fields.join(".");
        TypeError(format!("json: cannot unmarshal {what} into Go struct field {owner}.{field} of type {ty}"))
    }

    fn report(&mut self, name: &str) {
        if self.quiet || self.unknown.len() >= MAX_UNKNOWN_FIELDS {
            return;
        }
        let mut path = String::new();
        for segment in &self.path {
            match segment {
                Segment::Index(i) => path.push_str(&format!("[{i}]")),
                Segment::Field(f) => join(&mut path, f.name),
                Segment::Key(k) => join(&mut path, k),
            }
        }
        join(&mut path, name);
        self.unknown.insert(path);
    }
}

fn join(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

fn int32(n: &Number) -> Option<Value> {
    n.as_i64().and_then(|i| i32::try_from(i).ok()).map(Value::from)
}

fn wording(e: ParseError) -> TypeError {
    TypeError(e.to_string())
}

/// A float as Go prints it: without a fraction when it has none.
pub(super) fn float(f: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    if f.fract() == 0.0 && f.abs() < 9e15 { Value::from(f as i64) } else { Value::from(f) }
}

/// Applies the encoder's rules to the fields of one struct: `present` holds encoded values, and a field
/// that is not there has Go's zero value.
pub(super) fn finish(types: &Types, ty: &Type, mut present: Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    for f in &ty.flat {
        match present.remove(f.name) {
            Some(value) if keeps(types, f, &value) => {
                out.insert(f.name.to_owned(), value);
            }
            None if !omits_zero(f) => {
                out.insert(f.name.to_owned(), zero(types, &f.ty));
            }
            _ => {}
        }
    }
    out
}

fn omits_zero(f: &Field) -> bool {
    f.omit_zero || (f.omit_empty && can_be_empty(&f.ty))
}

/// `omitempty` never drops a struct.
fn can_be_empty(ty: &Ty) -> bool {
    !matches!(
        ty.shape,
        Shape::Struct(_)
            | Shape::Time
            | Shape::MicroTime
            | Shape::Quantity
            | Shape::IntOrString
            | Shape::Raw
            | Shape::FieldsV1
            | Shape::Json
            | Shape::PropsOrArray
            | Shape::PropsOrBool
            | Shape::PropsOrStrings
    )
}

fn keeps(types: &Types, f: &Field, value: &Value) -> bool {
    if f.ty.is_pointer() {
        return true;
    }
    if f.omit_zero && *value == zero(types, &f.ty) {
        return false;
    }
    !(f.omit_empty && can_be_empty(&f.ty) && is_empty(value))
}

/// The encoded zero value of a type. Structs contain each other by value only finitely deep.
pub(super) fn zero(types: &Types, ty: &Ty) -> Value {
    match &ty.shape {
        Shape::String => "".into(),
        Shape::Bool | Shape::PropsOrBool => false.into(),
        Shape::Int32 | Shape::Int64 | Shape::Float64 | Shape::IntOrString => 0.into(),
        Shape::Quantity => "0".into(),
        Shape::Struct(index) => zero_struct(types, types.at(*index)),
        _ => Value::Null,
    }
}

pub(super) fn zero_struct(types: &Types, ty: &Type) -> Value {
    Value::Object(finish(types, ty, Map::new()))
}

/// Standard base64 as Go reads it (line breaks ignored); the error is the offset Go reports.
fn decode_base64(src: &[u8]) -> Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(src.len() / 4 * 3);
    let (mut bits, mut count, mut i) = (0u32, 0usize, 0usize);
    while i < src.len() {
        let c = src[i];
        i += 1;
        match sextet(c) {
            Some(v) => {
                bits = bits << 6 | u32::from(v);
                count += 1;
                if count == 4 {
                    out.extend_from_slice(&bits.to_be_bytes()[1..]);
                    (bits, count) = (0, 0);
                }
            }
            None if c == b'\n' || c == b'\r' => {}
            None if c == b'=' && count >= 2 => return padding(src, i, bits, count, out),
            None => return Err(i - 1),
        }
    }
    if count == 0 { Ok(out) } else { Err(i - count) }
}

/// The end of a padded text, after its first `=`.
fn padding(src: &[u8], mut i: usize, bits: u32, count: usize, mut out: Vec<u8>) -> Result<Vec<u8>, usize> {
    let skip = |i: &mut usize| {
        while src.get(*i).is_some_and(|c| matches!(c, b'\n' | b'\r')) {
            *i += 1;
        }
    };
    if count == 2 {
        skip(&mut i);
        match src.get(i) {
            None => return Err(src.len()),
            Some(b'=') => i += 1,
            Some(_) => return Err(i - 1),
        }
    }
    skip(&mut i);
    if i < src.len() {
        return Err(i);
    }
    let bytes = (bits << (6 * (4 - count))).to_be_bytes();
    out.extend_from_slice(&bytes[1..count]);
    Ok(out)
}

fn sextet(c: u8) -> Option<u8> {
    match c {
        b'A'..=b'Z' => Some(c - b'A'),
        b'a'..=b'z' => Some(c - b'a' + 26),
        b'0'..=b'9' => Some(c - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}
