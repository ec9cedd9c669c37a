//! One step of a path into an object: a field, a list item by key or by value, or an index.
//!
//! Elements are cheap to clone (their text is shared), because sets are combined far more often than
//! they are built, and they have the total order of Kubernetes: fields, keys, values, indices.

use super::wording;
use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// How to find a child in its parent.
#[derive(Clone, Debug)]
pub enum Element {
    /// A field of a struct or a key of a map.
    Field(Arc<str>),
    /// The item of an associative list that has these key fields, sorted by name.
    Key(Arc<[(Arc<str>, Value)]>),
    /// The item of a set that equals this value.
    Value(Arc<Value>),
    /// The item at this position of a list without keys.
    Index(i64),
}

/// A path from the root of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<Element>);

impl Element {
    /// A field or key by its name.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// A key element; sorts the fields by name.
    pub fn key(mut fields: Vec<(Arc<str>, Value)>) -> Self {
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Self::Key(fields.into())
    }

    /// An item of a set by its value.
    pub fn value(value: Value) -> Self {
        Self::Value(Arc::new(value))
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => compare_fields(a, b),
            (Self::Value(a), Self::Value(b)) => compare(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Element {}

fn compare_fields<K: AsRef<str>>(a: &[(K, Value)], b: &[(K, Value)]) -> Ordering {
    for ((an, av), (bn, bv)) in a.iter().zip(b) {
        let order = an.as_ref().cmp(bn.as_ref()).then_with(|| compare(av, bv));
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

/// The total order of JSON values: numbers, strings, booleans, lists, maps, null. Integers and floats
/// that are numerically equal are equal.
pub fn compare(a: &Value, b: &Value) -> Ordering {
    fn rank(v: &Value) -> u8 {
        match v {
            Value::Number(n) if n.as_i64().is_none() => 0,
            Value::Number(_) => 1,
            Value::String(_) => 2,
            Value::Bool(_) => 3,
            Value::Array(_) => 4,
            Value::Object(_) => 5,
            Value::Null => 6,
        }
    }
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let unequal = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|o| *o != Ordering::Equal);
            unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let unequal = a
                .iter()
                .zip(b)
                .map(|((ak, av), (bk, bv))| ak.cmp(bk).then_with(|| compare(av, bv)))
                .find(|o| *o != Ordering::Equal);
            unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => {
            let float = |n: &Number| n.as_f64().unwrap_or(0.0);
            float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal)
        }
    }
}

/// Whether two values are the same, comparing numbers by value.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((ak, av), (bk, bv))| ak == bk && equal(av, bv))
        }
        _ => a == b,
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                for (i, (name, value)) in fields.iter().enumerate() {
                    let open = if i == 0 { "[" } else { "," };
                    write!(f, "{open}{name}={}", wording::display(value))?;
                }
                f.write_str(if fields.is_empty() { "[]" } else { "]" })
            }
            Self::Value(value) => write!(f, "[={}]", wording::display(value)),
            Self::Index(i) => write!(f, "[{i}]"),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|e| e.fmt(f))
    }
}

impl Path {
    /// A path of field names.
    pub fn of(names: &[&str]) -> Self {
        Self(names.iter().map(|n| Element::field(n)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn elements_sort_by_kind_then_content() {
        let sorted = [
            Element::field("a"),
            Element::field("b"),
            Element::key(vec![("name".into(), json!("a"))]),
            Element::key(vec![("name".into(), json!("a")), ("port".into(), json!(1))]),
            Element::value(json!(1)),
            Element::value(json!(1.5)),
            Element::value(json!("a")),
            Element::value(json!(false)),
            Element::value(json!(null)),
            Element::Index(0),
            Element::Index(7),
        ];
        for pair in sorted.windows(2) {
            assert!(pair[0] < pair[1], "{} < {}", pair[0], pair[1]);
        }
    }

    #[test]
    fn numbers_compare_by_value() {
        assert_eq!(Element::value(json!(1)), Element::value(json!(1.0)));
        assert!(equal(&json!({"a": [1]}), &json!({"a": [1.0]})));
        assert!(!equal(&json!({"a": 1}), &json!({"b": 1})));
    }

    #[test]
    fn paths_print_as_kubernetes_prints_them() {
        let key = Element::key(vec![("port".into(), json!(80)), ("name".into(), json!("a\"b"))]);
        let path = Path(vec![Element::field("spec"), key, Element::value(json!(1.5)), Element::Index(3)]);
        assert_eq!(path.to_string(), r#".spec[name="a\"b",port=80][=1.5][3]"#);
    }
}
