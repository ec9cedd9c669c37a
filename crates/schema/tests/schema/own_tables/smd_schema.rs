//! Schemas in the format of structured-merge-diff, to ours.
//!
//! Theirs refer to types by name and may be recursive; ours are trees, so recursion is unrolled as deep as
//! any table needs it.

use super::literal::Outcome;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_schema::{Additional, ListType, MapType, Schema, Type};

const DEPTH: usize = 12;

pub(crate) struct Types {
    named: BTreeMap<String, Value>,
    first: String,
}

impl Types {
    pub(crate) fn parse(yaml: &str) -> Outcome<Self> {
        Self::from_value(&transom_object::yaml::read(yaml).map_err(|e| e.to_string())?)
    }

    pub(crate) fn from_value(value: &Value) -> Outcome<Self> {
        let types = value["types"].as_array().ok_or("no types")?;
        let name = |t: &Value| t["name"].as_str().unwrap_or_default().to_owned();
        Ok(Self {
            named: types.iter().map(|t| (name(t), t.clone())).collect(),
            first: types.first().map(name).unwrap_or_default(),
        })
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    pub(crate) fn first(&self) -> &str {
        &self.first
    }

    pub(crate) fn schema(&self, name: &str) -> Option<Arc<Schema>> {
        self.named
            .contains_key(name)
            .then(|| Unroll { types: self, done: BTreeMap::new() }.named(name, DEPTH))
    }
}

struct Unroll<'a> {
    types: &'a Types,
    done: BTreeMap<(String, usize), Arc<Schema>>,
}

/// Nothing known, and replaced as a whole.
fn opaque() -> Schema {
    Schema { map_type: Some(MapType::Atomic), ..Schema::default() }
}

impl Unroll<'_> {
    fn named(&mut self, name: &str, depth: usize) -> Arc<Schema> {
        if let Some(done) = self.done.get(&(name.to_owned(), depth)) {
            return done.clone();
        }
        let schema = Arc::new(match (name, self.types.named.get(name)) {
            ("__untyped_deduced_", _) => Schema::any(),
            ("__untyped_atomic_", _) | (_, None) => opaque(),
            (_, Some(_)) if depth == 0 => opaque(),
            (_, Some(atom)) => self.atom(atom, depth - 1),
        });
        self.done.insert((name.to_owned(), depth), schema.clone());
        schema
    }

    fn reference(&mut self, reference: &Value, depth: usize) -> Arc<Schema> {
        let Some(name) = reference["namedType"].as_str() else {
            return Arc::new(self.atom(reference, depth));
        };
        let schema = self.named(name, depth);
        match reference["elementRelationship"].as_str() {
            None => schema,
            Some(relationship) => {
                let mut schema = Schema::clone(&schema);
                let atomic = relationship == "atomic";
                if schema.ty == Type::Array {
                    schema.list_type = Some(if atomic { ListType::Atomic } else { ListType::Set });
                } else {
                    schema.map_type = Some(if atomic { MapType::Atomic } else { MapType::Granular });
                }
                Arc::new(schema)
            }
        }
    }

    fn atom(&mut self, atom: &Value, depth: usize) -> Schema {
        let mut schema = Schema::default();
        let kinds = ["scalar", "list", "map"].map(|k| !atom[k].is_null());
        match (kinds, atom["scalar"].as_str()) {
            ([true, false, false], Some("numeric")) => schema.ty = Type::Number,
            ([true, false, false], Some("string")) => schema.ty = Type::String,
            ([true, false, false], Some("boolean")) => schema.ty = Type::Boolean,
            ([true, false, false], _) => {
                schema.ty = Type::String;
                schema.format = Some("untyped".to_owned());
            }
            ([false, true, false], _) => schema.ty = Type::Array,
            ([false, false, true], _) => schema.ty = Type::Object,
            _ => schema.ty = Type::Any,
        }
        if kinds[1] {
            self.list(&atom["list"], &mut schema, depth);
        }
        if kinds[2] {
            self.map(&atom["map"], &mut schema, depth);
        }
        schema
    }

    fn list(&mut self, list: &Value, schema: &mut Schema, depth: usize) {
        let keys = list["keys"].as_array().into_iter().flatten();
        let keys: Vec<_> = keys.filter_map(|k| k.as_str().map(str::to_owned)).collect();
        schema.list_type = Some(match list["elementRelationship"].as_str() {
            Some("associative") if keys.is_empty() => ListType::Set,
            Some("associative") => ListType::Map(keys),
            _ => ListType::Atomic,
        });
        schema.items = Some(self.reference(&list["elementType"], depth));
    }

    fn map(&mut self, map: &Value, schema: &mut Schema, depth: usize) {
        for field in map["fields"].as_array().into_iter().flatten() {
            let mut ty = self.reference(&field["type"], depth);
            if !field["default"].is_null() {
                ty = Arc::new(Schema { default: Some(field["default"].clone()), ..Schema::clone(&ty) });
            }
            schema.properties.insert(field["name"].as_str().unwrap_or_default().to_owned(), ty);
        }
        schema.additional = match &map["elementType"] {
            Value::Null => Additional::Bool(false),
            reference if reference["namedType"] == "__untyped_deduced_" => Additional::Bool(true),
            reference => Additional::Schema(self.reference(reference, depth)),
        };
        if map["elementRelationship"] == "atomic" {
            schema.map_type = Some(MapType::Atomic);
        }
    }
}
