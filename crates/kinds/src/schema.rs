//! The schema tree of a built-in type, as server-side apply and strategic merge patch read it.

use super::table::{Field, Shape, Ty, Type, types};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use transom_schema::model::{Checks, PatchStrategy};
use transom_schema::{Additional, ListType, MapType, Schema, Type as JsonType};

/// The schema of a type, built on first use and shared afterwards.
pub fn schema(type_name: &str) -> Option<Arc<Schema>> {
    static BUILT: LazyLock<Mutex<HashMap<usize, Arc<Schema>>>> = LazyLock::new(Mutex::default);
    let index = types().index(type_name)?;
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    Some(Builder { built: &mut built, open: Vec::new() }.of(index))
}

struct Builder<'a> {
    built: &'a mut HashMap<usize, Arc<Schema>>,
    open: Vec<usize>,
}

impl Builder<'_> {
    fn of(&mut self, index: usize) -> Arc<Schema> {
        if let Some(done) = self.built.get(&index) {
            return Arc::clone(done);
        }
        if self.open.contains(&index) {
            // Only JSON schemas contain themselves, and they live in an atomic list: no need to look inside.
            return Arc::new(Schema::any());
        }
        self.open.push(index);
        let node = Arc::new(self.object(types().at(index)));
        self.open.pop();
        self.built.insert(index, Arc::clone(&node));
        node
    }

    fn object(&mut self, ty: &'static Type) -> Schema {
        let properties = ty.flat.iter().map(|f| (f.name.to_owned(), self.field(f))).collect();
        let required = ty.flat.iter().filter(|f| f.required).map(|f| f.name.to_owned()).collect();
        Schema {
            ty: JsonType::Object,
            properties,
            map_type: ty.atomic.then_some(MapType::Atomic),
            checks: Checks { required, ..Checks::default() },
            ..Schema::default()
        }
    }

    fn field(&mut self, f: &'static Field) -> Arc<Schema> {
        let node = self.node(&f.ty);
        let plain = f.list_type.is_none()
            && !f.atomic
            && f.patch_strategy.is_none()
            && f.default.is_none()
            && f.enumeration.is_empty();
        if plain {
            return node;
        }
        let mut node = Arc::unwrap_or_clone(node);
        node.list_type = match f.list_type {
            Some("map") => Some(ListType::Map(f.list_keys.iter().map(|k| (*k).to_owned()).collect())),
            Some("set") => Some(ListType::Set),
            Some(_) => Some(ListType::Atomic),
            None => node.list_type,
        };
        if f.atomic {
            node.map_type = Some(MapType::Atomic);
        }
        node.patch = f.patch_strategy.map(|s| strategy(s, f.merge_key)).or(node.patch);
        node.default = f.default.clone().filter(says_something);
        if node.ty == JsonType::String && !f.enumeration.is_empty() {
            node.checks.enumeration = Some(f.enumeration.iter().map(|v| Value::from(*v)).collect());
        }
        Arc::new(node)
    }

    fn node(&mut self, ty: &'static Ty) -> Arc<Schema> {
        let scalar =
            |ty, format: Option<&str>| Schema { ty, format: format.map(str::to_owned), ..Schema::default() };
        Arc::new(match &ty.shape {
            Shape::Pointer(inner) => return self.node(inner),
            Shape::Struct(index) => return self.of(*index),
            Shape::String => scalar(JsonType::String, None),
            Shape::Bool => scalar(JsonType::Boolean, None),
            Shape::Int32 => scalar(JsonType::Integer, Some("int32")),
            Shape::Int64 => scalar(JsonType::Integer, Some("int64")),
            Shape::Float64 => scalar(JsonType::Number, Some("double")),
            Shape::Bytes => scalar(JsonType::String, Some("byte")),
            Shape::Time | Shape::MicroTime => scalar(JsonType::String, Some("date-time")),
            Shape::IntOrString => Schema { int_or_string: true, ..Schema::default() },
            Shape::List(inner) | Shape::Wrapped(inner) => {
                Schema { ty: JsonType::Array, items: Some(self.node(inner)), ..Schema::default() }
            }
            Shape::Map(inner) => Schema {
                ty: JsonType::Object,
                additional: Additional::Schema(self.node(inner)),
                ..Schema::default()
            },
            Shape::Any
            | Shape::Quantity
            | Shape::Raw
            | Shape::FieldsV1
            | Shape::Json
            | Shape::PropsOrArray
            | Shape::PropsOrBool
            | Shape::PropsOrStrings => Schema::any(),
        })
    }
}

/// A default that equals the zero value adds nothing to decoding.
fn says_something(default: &Value) -> bool {
    !(default == "" || default == false || default == 0)
}

fn strategy(tag: &str, merge_key: Option<&str>) -> PatchStrategy {
    let has = |word| tag.split(',').any(|part| part == word);
    PatchStrategy {
        merge: has("merge"),
        retain_keys: has("retainKeys"),
        replace: has("replace"),
        merge_key: merge_key.map(str::to_owned),
    }
}
