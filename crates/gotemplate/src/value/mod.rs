//! The values templates compute with: Go's dynamic types, as far as templates can have them.
//!
//! Lists and maps are references, as in Go: `set`, `unset`, `merge` and `sortAlpha` change what every holder sees.
//! Strings are byte strings, because Go slices them by byte. The *static* type through which a value was reached
//! (`interface {}` or its own) is not part of the value; the evaluator tracks it where an error message needs it.

mod collection;
mod json;
mod operand;
pub(crate) mod text;

use std::borrow::Cow;
use std::rc::Rc;

pub use collection::{Key, List, ListType, Map, MapType};
pub use json::NestedTooDeeply;
pub use text::Str;

use transom_go::semver::Version;
use transom_go::time::Time;

/// How deep data may nest before functions that walk it give up; Go would exhaust its stack on cyclic data.
pub(crate) const MAX_DEPTH: usize = transom_go::fmt::MAX_DEPTH;

/// A value of a template.
#[derive(Clone, Debug)]
pub enum Value {
    /// Nothing at all: a missing key, the result of a pipeline that was nil. Prints as `<no value>`.
    Missing,
    /// The nil interface: an explicit null. Chaining a field on it is an error, unlike on `Missing`.
    Nil,
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(IntKind, i64),
    /// An unsigned integer.
    Uint(UintKind, u64),
    /// A `float64`.
    Float(f64),
    /// A `complex128`.
    Complex(f64, f64),
    /// A string.
    Str(Str),
    /// A slice.
    List(List),
    /// A map.
    Map(Map),
    /// A struct.
    Struct(Rc<Struct>),
    /// A `time.Time`.
    Time(Rc<Time>),
    /// A named integer type of package time, which prints by its `String` method.
    Named(Named, i64),
    /// A `semver.Version`, or a pointer to one.
    Version(Rc<Version>),
}

/// The signed integer types, named as in Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in Go")]
pub enum IntKind {
    Int,
    Int8,
    Int16,
    Int32,
    Int64,
}

/// The unsigned integer types, named as in Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in Go")]
pub enum UintKind {
    Uint,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
}

/// The named integer types of package time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// `time.Duration`, in nanoseconds.
    Duration,
    /// `time.Month`.
    Month,
    /// `time.Weekday`.
    Weekday,
}

/// A Go struct value with exported fields, such as a certificate with `.Cert` and `.Key`.
#[derive(Debug)]
pub struct Struct {
    /// The type as `%T` prints it.
    pub type_name: Cow<'static, str>,
    /// The fields in order, by their names in Go.
    pub fields: Vec<(&'static str, Value)>,
    /// What it is beyond its fields.
    pub form: Form,
}

/// What a struct is beyond its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Nothing else.
    Plain,
    /// The names of the fields in JSON, each with whether it is left out when empty.
    Tagged(&'static [(&'static str, bool)]),
    /// Embeds the `time.Time` that is its only field: has its methods, prints and marshals as it.
    Instant,
}

impl Struct {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    /// The fields as JSON names them; those that are empty and then left out are not among them.
    pub(crate) fn json_fields(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        let tags = match self.form {
            Form::Tagged(tags) => tags,
            Form::Plain | Form::Instant => &[],
        };
        let tag = |(index, (name, value)): (usize, &'_ (&'static str, Value))| {
            let (tag, optional) = tags.get(index).copied().unwrap_or((name, false));
            (!optional || value.truth()).then_some(tag)
        };
        self.fields.iter().enumerate().filter_map(move |field| Some((tag(field)?, &field.1.1)))
    }

    /// An embedded time in JSON: to the second in UTC, nothing for the zero time.
    pub(crate) fn json_instant(&self) -> Option<String> {
        let time = self.instant().filter(|time| **time != Time::zero())?;
        Some(time.in_zone("UTC").format("2006-01-02T15:04:05Z07:00"))
    }

    /// The time a struct embeds.
    pub(crate) fn instant(&self) -> Option<&Time> {
        match (self.form, self.fields.first()) {
            (Form::Instant, Some((_, Value::Time(time)))) => Some(time),
            _ => None,
        }
    }
}

/// `reflect.Kind`, by the names Go prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in Go")]
pub enum Kind {
    /// No value.
    Invalid,
    Bool,
    Int(IntKind),
    Uint(UintKind),
    Float64,
    Complex128,
    String,
    Slice,
    Map,
    Struct,
    Ptr,
}

impl Kind {
    /// The kind as Go prints it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Invalid => "invalid",
            Kind::Bool => "bool",
            Kind::Int(kind) => kind.name(),
            Kind::Uint(kind) => kind.name(),
            Kind::Float64 => "float64",
            Kind::Complex128 => "complex128",
            Kind::String => "string",
            Kind::Slice => "slice",
            Kind::Map => "map",
            Kind::Struct => "struct",
            Kind::Ptr => "ptr",
        }
    }
}

impl IntKind {
    /// The type as Go prints it.
    pub fn name(self) -> &'static str {
        match self {
            IntKind::Int => "int",
            IntKind::Int8 => "int8",
            IntKind::Int16 => "int16",
            IntKind::Int32 => "int32",
            IntKind::Int64 => "int64",
        }
    }
}

impl UintKind {
    /// The type as Go prints it.
    pub fn name(self) -> &'static str {
        match self {
            UintKind::Uint => "uint",
            UintKind::Uint8 => "uint8",
            UintKind::Uint16 => "uint16",
            UintKind::Uint32 => "uint32",
            UintKind::Uint64 => "uint64",
        }
    }
}

impl Named {
    /// The type as Go prints it.
    pub fn type_name(self) -> &'static str {
        match self {
            Named::Duration => "time.Duration",
            Named::Month => "time.Month",
            Named::Weekday => "time.Weekday",
        }
    }

    /// The type that it is based on.
    pub fn kind(self) -> IntKind {
        match self {
            Named::Duration => IntKind::Int64,
            Named::Month | Named::Weekday => IntKind::Int,
        }
    }

    /// What its `String` method returns.
    pub fn text(self, value: i64) -> String {
        match self {
            Named::Duration => transom_go::time::duration::format(value),
            Named::Month => transom_go::time::month_name(value),
            Named::Weekday => transom_go::time::weekday_name(value),
        }
    }
}

impl Value {
    /// An `int`.
    pub fn int(value: i64) -> Value {
        Value::Int(IntKind::Int, value)
    }

    /// An `int64`.
    pub fn int64(value: i64) -> Value {
        Value::Int(IntKind::Int64, value)
    }

    /// A string.
    pub fn str(value: impl Into<Str>) -> Value {
        Value::Str(value.into())
    }

    /// A `[]interface {}`.
    pub fn list(items: Vec<Value>) -> Value {
        Value::List(List::new(ListType::Any, items))
    }

    /// A `[]string`.
    pub fn strings<S: Into<Str>>(items: impl IntoIterator<Item = S>) -> Value {
        Value::List(List::new(ListType::Str, items.into_iter().map(Value::str).collect()))
    }

    /// A `[]byte`.
    pub fn bytes(bytes: &[u8]) -> Value {
        let items = bytes.iter().map(|byte| Value::Uint(UintKind::Uint8, u64::from(*byte))).collect();
        Value::List(List::new(ListType::Uint8, items))
    }

    /// A `map[string]interface {}`.
    pub fn map<S: Into<Str>>(entries: impl IntoIterator<Item = (S, Value)>) -> Value {
        let map = Map::new(MapType::StrAny);
        for (key, value) in entries {
            map.insert(Key::Str(key.into()), value);
        }
        Value::Map(map)
    }

    /// A struct of a given type that embeds a `time.Time`: the zero time, or one given as RFC 3339 words it.
    pub fn embedded_time(
        type_name: &'static str,
        text: Option<&str>,
    ) -> Result<Value, transom_go::time::ParseError> {
        let time = match text {
            Some(text) => {
                transom_go::time::parse(b"2006-01-02T15:04:05Z07:00", text.as_bytes())?.in_zone("UTC")
            }
            None => Time::zero(),
        };
        let fields = vec![("Time", Value::Time(Rc::new(time)))];
        let type_name = Cow::Borrowed(type_name);
        Ok(Value::Struct(Rc::new(Struct { type_name, fields, form: Form::Instant })))
    }

    /// Whether it is nil or missing.
    pub fn is_nil(&self) -> bool {
        matches!(self, Value::Nil | Value::Missing)
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&Str> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Its kind, as package reflect has it.
    pub fn kind(&self) -> Kind {
        match self {
            Value::Missing | Value::Nil => Kind::Invalid,
            Value::Bool(_) => Kind::Bool,
            Value::Int(kind, _) => Kind::Int(*kind),
            Value::Uint(kind, _) => Kind::Uint(*kind),
            Value::Float(_) => Kind::Float64,
            Value::Complex(..) => Kind::Complex128,
            Value::Str(_) => Kind::String,
            Value::List(_) => Kind::Slice,
            Value::Map(_) => Kind::Map,
            Value::Struct(_) | Value::Time(_) => Kind::Struct,
            Value::Named(named, _) => Kind::Int(named.kind()),
            Value::Version(version) if version.pointer => Kind::Ptr,
            Value::Version(_) => Kind::Struct,
        }
    }

    /// The dynamic type as `%T` prints it, `<nil>` when there is none.
    pub fn type_name(&self) -> Cow<'static, str> {
        let name = match self {
            Value::Missing | Value::Nil => "<nil>",
            Value::List(list) => list.ty().name(),
            Value::Map(map) => map.ty().name(),
            Value::Struct(value) => return value.type_name.clone(),
            Value::Time(_) => "time.Time",
            Value::Named(named, _) => named.type_name(),
            Value::Version(version) if version.pointer => "*semver.Version",
            Value::Version(_) => "semver.Version",
            scalar => scalar.kind().name(),
        };
        Cow::Borrowed(name)
    }

    /// Template truth: false, 0, "", empty and nil are false; structs are always true.
    pub fn truth(&self) -> bool {
        match self {
            Value::Missing | Value::Nil => false,
            Value::Bool(value) => *value,
            Value::Int(_, value) | Value::Named(_, value) => *value != 0,
            Value::Uint(_, value) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Complex(re, im) => *re != 0.0 || *im != 0.0,
            Value::Str(text) => !text.is_empty(),
            Value::List(list) => !list.is_empty(),
            Value::Map(map) => !map.is_empty(),
            Value::Struct(_) | Value::Time(_) | Value::Version(_) => true,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::str(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::str(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}
