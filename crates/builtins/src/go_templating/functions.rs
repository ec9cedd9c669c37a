//! The functions the original adds to the language and to sprig, but for those the engine has already (`toYaml`,
//! `fromYaml`, `include`).
//!
//! Most look something up in a request by a field path into which a name is put as it is: a name that is a number is
//! an index then, and quotes at its ends are lost. What they return is a copy; a template that changes it changes
//! nothing else.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use transom_function::RunFunctionRequest;
use transom_gotemplate::{
    CallError, Context, Env, Functions, Key, List, ListType, Map, MapType, Type, Value,
};
use transom_object::fieldpath::{self, Segment};

use super::conditions::Condition;
use super::data::number;
use super::desired::{EXTRA_RESOURCES, RESOURCE_NAME};

/// How deep a value may nest to be copied.
const MAX_DEPTH: usize = 512;

type Result<T> = std::result::Result<T, CallError>;

/// The functions, with the clock and the randomness all functions see.
pub(super) fn functions(context: Arc<dyn Context>) -> Functions {
    const DATA_AND_NAME: &[Type] = &[Type::Map, Type::Str];
    let mut functions = Functions::default().with_context(context);
    functions.register_variadic("randomChoice", &[Type::Str], |env, choices| {
        let choice = env.random_below(choices.len() as u64)?;
        Ok(usize::try_from(choice).ok().and_then(|choice| choices.get(choice)).cloned().unwrap_or(Value::Nil))
    });
    functions.register("setResourceNameAnnotation", &[Type::Str], |env, args| {
        env.string(format!("{RESOURCE_NAME}: {}", text(args, 0)))
    });
    functions.register("getResourceCondition", &[Type::Str, Type::Map], |env, args| {
        let kind = text(args, 0);
        for path in ["resource.status", "status"] {
            if let Some(status) = find(env, &args[1], path)?
                && let Some(conditions) = Condition::list_in_status(&status)
            {
                return Ok(Condition::of_type(conditions, &kind).into_value());
            }
        }
        Ok(Condition::of_type(Vec::new(), &kind).into_value())
    });
    functions.register("getCompositeResource", &[Type::Map], |env, args| {
        map_at(env, &args[0], "observed.composite.resource")
    });
    functions.register("getComposedResource", DATA_AND_NAME, |env, args| {
        map_at(env, &args[0], &format!("observed.resources[{}]resource", text(args, 1)))
    });
    functions.register("getComposedConnectionDetails", DATA_AND_NAME, |env, args| {
        map_at(env, &args[0], &format!("observed.resources[{}]connectionDetails", text(args, 1)))
    });
    functions.register("getExtraResources", DATA_AND_NAME, |env, args| {
        for field in ["requiredResources", "extraResources"] {
            let path = format!("{field}[{}].items", text(args, 1));
            if let Some(list @ Value::List(_)) = find(env, &args[0], &path)? {
                return Ok(list);
            }
        }
        Ok(no_list())
    });
    functions.register("getExtraResourcesFromContext", DATA_AND_NAME, |env, args| {
        let path = format!("context[{EXTRA_RESOURCES}][{}].items", text(args, 1));
        match find(env, &args[0], &path)? {
            Some(list @ Value::List(_)) => Ok(list),
            _ => Ok(no_list()),
        }
    });
    functions.register("getCredentialData", DATA_AND_NAME, credential_data);
    functions
}

fn text(args: &[Value], index: usize) -> String {
    args.get(index).and_then(Value::as_str).map(|text| text.lossy().into_owned()).unwrap_or_default()
}

fn no_list() -> Value {
    Value::List(List::nil(ListType::Any))
}

/// The object at a path; a nil map when there is none.
fn map_at(env: &mut Env<'_>, root: &Value, path: &str) -> Result<Value> {
    match find(env, root, path)? {
        Some(map @ Value::Map(_)) => Ok(map),
        _ => Ok(Value::Map(Map::nil(MapType::StrAny))),
    }
}

/// A copy of what is at a path, in JSON's types. Only what decoding JSON makes can be walked through.
fn find(env: &mut Env<'_>, root: &Value, path: &str) -> Result<Option<Value>> {
    let Ok(segments) = fieldpath::parse(path) else { return Ok(None) };
    let mut here = root.clone();
    for segment in segments {
        let next = match (&segment, &here) {
            (Segment::Field(name), Value::Map(map)) if map.ty() == MapType::StrAny => {
                map.get(&Key::str(name.as_str()))
            }
            (Segment::Index(index), Value::List(list)) if list.ty() == ListType::Any => list.get(*index),
            _ => None,
        };
        let Some(next) = next else { return Ok(None) };
        here = next;
    }
    copy(env, &here, 0)
}

/// The value as it comes back from JSON; `None` when JSON cannot say it.
fn copy(env: &mut Env<'_>, value: &Value, depth: usize) -> Result<Option<Value>> {
    env.spend(1)?;
    if depth > MAX_DEPTH {
        return Ok(None);
    }
    Ok(Some(match value {
        Value::Missing | Value::Nil => Value::Nil,
        Value::Bool(truth) => Value::Bool(*truth),
        Value::Int(_, integer) | Value::Named(_, integer) => Value::int64(*integer),
        Value::Uint(_, integer) => match i64::try_from(*integer) {
            Ok(integer) => Value::int64(integer),
            Err(_) => Value::Float(*integer as f64),
        },
        Value::Float(float) if float.is_finite() => number(*float),
        Value::Float(_) | Value::Complex(..) => return Ok(None),
        Value::Str(text) => Value::Str(text.clone()),
        Value::List(list) if list.is_nil() => Value::Nil,
        Value::List(list) if list.ty() == ListType::Uint8 => {
            env.string(STANDARD.encode(list.to_bytes().unwrap_or_default()))?
        }
        Value::List(list) => {
            let mut items = Vec::with_capacity(list.len());
            for item in list.items().iter() {
                let Some(item) = copy(env, item, depth + 1)? else { return Ok(None) };
                items.push(item);
            }
            env.list(items)?
        }
        Value::Map(map) if map.ty() == MapType::AnyAny => return Ok(None),
        Value::Map(map) if map.is_nil() => Value::Nil,
        Value::Map(map) => {
            env.allocate_map(map.len())?;
            let copied = Map::new(MapType::StrAny);
            for (key, item) in map.entries().iter() {
                let Some(item) = copy(env, item, depth + 1)? else { return Ok(None) };
                copied.insert(key.clone(), item);
            }
            Value::Map(copied)
        }
        // Few fields, and none of them deep.
        Value::Struct(_) | Value::Time(_) | Value::Version(_) => {
            serde_json::Value::try_from(value).map_or(Value::Nil, Value::from)
        }
    }))
}

/// The bytes of credentials. The original reads the whole request back for it, and finds nothing in one to which a
/// template added something that is not part of a request.
fn credential_data(env: &mut Env<'_>, args: &[Value]) -> Result<Value> {
    let nothing = Value::Map(Map::nil(MapType::StrBytes));
    let Some(request) = copy(env, &args[0], 0)? else { return Ok(nothing) };
    let request = serde_json::Value::try_from(&request).ok();
    let request = request.and_then(|request| RunFunctionRequest::deserialize(request).ok());
    let name = text(args, 1);
    let Some(data) = request.as_ref().and_then(|request| request.credential_data(&name)) else {
        return Ok(nothing);
    };
    if data.is_empty() {
        return Ok(nothing);
    }
    let map = Map::new(MapType::StrBytes);
    for (key, bytes) in data {
        env.allocate_elements(bytes.len())?;
        map.insert(Key::str(key.as_str()), Value::bytes(bytes));
    }
    Ok(Value::Map(map))
}
