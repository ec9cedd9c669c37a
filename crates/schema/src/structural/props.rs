//! Reading a schema document of known good shape. Absent, `null` and the zero value are one and the same, as
//! they are for a decoder into Go structs.

use serde_json::{Map, Value};

/// One node of a schema document.
#[derive(Clone, Copy)]
pub(super) struct Props<'a>(&'a Map<String, Value>);

/// `additionalProperties` and `additionalItems`.
#[derive(Clone, Copy)]
pub(super) enum OrBool<'a> {
    Bool(bool),
    Schema(Props<'a>),
}

impl<'a> Props<'a> {
    pub(super) fn read(doc: &'a Value) -> Option<Self> {
        doc.as_object().map(Props)
    }

    pub(super) fn raw(self) -> &'a Map<String, Value> {
        self.0
    }

    pub(super) fn get(self, keyword: &str) -> Option<&'a Value> {
        self.0.get(keyword).filter(|v| !v.is_null())
    }

    pub(super) fn text(self, keyword: &str) -> &'a str {
        self.get(keyword).and_then(Value::as_str).unwrap_or_default()
    }

    /// A string that may be absent, where absent and empty differ.
    pub(super) fn name(self, keyword: &str) -> Option<&'a str> {
        self.get(keyword).and_then(Value::as_str)
    }

    pub(super) fn ty(self) -> &'a str {
        self.text("type")
    }

    pub(super) fn flag(self, keyword: &str) -> bool {
        self.get(keyword).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(super) fn number(self, keyword: &str) -> Option<f64> {
        self.get(keyword).and_then(Value::as_f64)
    }

    pub(super) fn integer(self, keyword: &str) -> Option<i64> {
        self.get(keyword).and_then(Value::as_i64)
    }

    pub(super) fn list(self, keyword: &str) -> &'a [Value] {
        self.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(super) fn names(self, keyword: &str) -> Vec<&'a str> {
        self.list(keyword).iter().filter_map(Value::as_str).collect()
    }

    pub(super) fn child(self, keyword: &str) -> Option<Props<'a>> {
        self.get(keyword).and_then(Props::read)
    }

    pub(super) fn children(self, keyword: &str) -> impl Iterator<Item = Props<'a>> {
        self.list(keyword).iter().filter_map(Props::read)
    }

    pub(super) fn named(self, keyword: &str) -> impl Iterator<Item = (&'a str, Props<'a>)> {
        let entries = self.get(keyword).and_then(Value::as_object);
        entries.into_iter().flatten().filter_map(|(name, v)| Some((name.as_str(), Props::read(v)?)))
    }

    pub(super) fn property(self, name: &str) -> Option<Props<'a>> {
        self.get("properties").and_then(Value::as_object)?.get(name).and_then(Props::read)
    }

    pub(super) fn has_properties(self) -> bool {
        self.get("properties").and_then(Value::as_object).is_some_and(|p| !p.is_empty())
    }

    pub(super) fn additional(self) -> Option<OrBool<'a>> {
        match self.get("additionalProperties")? {
            Value::Bool(b) => Some(OrBool::Bool(*b)),
            other => Props::read(other).map(OrBool::Schema),
        }
    }

    /// Every schema directly below this one, of all keywords.
    pub(super) fn each_child(self, visit: &mut dyn FnMut(Props<'a>)) {
        for keyword in ["not", "items", "additionalProperties", "additionalItems"] {
            self.child(keyword).into_iter().for_each(&mut *visit);
        }
        for keyword in ["items", "allOf", "anyOf", "oneOf"] {
            self.children(keyword).for_each(&mut *visit);
        }
        for keyword in ["properties", "patternProperties", "definitions", "dependencies"] {
            self.named(keyword).for_each(|(_, child)| visit(child));
        }
    }
}
