//! Validation errors that name a field, worded as Kubernetes words them, and paths to such fields.

use serde_json::Value;
use std::fmt;

/// A path such as `spec.versions[0].schema` or `metadata.labels[app.kubernetes.io/name]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(String);

impl Path {
    pub fn root() -> Self {
        Self::default()
    }

    pub fn new(first: &str) -> Self {
        Self(first.to_owned())
    }

    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self(format!("{}.{name}", self.0)) }
    }

    #[must_use]
    pub fn index(&self, i: usize) -> Self {
        Self(format!("{}[{i}]", self.0))
    }

    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Path {
    /// The root prints as `<nil>`, as Go prints a nil path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

/// What is wrong with a field. The wire name of each is `FieldValue…` (see [`Kind::reason`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    NotFound,
    Required,
    Duplicate,
    Invalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooMany,
    Internal,
    TypeInvalid,
}

impl Kind {
    /// The `reason` of a Status cause.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Internal => "InternalError",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }
}

/// One violation: which field, what kind, the offending value, and a sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    pub kind: Kind,
    pub field: String,
    /// Printed for the kinds that show a value; see [`fmt::Display`].
    pub value: Value,
    pub detail: String,
}

impl Error {
    pub fn new(kind: Kind, field: &Path, value: Value, detail: impl Into<String>) -> Self {
        Self { kind, field: field.to_string(), value, detail: detail.into() }
    }

    pub fn required(field: &Path, detail: impl Into<String>) -> Self {
        Self::new(Kind::Required, field, Value::Null, detail)
    }

    pub fn invalid(field: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, field, value.into(), detail)
    }

    pub fn type_invalid(field: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(Kind::TypeInvalid, field, value.into(), detail)
    }

    pub fn duplicate(field: &Path, value: impl Into<Value>) -> Self {
        Self::new(Kind::Duplicate, field, value.into(), "")
    }

    pub fn forbidden(field: &Path, detail: impl Into<String>) -> Self {
        Self::new(Kind::Forbidden, field, Value::Null, detail)
    }

    pub fn not_found(field: &Path, value: impl Into<Value>) -> Self {
        Self::new(Kind::NotFound, field, value.into(), "")
    }

    pub fn internal(field: &Path, detail: impl Into<String>) -> Self {
        Self::new(Kind::Internal, field, Value::Null, detail)
    }

    /// `supported` is printed as given; upstream sorts it where the set has no order of its own.
    pub fn not_supported(field: &Path, value: impl Into<Value>, supported: &[&str]) -> Self {
        let detail = if supported.is_empty() {
            String::new()
        } else {
            let quoted: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(Kind::NotSupported, field, value.into(), detail)
    }

    pub fn too_long(field: &Path, max_bytes: i64) -> Self {
        let detail = if max_bytes >= 0 {
            let unit = if max_bytes == 1 { "byte" } else { "bytes" };
            format!("may not be more than {max_bytes} {unit}")
        } else {
            "value is too long".to_owned()
        };
        Self::new(Kind::TooLong, field, Value::Null, detail)
    }

    pub fn too_many(field: &Path, actual: i64, max: i64) -> Self {
        let detail = if max >= 0 {
            let unit = if max == 1 { "item" } else { "items" };
            format!("must have at most {max} {unit}")
        } else {
            "has too many items".to_owned()
        };
        let value = if actual >= 0 { Value::from(actual) } else { Value::from("<unspecified>") };
        Self::new(Kind::TooMany, field, value, detail)
    }

    /// The message without the field, as a Status cause carries it.
    pub fn body(&self) -> String {
        let words = self.kind.words();
        let mut s = match self.kind {
            Kind::Required | Kind::Forbidden | Kind::TooLong | Kind::Internal => words.to_owned(),
            Kind::TooMany if self.value == "<unspecified>" => words.to_owned(),
            _ => format!("{words}: {}", show_value(&self.value)),
        };
        if !self.detail.is_empty() {
            s.push_str(": ");
            s.push_str(&self.detail);
        }
        s
    }
}

/// Values as Go's `%#v`-like rendering in field errors: strings quoted, `null` for nil, the rest as JSON.
fn show_value(value: &Value) -> String {
    match value {
        Value::String(s) => format!("{s:?}"),
        other => other.to_string(),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// Several violations as one sentence: alone as it is, several as `[a, b]`, repeated ones once.
pub fn aggregate(errors: &[Error]) -> String {
    let mut seen = std::collections::BTreeSet::new();
    let unique: Vec<String> = errors.iter().map(ToString::to_string).filter(|m| seen.insert(m.clone())).collect();
    match unique.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
