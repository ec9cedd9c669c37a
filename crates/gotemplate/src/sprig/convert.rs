//! Conversions between kinds: spf13/cast's rules for numbers, sprig's own for text.

use super::args;
use crate::functions::{CallError, Env, Native, Type, fixed};
use crate::value::{List, ListType, Str, Value};
use transom_go::strconv::{parse_float, parse_int};

pub(super) const FUNCTIONS: &[Native] = &[
    fixed("atoi", &[Type::Str], |_, args| {
        Ok(Value::int(parse_int(&args::text(args, 0)?.lossy(), 10).unwrap_or(0)))
    }),
    fixed("int64", &[Type::Any], |_, args| Ok(Value::int64(to_int64(&args[0])))),
    fixed("int", &[Type::Any], |_, args| Ok(Value::int(to_int64(&args[0])))),
    fixed("float64", &[Type::Any], |_, args| Ok(Value::Float(to_float64(&args[0])))),
    fixed("toDecimal", &[Type::Any], |env, args| {
        let shown = env.sprint(&args[..1])?;
        Ok(Value::int64(parse_int(&String::from_utf8_lossy(&shown), 8).unwrap_or(0)))
    }),
    fixed("toString", &[Type::Any], |env, args| Ok(Value::Str(strval(env, &args[0])?))),
    fixed("toStrings", &[Type::Any], |env, args| Ok(Value::List(strslice(env, &args[0])?))),
];

pub(super) fn to_int64(value: &Value) -> i64 {
    match value {
        Value::Int(_, value) => *value,
        Value::Named(named, value) if named.kind() == crate::value::IntKind::Int => *value,
        Value::Uint(_, value) => *value as i64,
        Value::Float(value) => go_truncate(*value),
        Value::Str(text) => parse_int(trim_zero_decimal(&text.lossy()), 0).unwrap_or(0),
        Value::Bool(value) => i64::from(*value),
        _ => 0,
    }
}

/// `int64(f)` as amd64 computes it: out of range is the most negative integer.
pub(super) fn go_truncate(value: f64) -> i64 {
    const I64_BOUND: f64 = 9_223_372_036_854_775_808.0;
    if (-I64_BOUND..I64_BOUND).contains(&value) { value as i64 } else { i64::MIN }
}

fn trim_zero_decimal(text: &str) -> &str {
    let trimmed = text.trim_end_matches('0');
    if trimmed.len() == text.len() {
        return text;
    }
    trimmed.strip_suffix('.').unwrap_or(text)
}

pub(super) fn to_float64(value: &Value) -> f64 {
    match value {
        Value::Int(_, value) => *value as f64,
        Value::Named(named, value) if named.kind() == crate::value::IntKind::Int => *value as f64,
        Value::Uint(_, value) => *value as f64,
        Value::Float(value) => *value,
        Value::Str(text) => parse_float(&text.lossy()).unwrap_or(0.0),
        Value::Bool(value) => f64::from(u8::from(*value)),
        _ => 0.0,
    }
}

/// sprig's `strval`: text itself, `String` methods, or `%v`.
pub(super) fn strval(env: &mut Env<'_>, value: &Value) -> Result<Str, CallError> {
    match value {
        Value::Str(text) => Ok(text.clone()),
        Value::List(list) if list.ty() == ListType::Uint8 => {
            Ok(Str::from(list.to_bytes().unwrap_or_default()))
        }
        other => Ok(Str::from(env.sprint(std::slice::from_ref(other))?)),
    }
}

/// sprig's `strslice`. A `[]string` is returned itself, not copied.
pub(super) fn strslice(env: &mut Env<'_>, value: &Value) -> Result<List, CallError> {
    let texts = match value {
        Value::List(list) if list.ty() == ListType::Str => return Ok(list.clone()),
        Value::List(list) => {
            env.allocate_elements(list.len())?;
            let present = list.to_vec().into_iter().filter(|item| !item.is_nil());
            present.map(|item| strval(env, &item).map(Value::Str)).collect::<Result<Vec<_>, _>>()?
        }
        Value::Nil | Value::Missing => Vec::new(),
        other => vec![Value::Str(strval(env, other)?)],
    };
    Ok(List::new(ListType::Str, texts))
}
