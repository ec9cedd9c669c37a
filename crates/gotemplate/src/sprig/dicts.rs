//! Dictionaries. `set`, `unset` and `merge` change the map they are given.

use super::{args, convert::strval, merge};
use crate::functions::{CallError, Env, Native, Type, fixed, variadic};
use crate::value::{Key, List, ListType, MAX_DEPTH, Map, MapType, Value};

const MAPS: &[Type] = &[Type::Map, Type::Map];

pub(super) const FUNCTIONS: &[Native] = &[
    fixed("get", &[Type::Map, Type::Str], |_, args| {
        Ok(args::map(args, 0)?.get_str(args::text(args, 1)?).unwrap_or(Value::str("")))
    }),
    fixed("set", &[Type::Map, Type::Str, Type::Any], |env, args| {
        let map = args::map(args, 0)?;
        if map.is_nil() {
            return Err("assignment to entry in nil map".into());
        }
        env.allocate_elements(1)?;
        map.insert(Key::Str(args::text(args, 1)?.clone()), args[2].clone());
        env.note_mutation(map, &args[2]);
        Ok(args[0].clone())
    }),
    fixed("unset", &[Type::Map, Type::Str], |_, args| {
        args::map(args, 0)?.remove(args::text(args, 1)?);
        Ok(args[0].clone())
    }),
    fixed("hasKey", &[Type::Map, Type::Str], |_, args| {
        Ok(Value::Bool(args::map(args, 0)?.contains(args::text(args, 1)?)))
    }),
    variadic("pluck", &[Type::Str, Type::Map], |env, args| {
        let key = args::text(args, 0)?;
        let mut found = Vec::new();
        for index in 1..args.len() {
            found.extend(args::map(args, index)?.get_str(key));
        }
        env.list(found)
    }),
    variadic("keys", &[Type::Map], |env, args| {
        let mut keys = Vec::new();
        for index in 0..args.len() {
            let map = args::map(args, index)?;
            env.allocate_elements(map.len())?;
            keys.extend(map.entries().keys().map(Key::to_value));
        }
        Ok(Value::List(List::new(ListType::Str, keys)))
    }),
    variadic("pick", &[Type::Map, Type::Str], |env, args| {
        let picked = Map::new(MapType::StrAny);
        env.allocate_map(args.len() - 1)?;
        for index in 1..args.len() {
            let key = args::text(args, index)?;
            if let Some(value) = args::map(args, 0)?.get_str(key) {
                picked.insert(Key::Str(key.clone()), value);
            }
        }
        Ok(Value::Map(picked))
    }),
    variadic("omit", &[Type::Map, Type::Str], |env, args| {
        let kept = Map::new(MapType::StrAny);
        env.allocate_map(args::map(args, 0)?.len())?;
        for (key, value) in args::map(args, 0)?.to_vec() {
            kept.insert(key, value);
        }
        for index in 1..args.len() {
            kept.remove(args::text(args, index)?);
        }
        Ok(Value::Map(kept))
    }),
    variadic("dict", &[Type::Any], dict),
    variadic("merge", MAPS, |env, args| merged(env, args, false).or_else(swallow)),
    variadic("mergeOverwrite", MAPS, |env, args| merged(env, args, true).or_else(swallow)),
    variadic("mustMerge", MAPS, |env, args| merged(env, args, false)),
    variadic("mustMergeOverwrite", MAPS, |env, args| merged(env, args, true)),
    fixed("values", &[Type::Map], |env, args| {
        let values = args::map(args, 0)?.entries().values().cloned().collect();
        env.list(values)
    }),
    fixed("deepCopy", &[Type::Any], |env, args| {
        if args[0].is_nil() {
            return Err("reflect: Zero(nil)".into());
        }
        deep_copy(env, &args[0], 0)
    }),
    fixed("mustDeepCopy", &[Type::Any], |env, args| {
        if args[0].is_nil() {
            return Err("reflect: Zero(nil)".into());
        }
        deep_copy(env, &args[0], 0)
    }),
    variadic("dig", &[Type::Any], dig),
];

fn dict(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let dict = Map::new(MapType::StrAny);
    env.allocate_map(args.len().div_ceil(2))?;
    for pair in args.chunks(2) {
        let key = strval(env, &pair[0])?;
        dict.insert(Key::Str(key), pair.get(1).cloned().unwrap_or(Value::str("")));
    }
    Ok(Value::Map(dict))
}

fn merged(env: &mut Env<'_>, args: &[Value], overwrite: bool) -> Result<Value, CallError> {
    let dst = args::map(args, 0)?;
    if dst.is_nil() {
        // Merging into nil makes a new map; Go's caller sees it as the result.
        let fresh = Map::new(MapType::StrAny);
        for index in 1..args.len() {
            merge::merge(env, &fresh, args::map(args, index)?, overwrite, 0)?;
        }
        return Ok(Value::Map(fresh));
    }
    for index in 1..args.len() {
        merge::merge(env, dst, args::map(args, index)?, overwrite, 0)?;
    }
    Ok(args[0].clone())
}

/// The forms without `must` answer "" for an error.
fn swallow(error: CallError) -> Result<Value, CallError> {
    match error {
        CallError::Message(_) => Ok(Value::str("")),
        limit => Err(limit),
    }
}

pub(super) fn deep_copy(env: &mut Env<'_>, value: &Value, depth: usize) -> Result<Value, CallError> {
    if depth > MAX_DEPTH {
        return Err(transom_go::fmt::FmtError::TooDeep.to_string().into());
    }
    env.spend(1)?;
    match value {
        Value::List(list) => {
            env.allocate_elements(list.len())?;
            let items = list.to_vec();
            let copies =
                items.iter().map(|item| deep_copy(env, item, depth + 1)).collect::<Result<_, _>>()?;
            let copy = List::new(list.ty(), copies);
            Ok(Value::List(if list.is_nil() { List::nil(list.ty()) } else { copy }))
        }
        Value::Map(map) => {
            env.allocate_map(map.len())?;
            let copy = Map::new(map.ty());
            for (key, item) in map.to_vec() {
                copy.insert(key, deep_copy(env, &item, depth + 1)?);
            }
            Ok(Value::Map(copy))
        }
        other => Ok(other.clone()),
    }
}

fn dig(_: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let [path @ .., default, dict] = args else { return Err("dig needs at least three arguments".into()) };
    if path.is_empty() {
        return Err("dig needs at least three arguments".into());
    }
    let as_map = |value: &Value| match value {
        Value::Map(map) if map.ty() == MapType::StrAny => Ok(map.clone()),
        other => Err(conversion(other, "map[string]interface {}")),
    };
    let mut map = as_map(dict)?;
    let mut keys = Vec::with_capacity(path.len());
    for key in path {
        keys.push(key.as_str().ok_or_else(|| conversion(key, "string"))?);
    }
    let Some((last, steps)) = keys.split_last() else { return Ok(default.clone()) };
    for key in steps {
        match map.get_str(key) {
            Some(step) => map = as_map(&step)?,
            None => return Ok(default.clone()),
        }
    }
    Ok(map.get_str(last).unwrap_or_else(|| default.clone()))
}

/// What a failed type assertion panics with.
fn conversion(value: &Value, wanted: &str) -> CallError {
    let found = if value.is_nil() { "nil".into() } else { value.type_name() };
    format!("interface conversion: interface {{}} is {found}, not {wanted}").into()
}
