//! Validation errors that name a field, worded as Kubernetes words them, and paths to such fields.

use crate::json;
use crate::quote::quote;
use serde_json::{Number, Value};
use std::fmt;
use transom_go::strconv::shortest_float;

/// A path such as `spec.versions[0].schema` or `metadata.labels[app.kubernetes.io/name]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(String);

impl Path {
    /// The object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// A field of the object.
    pub fn new(first: &str) -> Self {
        Self(first.to_owned())
    }

    /// A field of what the path names.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self(format!("{}.{name}", self.0)) }
    }

    /// An element of the list that the path names.
    #[must_use]
    pub fn index(&self, i: usize) -> Self {
        Self(format!("{}[{i}]", self.0))
    }

    /// An entry of the map that the path names.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    /// The text; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it names the object itself.
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
    /// A reference to something that does not exist.
    NotFound,
    /// A value that must be there.
    Required,
    /// A value that must be unique.
    Duplicate,
    /// A malformed value.
    Invalid,
    /// A value that is not one of those allowed.
    NotSupported,
    /// A value that must not be set.
    Forbidden,
    /// More bytes or characters than allowed.
    TooLong,
    /// Fewer characters than required.
    TooShort,
    /// More items than allowed.
    TooMany,
    /// Fewer items than required.
    TooFew,
    /// A failure of the validation itself.
    Internal,
    /// A value of the wrong type.
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
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
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
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
        }
    }
}

/// One violation: which field, what kind, the offending value, and a sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// What is wrong.
    pub kind: Kind,
    /// The path of the field.
    pub field: String,
    /// Printed for the kinds that show a value; see [`fmt::Display`].
    pub value: Value,
    /// What would be right.
    pub detail: String,
}

impl Error {
    /// An error of any kind.
    pub fn new(kind: Kind, field: &Path, value: Value, detail: impl Into<String>) -> Self {
        Self { kind, field: field.to_string(), value, detail: detail.into() }
    }

    /// The field must be set.
    pub fn required(field: &Path, detail: impl Into<String>) -> Self {
        Self::new(Kind::Required, field, Value::Null, detail)
    }

    /// The value is malformed.
    pub fn invalid(field: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, field, value.into(), detail)
    }

    /// The value is of the wrong type.
    pub fn type_invalid(field: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(Kind::TypeInvalid, field, value.into(), detail)
    }

    /// The value occurs more than once.
    pub fn duplicate(field: &Path, value: impl Into<Value>) -> Self {
        Self::new(Kind::Duplicate, field, value.into(), "")
    }

    /// The field must not be set.
    pub fn forbidden(field: &Path, detail: impl Into<String>) -> Self {
        Self::new(Kind::Forbidden, field, Value::Null, detail)
    }

    /// What the value refers to does not exist.
    pub fn not_found(field: &Path, value: impl Into<Value>) -> Self {
        Self::new(Kind::NotFound, field, value.into(), "")
    }

    /// The field could not be validated.
    pub fn internal(field: &Path, detail: impl Into<String>) -> Self {
        Self::new(Kind::Internal, field, Value::Null, detail)
    }

    /// `supported` is printed as given; upstream sorts it where the set has no order of its own.
    pub fn not_supported(field: &Path, value: impl Into<Value>, supported: &[&str]) -> Self {
        let detail = if supported.is_empty() {
            String::new()
        } else {
            let quoted: Vec<String> = supported.iter().map(|s| quote(s)).collect();
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(Kind::NotSupported, field, value.into(), detail)
    }

    /// A negative `max_bytes` leaves the limit unsaid.
    pub fn too_long(field: &Path, max_bytes: i64) -> Self {
        let detail = limit("may not be more than", max_bytes, "byte", "value is too long");
        Self::new(Kind::TooLong, field, Value::Null, detail)
    }

    /// As [`Error::too_long`], for a limit in characters.
    pub fn too_long_characters(field: &Path, max: i64) -> Self {
        let detail = limit("may not be more than", max, "character", "value is too long");
        Self::new(Kind::TooLong, field, Value::Null, detail)
    }

    /// A negative `min` leaves the limit unsaid.
    pub fn too_short(field: &Path, value: impl Into<Value>, min: i64) -> Self {
        let detail = limit("must be at least", min, "character", "value is too short");
        Self::new(Kind::TooShort, field, value.into(), detail)
    }

    /// A negative `actual` leaves the number unsaid.
    pub fn too_many(field: &Path, actual: i64, max: i64) -> Self {
        let detail = limit("must have at most", max, "item", "has too many items");
        let value = if actual >= 0 { Value::from(actual) } else { Value::from(UNSPECIFIED) };
        Self::new(Kind::TooMany, field, value, detail)
    }

    /// A negative `min` leaves the limit unsaid.
    pub fn too_few(field: &Path, actual: i64, min: i64) -> Self {
        let detail = limit("must have at least", min, "item", "has too few items");
        Self::new(Kind::TooFew, field, Value::from(actual), detail)
    }

    /// The message without the field, as a Status cause carries it.
    pub fn body(&self) -> String {
        let words = self.kind.words();
        let mut s = match self.kind {
            Kind::Required | Kind::Forbidden | Kind::TooLong | Kind::TooShort | Kind::Internal => {
                words.to_owned()
            }
            _ if self.value == UNSPECIFIED => words.to_owned(),
            _ => format!("{words}: {}", show_value(&self.value)),
        };
        if !self.detail.is_empty() {
            s.push_str(": ");
            s.push_str(&self.detail);
        }
        s
    }
}

/// Stands for a value that is not to be shown.
const UNSPECIFIED: &str = "<unspecified>";

/// `must have at most 1 item`, or `otherwise` for a negative limit.
fn limit(words: &str, n: i64, unit: &str, otherwise: &str) -> String {
    match n {
        i64::MIN..=-1 => otherwise.to_owned(),
        1 => format!("{words} 1 {unit}"),
        _ => format!("{words} {n} {unit}s"),
    }
}

/// Scalars as Go's `%v` and `%q` print them, the rest as Go's `encoding/json` does.
fn show_value(value: &Value) -> String {
    match value {
        Value::String(s) => quote(s),
        Value::Number(n) => go_number(n),
        other => json::encode_escaped(other),
    }
}

/// A number as Go holds it after decoding JSON (an `int64`, or else a `float64`) and prints it with `%v`.
pub(crate) fn go_number(n: &Number) -> String {
    match (n.as_i64(), n.as_f64()) {
        (Some(i), _) => i.to_string(),
        (None, Some(f)) => shortest_float(f),
        (None, None) => n.to_string(),
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
    let unique: Vec<String> =
        errors.iter().map(ToString::to_string).filter(|m| seen.insert(m.clone())).collect();
    match unique.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bodies_read_as_upstream() {
        let p = Path::new("spec").child("list").index(2).key("a/b").child("x");
        assert_eq!(p.as_str(), "spec.list[2][a/b].x");
        for (error, text) in [
            (Error::required(&p, "why"), "Required value: why"),
            (Error::invalid(&p, "a\u{7}b", "why"), r#"Invalid value: "a\ab": why"#),
            (
                Error::invalid(&p, json!({"a": "<&>", "b": [1.0, 1e21, 1e-7]}), ""),
                r#"Invalid value: {"a":"\u003c\u0026\u003e","b":[1,1e+21,1e-7]}"#,
            ),
            (Error::invalid(&p, 2.5, ""), "Invalid value: 2.5"),
            (Error::invalid(&p, 3.0, ""), "Invalid value: 3"),
            (Error::invalid(&p, 1e-5, ""), "Invalid value: 1e-05"),
            (Error::invalid(&p, 1.5e300, ""), "Invalid value: 1.5e+300"),
            (Error::invalid(&p, 123_456.7, ""), "Invalid value: 123456.7"),
            (Error::invalid(&p, 2_147_483_648.0, ""), "Invalid value: 2.147483648e+09"),
            (Error::invalid(&p, u64::MAX, ""), "Invalid value: 1.8446744073709552e+19"),
            (Error::invalid(&p, 0.00001, ""), "Invalid value: 1e-05"),
            (Error::invalid(&p, Value::Null, ""), "Invalid value: null"),
            (Error::duplicate(&p, 7), "Duplicate value: 7"),
            (
                Error::not_supported(&p, "x", &["a", "b"]),
                r#"Unsupported value: "x": supported values: "a", "b""#,
            ),
            (Error::too_long(&p, 1), "Too long: may not be more than 1 byte"),
            (Error::too_long(&p, -1), "Too long: value is too long"),
            (Error::too_long_characters(&p, 5), "Too long: may not be more than 5 characters"),
            (Error::too_short(&p, "x", 2), "Too short: must be at least 2 characters"),
            (Error::too_many(&p, 3, 1), "Too many: 3: must have at most 1 item"),
            (Error::too_many(&p, -1, -1), "Too many: has too many items"),
            (Error::too_few(&p, 0, 2), "Too few: 0: must have at least 2 items"),
            (Error::internal(&p, "boom"), "Internal error: boom"),
        ] {
            assert_eq!(error.body(), text);
        }
    }

    #[test]
    fn aggregates_drop_repetitions() {
        let e = |s: &str| Error::required(&Path::new(s), "");
        assert_eq!(aggregate(&[e("a"), e("a")]), "a: Required value");
        assert_eq!(aggregate(&[e("a"), e("b"), e("a")]), "[a: Required value, b: Required value]");
        assert_eq!(Error::required(&Path::root(), "").to_string(), "<nil>: Required value");
    }
}
