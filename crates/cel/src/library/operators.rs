//! Operators: arithmetic, order, equality, membership; and the signatures of those the interpreter evaluates.

use super::{Args, Out, Table};
use crate::compare;
use crate::value::{EvalError, Value};
use std::cmp::Ordering;

fn overflow() -> EvalError {
    EvalError::failed("integer overflow")
}

fn unsigned_overflow() -> EvalError {
    EvalError::failed("unsigned integer overflow")
}

fn timestamp_overflow() -> EvalError {
    EvalError::failed("timestamp overflow")
}

pub(crate) fn add<'a>(work: &mut super::Work, args: Args<'_, 'a>) -> Out<'a> {
    Ok(match (args.get(0)?, args.get(1)?) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_add(*b).ok_or_else(overflow)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_add(*b).ok_or_else(unsigned_overflow)?),
        (Value::Double(a), Value::Double(b)) => Value::Double(a + b),
        (Value::String(a), Value::String(b)) => {
            work.spend(a.len() + b.len())?;
            Value::text(format!("{}{}", &**a, &**b))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            work.spend(a.len() + b.len())?;
            Value::Bytes([&**a, &**b].concat().into())
        }
        (Value::List(a), Value::List(b)) => Value::List(compare::concat(a, b, work)?),
        (Value::Duration(a), Value::Duration(b)) => Value::Duration(a.checked_add(*b).ok_or_else(overflow)?),
        (Value::Timestamp(t), Value::Duration(d)) | (Value::Duration(d), Value::Timestamp(t)) => {
            Value::Timestamp(t.plus(*d).ok_or_else(timestamp_overflow)?)
        }
        _ => return Err(EvalError::overload()),
    })
}

fn subtract<'a>(args: Args<'_, 'a>) -> Out<'a> {
    Ok(match (args.get(0)?, args.get(1)?) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_sub(*b).ok_or_else(overflow)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_sub(*b).ok_or_else(unsigned_overflow)?),
        (Value::Double(a), Value::Double(b)) => Value::Double(a - b),
        (Value::Duration(a), Value::Duration(b)) => Value::Duration(a.checked_sub(*b).ok_or_else(overflow)?),
        (Value::Timestamp(t), Value::Duration(d)) => {
            let negated = d.checked_neg().ok_or_else(overflow)?;
            Value::Timestamp(t.plus(negated).ok_or_else(timestamp_overflow)?)
        }
        (Value::Timestamp(a), Value::Timestamp(b)) => Value::Duration(a.since(*b).ok_or_else(overflow)?),
        _ => return Err(EvalError::overload()),
    })
}

fn multiply<'a>(args: Args<'_, 'a>) -> Out<'a> {
    Ok(match (args.get(0)?, args.get(1)?) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_mul(*b).ok_or_else(overflow)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_mul(*b).ok_or_else(unsigned_overflow)?),
        (Value::Double(a), Value::Double(b)) => Value::Double(a * b),
        _ => return Err(EvalError::overload()),
    })
}

fn divide<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let zero = || EvalError::failed("division by zero");
    Ok(match (args.get(0)?, args.get(1)?) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => return Err(zero()),
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_div(*b).ok_or_else(overflow)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_div(*b).ok_or_else(zero)?),
        (Value::Double(a), Value::Double(b)) => Value::Double(a / b),
        _ => return Err(EvalError::overload()),
    })
}

fn remainder<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let zero = || EvalError::failed("modulus by zero");
    Ok(match (args.get(0)?, args.get(1)?) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => return Err(zero()),
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_rem(*b).ok_or_else(overflow)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_rem(*b).ok_or_else(zero)?),
        _ => return Err(EvalError::overload()),
    })
}

fn negate<'a>(args: Args<'_, 'a>) -> Out<'a> {
    Ok(match args.get(0)? {
        Value::Int(n) => Value::Int(n.checked_neg().ok_or_else(overflow)?),
        Value::Double(d) => Value::Double(-d),
        _ => return Err(EvalError::overload()),
    })
}

fn ordered<'a>(args: Args<'_, 'a>, holds: fn(Ordering) -> bool) -> Out<'a> {
    // Nothing compares to NaN.
    Ok(Value::Bool(compare::order(args.get(0)?, args.get(1)?)?.is_some_and(holds)))
}

fn size<'a>(args: Args<'_, 'a>) -> Out<'a> {
    match args.get(0)? {
        v @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_)) => {
            Ok(Value::Int(i64::try_from(v.size()).unwrap_or(i64::MAX)))
        }
        _ => Err(EvalError::overload()),
    }
}

pub(super) fn declare(t: &mut Table) {
    declare_special(t);
    t.global("!_", "logical_not", "bool", "bool", |_, a| match a.get(0)? {
        Value::Bool(b) => Ok(Value::Bool(!b)),
        _ => Err(EvalError::overload()),
    });
    t.global("_==_", "equals", "A, A", "bool", |w, a| {
        compare::equal(a.get(0)?, a.get(1)?, w).map(Value::Bool)
    });
    t.global("_!=_", "not_equals", "A, A", "bool", |w, a| {
        compare::equal(a.get(0)?, a.get(1)?, w).map(|b| Value::Bool(!b))
    });
    declare_order(t);
    for (ty, name) in [("int", "int64"), ("uint", "uint64"), ("double", "double")] {
        let two = format!("{ty}, {ty}");
        t.global("_+_", &format!("add_{name}"), &two, ty, add);
        t.global("_-_", &format!("subtract_{name}"), &two, ty, |_, a| subtract(a));
        t.global("_*_", &format!("multiply_{name}"), &two, ty, |_, a| multiply(a));
        t.global("_/_", &format!("divide_{name}"), &two, ty, |_, a| divide(a));
        if ty != "double" {
            t.global("_%_", &format!("modulo_{name}"), &two, ty, |_, a| remainder(a));
        }
        if ty != "uint" {
            t.global("-_", &format!("negate_{name}"), ty, ty, |_, a| negate(a));
        }
    }
    for (id, args, result) in [
        ("add_bytes", "bytes, bytes", "bytes"),
        ("add_duration_duration", "duration, duration", "duration"),
        ("add_duration_timestamp", "duration, timestamp", "timestamp"),
        ("add_timestamp_duration", "timestamp, duration", "timestamp"),
        ("add_list", "list(A), list(A)", "list(A)"),
        ("add_string", "string, string", "string"),
    ] {
        t.global("_+_", id, args, result, add);
    }
    for (id, args, result) in [
        ("subtract_duration_duration", "duration, duration", "duration"),
        ("subtract_timestamp_duration", "timestamp, duration", "timestamp"),
        ("subtract_timestamp_timestamp", "timestamp, timestamp", "duration"),
    ] {
        t.global("_-_", id, args, result, |_, a| subtract(a));
    }
    t.global("@in", "in_list", "A, list(A)", "bool", |w, a| match a.get(1)? {
        Value::List(list) => compare::contains(list, a.get(0)?, w).map(Value::Bool),
        _ => Err(EvalError::overload()),
    });
    t.global("@in", "in_map", "A, map(A, B)", "bool", |_, a| match a.get(1)? {
        Value::Map(map) => map.find(a.get(0)?).map(|v| Value::Bool(v.is_some())),
        _ => Err(EvalError::overload()),
    });
    for (ty, args) in [("bytes", "bytes"), ("list", "list(A)"), ("map", "map(A, B)"), ("string", "string")] {
        t.both("size", (&format!("size_{ty}"), &format!("{ty}_size")), args, "int", |_, a| size(a));
    }
    t.global("type", "type", "A", "type(A)", |_, a| Ok(Value::Type(a.get(0)?.type_name())));
}

/// Operators that do not evaluate all their operands, or evaluate them in their own way.
fn declare_special(t: &mut Table) {
    t.special("_?_:_", "conditional", false, "bool, A, A", "A");
    t.special("_&&_", "logical_and", false, "bool, bool", "bool");
    t.special("_||_", "logical_or", false, "bool, bool", "bool");
    t.special("@not_strictly_false", "not_strictly_false", false, "bool", "bool");
    t.special("_[_]", "index_list", false, "list(A), int", "A");
    t.special("_[_]", "index_map", false, "map(A, B), A", "B");
    t.special("_[_]", "optional_list_index_int", false, "optional(list(V)), int", "optional(V)");
    t.special("_[_]", "optional_map_index_value", false, "optional(map(K, V)), K", "optional(V)");
    t.special("_[?_]", "list_optindex_optional_int", false, "list(V), int", "optional(V)");
    t.special("_[?_]", "optional_list_optindex_optional_int", false, "optional(list(V)), int", "optional(V)");
    t.special("_[?_]", "map_optindex_optional_value", false, "map(K, V), K", "optional(V)");
    t.special(
        "_[?_]",
        "optional_map_optindex_optional_value",
        false,
        "optional(map(K, V)), K",
        "optional(V)",
    );
    t.special("_?._", "select_optional_field", false, "dyn, string", "optional(V)");
    t.special("or", "optional_or_optional", true, "optional(V), optional(V)", "optional(V)");
    t.special("orValue", "optional_orValue_value", true, "optional(V), V", "V");
}

fn declare_order(t: &mut Table) {
    const PAIRS: [(&str, &str, &str); 14] = [
        ("bool", "bool", "bool"),
        ("int64", "int", "int"),
        ("int64_double", "int", "double"),
        ("int64_uint64", "int", "uint"),
        ("uint64", "uint", "uint"),
        ("uint64_double", "uint", "double"),
        ("uint64_int64", "uint", "int"),
        ("double", "double", "double"),
        ("double_int64", "double", "int"),
        ("double_uint64", "double", "uint"),
        ("string", "string", "string"),
        ("bytes", "bytes", "bytes"),
        ("timestamp", "timestamp", "timestamp"),
        ("duration", "duration", "duration"),
    ];
    for (suffix, left, right) in PAIRS {
        let args = format!("{left}, {right}");
        t.global("_<_", &format!("less_{suffix}"), &args, "bool", |_, a| ordered(a, Ordering::is_lt));
        t.global("_<=_", &format!("less_equals_{suffix}"), &args, "bool", |_, a| ordered(a, Ordering::is_le));
        t.global("_>_", &format!("greater_{suffix}"), &args, "bool", |_, a| ordered(a, Ordering::is_gt));
        t.global("_>=_", &format!("greater_equals_{suffix}"), &args, "bool", |_, a| {
            ordered(a, Ordering::is_ge)
        });
    }
}
