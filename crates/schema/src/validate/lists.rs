//! Uniqueness in lists of type `set` (by value) and `map` (by key fields).

use crate::model::{Additional, ListType, Schema};
use crate::trail::Trail;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::hash::Hash;
use transom_object::field::{self, Path};

/// Repeated items of sets and repeated keys of map lists. An update of an object that already had such
/// repetitions is let through, so that it can be repaired step by step.
pub fn list_types(new: &Value, old: Option<&Value>, schema: &Schema, path: &Path) -> Vec<field::Error> {
    let errors = check(new, schema, path);
    if !errors.is_empty() && old.is_some_and(|old| !check(old, schema, path).is_empty()) {
        return Vec::new();
    }
    errors
}

fn check(value: &Value, schema: &Schema, path: &Path) -> Vec<field::Error> {
    let mut found = Found { base: path, errors: Vec::new() };
    found.value(value, schema, &Trail::Root);
    found.errors
}

struct Found<'p> {
    base: &'p Path,
    errors: Vec<field::Error>,
}

impl Found<'_> {
    fn value(&mut self, value: &Value, schema: &Schema, trail: &Trail<'_>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if let Additional::Schema(values) = &schema.additional {
                        self.value(value, values, &trail.key(name));
                    }
                    if let Some(property) = schema.properties.get(name) {
                        self.value(value, property, &trail.property(name));
                    }
                }
            }
            Value::Array(items) => {
                match &schema.list_type {
                    Some(ListType::Set) => self.set(items, trail),
                    Some(ListType::Map(keys)) => self.map(items, keys, trail),
                    Some(ListType::Atomic) | None => {}
                }
                if let Some(schema) = &schema.items {
                    for (i, item) in items.iter().enumerate() {
                        self.value(item, schema, &trail.index(i));
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn set(&mut self, items: &[Value], trail: &Trail<'_>) {
        for i in second_occurrences(items.iter().map(Identity::of)) {
            self.duplicate(trail, i, items[i].clone());
        }
    }

    fn map(&mut self, items: &[Value], keys: &[String], trail: &Trail<'_>) {
        if let Some(i) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
            let path = self.path(&trail.index(i));
            let detail = "must be an object for an array of list-type map";
            self.errors.push(field::Error::invalid(&path, items[i].clone(), detail));
            return;
        }
        let identity = |item| -> Vec<Identity<'_>> {
            keys.iter().map(|key| Value::get(item, key).map_or(Identity::Missing, Identity::of)).collect()
        };
        for i in second_occurrences(items.iter().map(identity)) {
            let key: Map<String, Value> =
                keys.iter().filter_map(|key| Some((key.clone(), items[i].get(key)?.clone()))).collect();
            self.duplicate(trail, i, Value::Object(key));
        }
    }

    fn duplicate(&mut self, trail: &Trail<'_>, index: usize, value: Value) {
        let path = self.path(&trail.index(index));
        self.errors.push(field::Error::duplicate(&path, value));
    }

    fn path(&self, trail: &Trail<'_>) -> Path {
        let relative = trail.to_string();
        if relative.is_empty() { self.base.clone() } else { self.base.child(&relative) }
    }
}

/// What makes two values the same item. Compound values are the same when they are written the same.
#[derive(PartialEq, Eq, Hash)]
enum Identity<'v> {
    /// A key field that is not there; that is not `null`.
    Missing,
    Null,
    Bool(bool),
    Int(i64),
    Float(u64),
    Str(&'v str),
    Compound(String),
}

impl<'v> Identity<'v> {
    fn of(value: &'v Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(*b),
            Value::String(s) => Self::Str(s),
            Value::Number(n) => match n.as_i64() {
                Some(i) => Self::Int(i),
                None => Self::Float(n.as_f64().unwrap_or(f64::NAN).to_bits()),
            },
            Value::Array(_) | Value::Object(_) => Self::Compound(value.to_string()),
        }
    }
}

/// Where each repeated item repeats for the first time.
fn second_occurrences<T: Eq + Hash>(items: impl ExactSizeIterator<Item = T>) -> Vec<usize> {
    if items.len() < 2 {
        return Vec::new();
    }
    let mut seen: HashMap<T, u32> = HashMap::with_capacity(items.len());
    let mut repeated = Vec::new();
    for (i, item) in items.enumerate() {
        let times = seen.entry(item).or_default();
        *times += 1;
        if *times == 2 {
            repeated.push(i);
        }
    }
    repeated
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structural::parse;
    use serde_json::json;

    fn run(new: &Value, old: Option<&Value>) -> Vec<String> {
        let schema = parse(&json!({"type": "object", "properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
                "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}},
            "by": {"type": "object", "additionalProperties":
                {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}}},
        }}))
        .unwrap();
        list_types(new, old, &schema, &Path::root()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn repetitions_are_reported_once_where_they_begin() {
        assert_eq!(run(&json!({"set": ["x", "y", "x", "x"]}), None), [r#"set[2]: Duplicate value: "x""#]);
        assert_eq!(
            run(
                &json!({"map": [{"a": "1", "b": "2"}, {"a": "1"}, {"a": "1", "b": "2", "c": 3}, {"a": "1"}]}),
                None
            ),
            [r#"map[2]: Duplicate value: {"a":"1","b":"2"}"#, r#"map[3]: Duplicate value: {"a":"1"}"#]
        );
        assert_eq!(run(&json!({"by": {"k": [1, 1]}}), None), ["by[k][1]: Duplicate value: 1"]);
        assert_eq!(
            run(&json!({"map": [{"a": "1"}, 4]}), None),
            ["map[1]: Invalid value: 4: must be an object for an array of list-type map"]
        );
    }

    #[test]
    fn an_object_that_was_wrong_may_stay_wrong() {
        assert!(run(&json!({"set": ["x", "x"]}), Some(&json!({"set": ["y", "y"]}))).is_empty());
        assert_eq!(run(&json!({"set": ["x", "x"]}), Some(&json!({"set": ["x"]}))).len(), 1);
    }
}
