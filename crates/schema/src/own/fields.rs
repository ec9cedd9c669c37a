//! `FieldsV1`: the JSON of a field set, as `metadata.managedFields` carries it.
//!
//! Every key names an element (`f:name`, `k:{"key":…}`, `v:…`, `i:0`); a node that is a member and has
//! children as well contains `".": {}`, a node without children is a member.

use super::element::Element;
use super::set::Set;
use super::wording;
use serde_json::{Map, Value};
use std::sync::Arc;
use transom_object::json::encode_escaped;

/// Why a text is not a field set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

impl Element {
    /// Parses an element; `None` for a kind this version does not know, which is to be ignored.
    pub fn parse(text: &str) -> Result<Option<Self>, Malformed> {
        let bytes = text.as_bytes();
        if bytes.len() < 2 {
            return Err(Malformed("key must be 2 characters long:".to_owned()));
        }
        if bytes[1] != b':' {
            return Err(Malformed(format!("missing colon: {text}")));
        }
        let body = &text[2..];
        let invalid = |e: &dyn std::fmt::Display| Malformed(format!("parsing {text:?} as path element: {e}"));
        Ok(Some(match bytes[0] {
            b'f' => Self::field(body),
            b'v' => Self::value(serde_json::from_str(body).map_err(|e| invalid(&e))?),
            b'k' => {
                let fields: Option<Map<String, Value>> =
                    serde_json::from_str(body).map_err(|e| invalid(&e))?;
                Self::key(fields.unwrap_or_default().into_iter().map(|(k, v)| (k.into(), v)).collect())
            }
            b'i' => Self::Index(body.parse().map_err(|e| invalid(&e))?),
            _ => return Ok(None),
        }))
    }

    /// The key of this element in `FieldsV1`.
    pub fn to_key(&self) -> String {
        let mut out = String::new();
        match self {
            Self::Field(name) => {
                out.push_str("f:");
                out.push_str(name);
            }
            Self::Key(fields) => {
                out.push_str("k:{");
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    wording::write_json_string(name, &mut out);
                    out.push(':');
                    out.push_str(&encode_escaped(value));
                }
                out.push('}');
            }
            Self::Value(value) => {
                out.push_str("v:");
                out.push_str(&encode_escaped(value));
            }
            Self::Index(i) => {
                out.push_str("i:");
                out.push_str(&i.to_string());
            }
        }
        out
    }
}

impl Set {
    /// The set as a JSON tree.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (element, child) in self.nodes() {
            let mut inner = match child.children {
                Some(set) => match set.to_value() {
                    Value::Object(inner) => inner,
                    _ => Map::new(),
                },
                None => Map::new(),
            };
            if child.member && !inner.is_empty() {
                inner.insert(".".to_owned(), Value::Object(Map::new()));
            }
            map.insert(element.to_key(), Value::Object(inner));
        }
        Value::Object(map)
    }

    /// The set as JSON text, in the order of its elements.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write(false, &mut out);
        out
    }

    fn write(&self, member: bool, out: &mut String) {
        out.push('{');
        let mut first = true;
        if member && !(self.members().is_empty() && self.children().is_empty()) {
            out.push_str("\".\":{}");
            first = false;
        }
        for (element, node) in self.nodes() {
            if !first {
                out.push(',');
            }
            first = false;
            wording::write_json_string(&element.to_key(), out);
            out.push(':');
            match node.children {
                Some(set) => set.write(node.member, out),
                None => out.push_str("{}"),
            }
        }
        out.push('}');
    }

    /// Reads a set out of a JSON tree. Kinds of elements that are not known are dropped.
    pub fn from_fields(value: &Value) -> Result<Self, Malformed> {
        match value {
            Value::Null => Ok(Self::default()),
            _ => Ok(read(value)?.0.unwrap_or_default()),
        }
    }

    /// Reads a set out of JSON text.
    pub fn from_json(text: &str) -> Result<Self, Malformed> {
        let value: Value = serde_json::from_str(text).map_err(|e| Malformed(e.to_string()))?;
        Self::from_fields(&value)
    }
}

/// The children of a node, and whether the node is a member of its parent.
fn read(value: &Value) -> Result<(Option<Set>, bool), Malformed> {
    let map = match value {
        Value::Object(map) => map,
        Value::Null => return Ok((None, true)),
        other => return Err(Malformed(format!("expected an object in a field set, got {other}"))),
    };
    let mut member = false;
    let mut members = Vec::new();
    let mut children = Vec::new();
    for (key, inner) in map {
        if key == "." {
            member = true;
            continue;
        }
        let Some(element) = Element::parse(key)? else { continue };
        let (grandchildren, is_member) = read(inner)?;
        if is_member {
            members.push(element.clone());
        }
        if let Some(set) = grandchildren {
            children.push((element, Arc::new(set)));
        }
    }
    if members.is_empty() && children.is_empty() {
        return Ok((None, true));
    }
    Ok((Some(Set::from_unsorted(members, children)), member))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_any_order_and_writes_the_canonical_one() {
        let text = r#"{"i:10":{},"i:9":{},"v:10":{},"v:9":{},"v:\"a\"":{},"k:{\"b\":1,\"a\":\"<\"}":{".":{},"f:x":{}},"f:b":{},"f:a":{"f:c":{}},"z:future":{}}"#;
        let set = Set::from_json(text).unwrap();
        assert_eq!(
            set.to_json(),
            r#"{"f:a":{"f:c":{}},"f:b":{},"k:{\"a\":\"\\u003c\",\"b\":1}":{".":{},"f:x":{}},"v:9":{},"v:10":{},"v:\"a\"":{},"i:9":{},"i:10":{}}"#
        );
        assert_eq!(Set::from_fields(&set.to_value()).unwrap(), set);
    }

    #[test]
    fn garbage_is_an_error() {
        for bad in [
            "[]",
            "1",
            r#"{"a":{}}"#,
            r#"{"fx":{}}"#,
            r#"{"f:a":1}"#,
            r#"{"k:{":{}}"#,
            r#"{"v:x":{}}"#,
            r#"{"i:1.5":{}}"#,
        ] {
            assert!(Set::from_json(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn null_and_empty_are_empty() {
        assert!(Set::from_fields(&Value::Null).unwrap().is_empty());
        assert!(Set::from_fields(&json!({})).unwrap().is_empty());
        assert!(
            Set::from_fields(&json!({"f:a": null})).unwrap()
                == Set::from_fields(&json!({"f:a": {}})).unwrap()
        );
    }
}
