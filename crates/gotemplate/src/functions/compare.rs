//! `eq ne lt le gt ge not`: comparison across kinds, where integers and floats cannot be compared.

use std::cmp::Ordering;

use super::env::{CallError, Env};
use super::{Native, Type, fixed, variadic};
use crate::value::{Kind, Value};

const PAIR: &[Type] = &[Type::Reflect, Type::Reflect];

pub(super) const FUNCTIONS: &[Native] = &[
    variadic("eq", PAIR, |env, args| {
        if args.len() < 2 {
            return Err("missing argument for comparison".into());
        }
        for other in &args[1..] {
            env.spend(1)?;
            if equal(env, &args[0], other)? {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }),
    fixed("ne", PAIR, |env, args| Ok(Value::Bool(!equal(env, &args[0], &args[1])?))),
    fixed("lt", PAIR, |_, args| Ok(Value::Bool(less(&args[0], &args[1])?))),
    fixed("le", PAIR, |env, args| Ok(Value::Bool(less_or_equal(env, &args[0], &args[1])?))),
    fixed("gt", PAIR, |env, args| Ok(Value::Bool(!less_or_equal(env, &args[0], &args[1])?))),
    fixed("ge", PAIR, |_, args| Ok(Value::Bool(!less(&args[0], &args[1])?))),
    fixed("not", &[Type::Reflect], |_, args| Ok(Value::Bool(!args[0].truth()))),
];

/// The kinds between which comparison is defined.
enum Basic<'a> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Complex(f64, f64),
    Str(&'a [u8]),
}

fn basic(value: &Value) -> Option<Basic<'_>> {
    Some(match value {
        Value::Bool(value) => Basic::Bool(*value),
        Value::Int(_, value) | Value::Named(_, value) => Basic::Int(*value),
        Value::Uint(_, value) => Basic::Uint(*value),
        Value::Float(value) => Basic::Float(*value),
        Value::Complex(re, im) => Basic::Complex(*re, *im),
        Value::Str(text) => Basic::Str(text),
        _ => return None,
    })
}

fn incompatible(a: &Value, b: &Value) -> CallError {
    format!("incompatible types for comparison: {} and {}", a.type_name(), b.type_name()).into()
}

fn equal(env: &mut Env<'_>, a: &Value, b: &Value) -> Result<bool, CallError> {
    match (basic(a), basic(b)) {
        (Some(Basic::Bool(a)), Some(Basic::Bool(b))) => Ok(a == b),
        (Some(Basic::Int(a)), Some(Basic::Int(b))) => Ok(a == b),
        (Some(Basic::Uint(a)), Some(Basic::Uint(b))) => Ok(a == b),
        (Some(Basic::Int(a)), Some(Basic::Uint(b))) | (Some(Basic::Uint(b)), Some(Basic::Int(a))) => {
            Ok(u64::try_from(a) == Ok(b))
        }
        (Some(Basic::Float(a)), Some(Basic::Float(b))) => Ok(a == b),
        (Some(Basic::Complex(a, x)), Some(Basic::Complex(b, y))) => Ok(a == b && x == y),
        (Some(Basic::Str(a)), Some(Basic::Str(b))) => Ok(a == b),
        (None, None) => equal_other(env, a, b),
        _ if a.is_nil() || b.is_nil() => Ok(false),
        _ => Err(incompatible(a, b)),
    }
}

/// Neither side is of a basic kind: nil equals nil, and only structs and pointers compare.
fn equal_other(env: &mut Env<'_>, a: &Value, b: &Value) -> Result<bool, CallError> {
    let (left, right) = (a.kind(), b.kind());
    if left != right && left != Kind::Invalid && right != Kind::Invalid {
        let (shown_a, shown_b) = (env.sprint(std::slice::from_ref(a))?, env.sprint(std::slice::from_ref(b))?);
        return Err(format!(
            "non-comparable types {}: {}, {}: {}",
            String::from_utf8_lossy(&shown_a),
            a.type_name(),
            b.type_name(),
            String::from_utf8_lossy(&shown_b)
        )
        .into());
    }
    let nil = |value: &Value| match value {
        Value::List(list) => list.is_nil(),
        Value::Map(map) => map.is_nil(),
        other => other.is_nil(),
    };
    if nil(a) || nil(b) {
        return Ok(nil(a) == nil(b));
    }
    match (a, b) {
        (Value::List(_) | Value::Map(_), _) | (_, Value::List(_) | Value::Map(_)) => {
            let shown = env.sprint(std::slice::from_ref(b))?;
            let shown = String::from_utf8_lossy(&shown);
            Err(format!("non-comparable type {shown}: {}", b.type_name()).into())
        }
        (Value::Time(a), Value::Time(b)) => Ok(a == b),
        (Value::Version(a), Value::Version(b)) if a.pointer => Ok(std::rc::Rc::ptr_eq(a, b)),
        (Value::Version(a), Value::Version(b)) => Ok(a == b),
        (Value::Struct(x), Value::Struct(y)) => {
            let fields = x.fields.iter().zip(&y.fields);
            Ok(x.type_name == y.type_name
                && fields.into_iter().all(|(x, y)| crate::sprig::deep_equal(&x.1, &y.1)))
        }
        _ => Ok(false),
    }
}

fn less(a: &Value, b: &Value) -> Result<bool, CallError> {
    const BAD: &str = "invalid type for comparison";
    let (Some(left), Some(right)) = (basic(a), basic(b)) else { return Err(BAD.into()) };
    Ok(match (left, right) {
        (Basic::Int(a), Basic::Int(b)) => a < b,
        (Basic::Uint(a), Basic::Uint(b)) => a < b,
        (Basic::Int(a), Basic::Uint(b)) => u64::try_from(a).is_ok_and(|a| a < b) || a < 0,
        (Basic::Uint(a), Basic::Int(b)) => u64::try_from(b).is_ok_and(|b| a < b),
        (Basic::Float(a), Basic::Float(b)) => a.partial_cmp(&b) == Some(Ordering::Less),
        (Basic::Str(a), Basic::Str(b)) => a < b,
        (Basic::Bool(_), Basic::Bool(_)) | (Basic::Complex(..), Basic::Complex(..)) => return Err(BAD.into()),
        _ => return Err(incompatible(a, b)),
    })
}

fn less_or_equal(env: &mut Env<'_>, a: &Value, b: &Value) -> Result<bool, CallError> {
    if less(a, b)? {
        return Ok(true);
    }
    equal(env, a, b)
}
