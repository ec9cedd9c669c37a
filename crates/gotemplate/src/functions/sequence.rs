//! `index slice len`: the language's own access to strings, lists and maps.

use super::env::{CallError, Env};
use super::{Native, Type, fixed, variadic};
use crate::value::{IntKind, Key, List, MapType, UintKind, Value};

pub(super) const FUNCTIONS: &[Native] = &[
    variadic("index", &[Type::Reflect, Type::Reflect], index),
    variadic("slice", &[Type::Reflect, Type::Reflect], slice),
    fixed("len", &[Type::Reflect], |_, args| {
        let length = match &args[0] {
            Value::Str(text) => text.len(),
            Value::List(list) => list.len(),
            Value::Map(map) => map.len(),
            Value::Nil => return Err("len of nil pointer".into()),
            Value::Missing => return Err("reflect: call of reflect.Value.Type on zero Value".into()),
            other => return Err(format!("len of type {}", dereferenced(other)).into()),
        };
        Ok(Value::int(i64::try_from(length).unwrap_or(i64::MAX)))
    }),
];

/// Builtins look through pointers, so a version shows as the struct it points to.
fn dereferenced(value: &Value) -> String {
    value.type_name().trim_start_matches('*').to_owned()
}

/// An index no greater than `limit`.
fn index_arg(index: &Value, limit: usize) -> Result<usize, CallError> {
    let number = match index {
        Value::Int(_, number) | Value::Named(_, number) => *number,
        Value::Uint(_, number) => *number as i64,
        Value::Nil | Value::Missing => return Err("cannot index slice/array with nil".into()),
        other => return Err(format!("cannot index slice/array with type {}", other.type_name()).into()),
    };
    match usize::try_from(number) {
        Ok(found) if found <= limit => Ok(found),
        _ => Err(format!("index out of range: {number}").into()),
    }
}

fn index(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let mut item = args[0].clone();
    if item.is_nil() {
        return Err("index of untyped nil".into());
    }
    for index in &args[1..] {
        env.spend(1)?;
        item = match &item {
            Value::Nil | Value::Missing => return Err("index of nil pointer".into()),
            Value::Str(text) => {
                let at = index_arg(index, text.len())?;
                let byte = text.get(at).ok_or("reflect: string index out of range")?;
                Value::Uint(UintKind::Uint8, u64::from(*byte))
            }
            Value::List(list) => {
                let at = index_arg(index, list.len())?;
                list.get(at).ok_or("reflect: slice index out of range")?
            }
            Value::Map(map) => {
                let key = map_key(index, map.ty())?;
                map.get(&key).unwrap_or_else(|| map.ty().zero())
            }
            other => return Err(format!("can't index item of type {}", dereferenced(other)).into()),
        };
    }
    Ok(item)
}

fn map_key(index: &Value, ty: MapType) -> Result<Key, CallError> {
    match (index, ty) {
        (Value::Str(text), _) => Ok(Key::Str(text.clone())),
        (Value::Nil | Value::Missing, MapType::AnyAny) => Ok(Key::Nil),
        (Value::Nil | Value::Missing, _) => {
            Err(format!("value is nil; should be of type {}", ty.key_name()).into())
        }
        (Value::Bool(value), MapType::AnyAny) => Ok(Key::Bool(*value)),
        (Value::Int(IntKind::Int, value), MapType::AnyAny) => Ok(Key::Int(*value)),
        (Value::Float(value), MapType::AnyAny) => Ok(Key::Float(*value)),
        // No other key can be in such a map: the lookup misses.
        (_, MapType::AnyAny) => Ok(Key::str("\u{0}absent")),
        (other, _) => {
            Err(format!("value has type {}; should be {}", other.type_name(), ty.key_name()).into())
        }
    }
}

fn slice(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let (item, indexes) = (&args[0], &args[1..]);
    let length = match item {
        Value::Nil | Value::Missing => return Err("slice of untyped nil".into()),
        _ if indexes.len() > 3 => return Err(format!("too many slice indexes: {}", indexes.len()).into()),
        Value::Str(_) if indexes.len() == 3 => return Err("cannot 3-index slice a string".into()),
        Value::Str(text) => text.len(),
        Value::List(list) => list.len(),
        other => return Err(format!("can't slice item of type {}", dereferenced(other)).into()),
    };
    let mut bounds = [0, length, length];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = index_arg(index, length)?;
    }
    let [start, end, capacity] = bounds;
    if start > end {
        return Err(format!("invalid slice index: {start} > {end}").into());
    }
    if end > capacity {
        return Err(format!("invalid slice index: {end} > {capacity}").into());
    }
    match item {
        Value::Str(text) => env.string(&text[start..end]),
        Value::List(list) => {
            env.allocate_elements(end - start)?;
            Ok(Value::List(List::new(list.ty(), list.items()[start..end].to_vec())))
        }
        _ => Ok(Value::Nil),
    }
}
