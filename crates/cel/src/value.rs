//! Values. Lists and maps either own their elements or look into a JSON document through its schema, so that
//! evaluating a rule never copies the object.

use super::opaque::Opaque;
use super::time::Instant;
use super::view::{self, DocumentSchema};
use serde_json::Value as Json;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use transom_go::encoding::base64_encode;

/// Why an evaluation has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// The arguments have types that no overload takes; carries what was called, if that is known.
    NoSuchOverload(String),
    /// The evaluation did more work than its budget allows.
    CostExceeded,
    /// `no such key: x`, `division by zero` and so on.
    Failed(String),
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchOverload(what) if what.is_empty() => f.write_str("no such overload"),
            Self::NoSuchOverload(what) => write!(f, "no such overload: {what}"),
            Self::CostExceeded => f.write_str("operation cancelled: actual cost limit exceeded"),
            Self::Failed(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for EvalError {}

impl EvalError {
    /// A failure with its message.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    pub(crate) fn overload() -> Self {
        Self::NoSuchOverload(String::new())
    }
}

/// A CEL value. `'a` is how long the documents and schemas live that it looks into.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `bool`
    Bool(bool),
    /// `int`
    Int(i64),
    /// `uint`
    Uint(u64),
    /// `double`
    Double(f64),
    /// `string`
    String(Text<'a>),
    /// `bytes`
    Bytes(Arc<[u8]>),
    /// `list`
    List(List<'a>),
    /// `map`, or an object.
    Map(Map<'a>),
    /// `google.protobuf.Timestamp`
    Timestamp(Instant),
    /// Nanoseconds.
    Duration(i64),
    /// A type, by its name.
    Type(&'static str),
    /// `optional_type`
    Optional(Option<Arc<Value<'a>>>),
    /// A value of one of Kubernetes' libraries.
    Opaque(Arc<Opaque>),
    /// Data that a schema preserves without describing it. Only good for comparing.
    Preserved(&'a Json),
}

/// A string: borrowed from a document, or shared.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    /// Part of a document.
    Borrowed(&'a str),
    /// Made by an expression.
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(s) => s,
            Self::Shared(s) => s,
        }
    }
}

/// A list, and what makes two of its kind equal.
#[derive(Clone, Debug)]
pub struct List<'a> {
    pub(crate) items: Items<'a>,
    pub(crate) identity: Identity<'a>,
}

#[derive(Clone, Debug)]
pub(crate) enum Items<'a> {
    Owned(Arc<Vec<Value<'a>>>),
    /// Elements of a document, with the schema of each.
    Json(&'a [Json], Option<&'a dyn DocumentSchema>),
}

/// `x-kubernetes-list-type`: what identifies an element.
#[derive(Clone, Copy, Debug)]
pub enum Identity<'a> {
    /// Its position: an ordinary list.
    Position,
    /// Its value: a set.
    Value,
    /// The values of these keys: a list that is a map.
    Keys(&'a [String]),
}

impl<'a> List<'a> {
    /// Elements of a document, each seen through the schema of the list's items.
    pub fn of_document(items: &'a [Json], item: &'a dyn DocumentSchema, identity: Identity<'a>) -> Self {
        Self { items: Items::Json(items, Some(item)), identity }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.items {
            Items::Owned(items) => items.len(),
            Items::Json(items, _) => items.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Result<Value<'a>, EvalError>> {
        match &self.items {
            Items::Owned(items) => items.get(index).cloned().map(Ok),
            Items::Json(items, schema) => items.get(index).map(|v| view::read(v, *schema)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, EvalError>> + '_ {
        (0..self.len()).filter_map(|i| self.get(i))
    }

    pub(crate) fn to_vec(&self) -> Result<Vec<Value<'a>>, EvalError> {
        self.iter().collect()
    }
}

impl<'a> From<Vec<Value<'a>>> for List<'a> {
    fn from(items: Vec<Value<'a>>) -> Self {
        Self { items: Items::Owned(Arc::new(items)), identity: Identity::Position }
    }
}

/// A map, or an object.
#[derive(Clone, Debug)]
pub enum Map<'a> {
    /// Made by an expression.
    Owned(Arc<BTreeMap<Key, Value<'a>>>),
    /// Part of a document.
    Json(view::Object<'a>),
    /// A protobuf message.
    Message(Arc<Message<'a>>),
}

/// A protobuf message. All of its fields have a value, but not all are set, which `has` tests.
#[derive(Clone, Debug, Default)]
pub struct Message<'a>(BTreeMap<&'static str, Field<'a>>);

#[derive(Clone, Debug)]
struct Field<'a> {
    value: Value<'a>,
    set: bool,
}

impl<'a> Message<'a> {
    /// A message without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// The message with one more field: its value, or its default when it is not set.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: Value<'a>, set: bool) -> Self {
        self.0.insert(name, Field { value, set });
        self
    }

    fn find(&self, name: &str) -> Option<Value<'a>> {
        self.0.get(name).map(|field| field.value.clone())
    }
}

impl<'a> From<Message<'a>> for Value<'a> {
    fn from(message: Message<'a>) -> Self {
        Self::Map(Map::Message(Arc::new(message)))
    }
}

/// A key of a map built by an expression. An int and a uint of the same number are the same key.
#[derive(Clone, Debug)]
pub enum Key {
    /// `bool`
    Bool(bool),
    /// `int`
    Int(i64),
    /// `uint`
    Uint(u64),
    /// `string`
    String(Arc<str>),
}

impl Key {
    fn number(&self) -> Option<i128> {
        match self {
            Self::Int(n) => Some(i128::from(*n)),
            Self::Uint(n) => Some(i128::from(*n)),
            _ => None,
        }
    }

    pub(crate) fn to_value<'a>(&self) -> Value<'a> {
        match self {
            Self::Bool(b) => Value::Bool(*b),
            Self::Int(n) => Value::Int(*n),
            Self::Uint(n) => Value::Uint(*n),
            Self::String(s) => Value::String(Text::Shared(s.clone())),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the double is checked to be integral and in range")]
    pub(crate) fn from_value(value: &Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Bool(b) => Self::Bool(*b),
            Value::Int(n) => Self::Int(*n),
            Value::Uint(n) => Self::Uint(*n),
            Value::String(s) => Self::String(Arc::from(&**s)),
            Value::Double(d) if d.fract() == 0.0 && d.abs() < 9e15 => Self::Int(*d as i64),
            _ => return None,
        })
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::String(a), Self::String(b)) => a.cmp(b),
            (a, b) => match (a.number(), b.number()) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => rank(a).cmp(&rank(b)),
            },
        }
    }
}

fn rank(key: &Key) -> u8 {
    match key {
        Key::Bool(_) => 0,
        Key::Int(_) | Key::Uint(_) => 1,
        Key::String(_) => 2,
    }
}

impl<'a> Map<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Owned(map) => map.len(),
            Self::Json(object) => object.len(),
            Self::Message(message) => message.0.len(),
        }
    }

    /// The value at a key, or `None` when there is none.
    pub(crate) fn find(&self, key: &Value<'_>) -> Result<Option<Value<'a>>, EvalError> {
        match self {
            Self::Owned(map) => {
                if !matches!(
                    key,
                    Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_)
                ) {
                    return Err(EvalError::failed(format!("unsupported key type: {}", key.type_name())));
                }
                Ok(Key::from_value(key).and_then(|k| map.get(&k).cloned()))
            }
            Self::Json(object) => match key {
                Value::String(name) => object.find(name),
                _ => Err(EvalError::overload()),
            },
            Self::Message(message) => match key {
                Value::String(name) => Ok(message.find(name)),
                _ => Err(EvalError::overload()),
            },
        }
    }

    pub(crate) fn find_name(&self, name: &str) -> Result<Option<Value<'a>>, EvalError> {
        match self {
            Self::Owned(map) => Ok(map.get(&Key::String(Arc::from(name))).cloned()),
            Self::Json(object) => object.find(name),
            Self::Message(message) => Ok(message.find(name)),
        }
    }

    /// Like [`find_name`](Self::find_name), but nothing for a field of a message that is not set.
    pub(crate) fn find_present(&self, name: &str) -> Result<Option<Value<'a>>, EvalError> {
        match self {
            Self::Message(message) if !message.0.get(name).is_some_and(|field| field.set) => Ok(None),
            map => map.find_name(name),
        }
    }

    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Self::Owned(map) => map.keys().map(Key::to_value).collect(),
            Self::Json(object) => object.keys(),
            Self::Message(message) => {
                message.0.keys().map(|name| Value::String(Text::Borrowed(name))).collect()
            }
        }
    }
}

impl<'a> Value<'a> {
    pub(crate) fn text(s: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Shared(s.into()))
    }

    pub(crate) fn list(items: Vec<Value<'a>>) -> Self {
        Self::List(items.into())
    }

    pub(crate) fn some(value: Value<'a>) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    pub(crate) fn opaque(value: Opaque) -> Self {
        Self::Opaque(Arc::new(value))
    }

    /// A document without a schema: integers are ints, other numbers doubles.
    pub fn from_json(json: &'a Json) -> Self {
        view::dynamic(json)
    }

    /// A document seen through its schema. Fails where the two do not agree.
    pub fn from_json_with(json: &'a Json, schema: &'a dyn DocumentSchema) -> Result<Self, EvalError> {
        schema.read(json)
    }

    /// The name of the value's type, as `type(x)` prints it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Type(_) => "type",
            Self::Optional(_) => "optional_type",
            Self::Opaque(o) => o.type_name(),
            Self::Preserved(_) => "unknown",
        }
    }

    /// The size that costs are computed from: elements, entries, code points, bytes; one for everything else.
    pub(crate) fn size(&self) -> u64 {
        let size = match self {
            Self::String(s) => s.chars().count(),
            Self::Bytes(b) => b.len(),
            Self::List(l) => l.len(),
            Self::Map(m) => m.len(),
            Self::Opaque(o) => o.size(),
            Self::Optional(Some(value)) => return value.size(),
            _ => 1,
        };
        u64::try_from(size).unwrap_or(u64::MAX)
    }

    /// The value as JSON, as `google.protobuf.Value` would hold it.
    pub fn to_json(&self) -> Result<Json, EvalError> {
        Ok(match self {
            Self::Null | Self::Optional(None) => Json::Null,
            Self::Bool(b) => Json::from(*b),
            Self::Int(n) => Json::from(*n),
            Self::Uint(n) => Json::from(*n),
            Self::Double(d) => Json::from(*d),
            Self::String(s) => Json::from(&**s),
            Self::Bytes(b) => Json::from(base64_encode(b)),
            Self::List(l) => Json::Array(l.iter().map(|v| v?.to_json()).collect::<Result<_, EvalError>>()?),
            Self::Map(m) => {
                let mut out = serde_json::Map::new();
                for key in m.keys() {
                    let value = m.find(&key)?.unwrap_or(Self::Null);
                    out.insert(super::library::convert::to_text(&key)?, value.to_json()?);
                }
                Json::Object(out)
            }
            Self::Timestamp(t) => Json::from(t.to_string()),
            Self::Duration(_) => Json::from(super::library::convert::to_text(self)?),
            Self::Type(name) => Json::from(*name),
            Self::Optional(Some(v)) => v.to_json()?,
            Self::Opaque(o) => Json::from(o.to_string()),
            Self::Preserved(json) => (*json).clone(),
        })
    }
}
