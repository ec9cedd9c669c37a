//! Pairing a new value with the old value it came from, as ratcheting and transition rules need it.
//!
//! Two values correlate when the schema gives the place they stand in an identity that survives an update:
//! a property by its name, a map entry by its key, an item of a list of type `map` by its key fields. Items of
//! atomic lists and of sets have no such identity, so nothing below them correlates.
//!
//! A [`Correlated`] is a cheap view (three references): walk with [`Correlated::key`] and
//! [`Correlated::items`], both of which answer `None` where the pairing ends. Nothing is compared until
//! [`Correlated::unchanged`] asks.

use crate::model::{ListType, Schema};
use serde_json::Value;
use std::collections::HashMap;

/// A new value, the old value it correlates with, and the schema of both.
#[derive(Clone, Copy, Debug)]
pub struct Correlated<'a> {
    /// The new value.
    pub new: &'a Value,
    /// The old value.
    pub old: &'a Value,
    /// The schema of both.
    pub schema: &'a Schema,
}

impl<'a> Correlated<'a> {
    /// Correlates two values.
    pub fn new(new: &'a Value, old: &'a Value, schema: &'a Schema) -> Self {
        Self { new, old, schema }
    }

    /// The pair under a property or map key; `None` when either side or the schema lacks it.
    pub fn key(&self, name: &str) -> Option<Correlated<'a>> {
        let schema = self.schema.property(name)?;
        let new = self.new.as_object()?.get(name)?;
        let old = self.old.as_object()?.get(name)?;
        Some(Self { new, old, schema })
    }

    /// The pairs of a list of type `map`; `None` for every other list.
    pub fn items(&self) -> Option<CorrelatedItems<'a>> {
        let new = self.new.as_array()?;
        let old = self.old.as_array()?;
        let schema = self.schema.items.as_deref()?;
        let Some(ListType::Map(keys)) = &self.schema.list_type else { return None };
        Some(CorrelatedItems { new, schema, old: KeyedList::new(keys, old) })
    }

    /// Whether the value is what it was. Items of a list of type `map` may have changed places.
    ///
    /// Fields without a schema (preserved unknown fields, `metadata`) are compared as plain values.
    pub fn unchanged(&self) -> bool {
        match (self.new, self.old) {
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new.iter().all(|(name, value)| match self.key(name) {
                        Some(child) => child.unchanged(),
                        None => old.get(name) == Some(value),
                    })
            }
            (Value::Array(new), Value::Array(old)) if new.len() == old.len() => match self.items() {
                Some(items) if !new.is_empty() => {
                    new == old || (0..new.len()).all(|i| items.get(i).is_some_and(|item| item.unchanged()))
                }
                _ => new == old,
            },
            (new, old) => new == old,
        }
    }
}

/// The items of a new list of type `map`, each with its old counterpart.
#[derive(Debug)]
pub struct CorrelatedItems<'a> {
    new: &'a [Value],
    schema: &'a Schema,
    old: KeyedList<'a>,
}

impl<'a> CorrelatedItems<'a> {
    /// The pair for the item at `index` of the new list; `None` when the item is new or has no usable key.
    pub fn get(&self, index: usize) -> Option<Correlated<'a>> {
        let new = self.new.get(index)?;
        let old = self.old.find(new)?;
        Some(Correlated { new, old, schema: self.schema })
    }
}

/// A list of objects indexed by the values of its key fields. Of several items with one key the first is taken.
#[derive(Debug)]
pub struct KeyedList<'a> {
    keys: &'a [String],
    by_key: HashMap<Vec<Scalar<'a>>, &'a Value>,
}

/// A key value. Floats compare by their bits, so that the key can be hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Scalar<'a> {
    Bool(bool),
    Int(i64),
    Float(u64),
    Str(&'a str),
}

impl<'a> KeyedList<'a> {
    /// Indexes a list by its key fields.
    pub fn new(keys: &'a [String], items: &'a [Value]) -> Self {
        let mut by_key = HashMap::with_capacity(items.len());
        if !keys.is_empty() {
            for item in items {
                if let Some(key) = composite_key(keys, item) {
                    by_key.entry(key).or_insert(item);
                }
            }
        }
        Self { keys, by_key }
    }

    /// The item with the same key values as `item`.
    pub fn find(&self, item: &Value) -> Option<&'a Value> {
        self.by_key.get(&composite_key(self.keys, item)?).copied()
    }
}

/// `None` when a key field is missing or is not a scalar: such an item has no identity.
fn composite_key<'v>(keys: &[String], item: &'v Value) -> Option<Vec<Scalar<'v>>> {
    let fields = item.as_object()?;
    keys.iter()
        .map(|key| match fields.get(key)? {
            Value::Bool(b) => Some(Scalar::Bool(*b)),
            Value::String(s) => Some(Scalar::Str(s)),
            Value::Number(n) => match n.as_i64() {
                Some(i) => Some(Scalar::Int(i)),
                None => n.as_f64().map(|f| Scalar::Float(f.to_bits())),
            },
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structural::parse;
    use serde_json::json;

    fn schema() -> Schema {
        parse(&json!({"type": "object", "properties": {
            "name": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
                "items": {"type": "object", "properties": {
                    "port": {"type": "integer"}, "protocol": {"type": "string"}, "name": {"type": "string"}}}},
            "args": {"type": "array", "items": {"type": "string"}},
        }}))
        .unwrap()
    }

    #[test]
    fn properties_entries_and_keyed_items_correlate_and_atomic_items_do_not() {
        let schema = schema();
        let old = json!({"labels": {"a": "1"}, "args": ["x"], "ports": [
            {"port": 80, "protocol": "TCP", "name": "http"}, {"port": 80, "protocol": "UDP", "name": "quic"}]});
        let new = json!({"name": "n", "labels": {"a": "2", "b": "3"}, "args": ["x"], "ports": [
            {"port": 80, "protocol": "UDP", "name": "h3"}, {"port": 443, "protocol": "TCP"}, {"port": 80}]});
        let root = Correlated::new(&new, &old, &schema);
        assert!(root.key("name").is_none());
        let labels = root.key("labels").unwrap();
        assert_eq!(labels.key("a").unwrap().old, &json!("1"));
        assert!(labels.key("b").is_none());
        assert!(root.key("args").unwrap().items().is_none());
        let ports = root.key("ports").unwrap().items().unwrap();
        assert_eq!(ports.get(0).unwrap().old["name"], "quic");
        assert!(ports.get(1).is_none());
        assert!(ports.get(2).is_none(), "an item without all of its keys has no identity");
        assert!(ports.get(3).is_none());
    }

    #[test]
    fn keyed_items_may_change_places_but_atomic_items_may_not() {
        let schema = schema();
        let (a, b) = (json!({"port": 1, "protocol": "TCP"}), json!({"port": 2, "protocol": "TCP"}));
        let unchanged = |new: Value, old: Value| Correlated::new(&new, &old, &schema).unchanged();
        assert!(unchanged(json!({"ports": [a, b]}), json!({"ports": [b, a]})));
        assert!(!unchanged(json!({"ports": [a]}), json!({"ports": [b]})));
        assert!(!unchanged(json!({"ports": [a]}), json!({"ports": [a, b]})));
        assert!(!unchanged(json!({"args": ["x", "y"]}), json!({"args": ["y", "x"]})));
        assert!(unchanged(
            json!({"args": ["x", "y"], "extra": {"k": 1}}),
            json!({"args": ["x", "y"], "extra": {"k": 1}})
        ));
        assert!(!unchanged(json!({"extra": 1}), json!({"extra": 2})));
    }

    /// The cases of a table of upstream's, where it is at hand.
    fn table(path: &str) -> Vec<Value> {
        transom_testkit::tables::cases(&format!("kubernetes/cel/{path}"))
    }

    /// Upstream's schemas there leave out the types of objects and lists.
    fn typed(schema: &mut Value) {
        let ty = if schema.get("items").is_some() { "array" } else { "object" };
        let map = schema.as_object_mut().expect("a schema");
        map.entry("type").or_insert(ty.into());
        map.get_mut("properties")
            .and_then(Value::as_object_mut)
            .into_iter()
            .flatten()
            .for_each(|(_, v)| typed(v));
        for key in ["items", "additionalProperties"] {
            map.get_mut(key).into_iter().for_each(typed);
        }
    }

    #[test]
    fn correlation_table() {
        for case in table("common/equality/TestCorrelation.cases.json") {
            let inputs = &case["inputs"];
            let mut schema = inputs["Schema"]["Schema"].clone();
            typed(&mut schema);
            let schema = parse(&schema).unwrap_or_else(|e| panic!("{}: {e:?}", case["name"]));
            let root = Correlated::new(&inputs["RootObject"], &inputs["RootOldObject"], &schema);
            let path = inputs["KeyPath"].as_array().expect("a path");
            let found = path.iter().try_fold(root, |at, step| match step.as_str() {
                Some(name) => at.key(name),
                None => at.items()?.get(step.as_u64()? as usize),
            });
            let found = found.map(|pair| (pair.new, pair.old));
            let want = inputs.get("OldValue").map(|old| (&inputs["NewValue"], old));
            assert_eq!(found, want, "{}", case["name"]);
        }
    }

    #[test]
    fn map_list_tables() {
        for case in ["crd-validation", "openapi"]
            .iter()
            .flat_map(|of| table(&format!("{of}/maplist/TestMapList.json")))
        {
            let (inputs, sts) = (&case["inputs"], &case["inputs"]["sts"]);
            let keyed = sts["x-kubernetes-list-type"] == "map";
            let keys = sts["x-kubernetes-list-map-keys"].as_array().filter(|_| keyed);
            let keys: Vec<String> =
                keys.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            let items = inputs["items"].as_array().cloned().unwrap_or_default();
            let found = KeyedList::new(&keys, &items).find(&inputs["query"]);
            assert_eq!(found, case["expected"].get("expected"), "{}", case["name"]);
        }
    }
}
