//! The functions for optional values: `optional.of`, `hasValue`, and `first` and `last` of lists, with cel-go's idea of a zero
//! value.

use super::{Out, Table};
use crate::time::Instant;
use crate::value::{EvalError, Map, Value};

fn value<'a>(v: &Value<'a>) -> Out<'a> {
    match v {
        Value::Optional(Some(inner)) => Ok((**inner).clone()),
        Value::Optional(None) => Err(EvalError::failed("optional.none() dereference")),
        _ => Err(EvalError::overload()),
    }
}

fn is_zero(v: &Value<'_>) -> bool {
    match v {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Int(n) => *n == 0,
        Value::Uint(n) => *n == 0,
        Value::Double(d) => *d == 0.0,
        Value::String(s) => s.is_empty(),
        Value::Bytes(b) => b.is_empty(),
        Value::List(l) => l.len() == 0,
        Value::Map(m @ Map::Owned(_)) => m.len() == 0,
        Value::Duration(d) => *d == 0,
        // Go's zero time is the first moment of the year 1, not the epoch.
        Value::Timestamp(t) => *t == Instant::FIRST,
        _ => false,
    }
}

fn unwrap<'a>(v: &Value<'a>) -> Out<'a> {
    let Value::List(list) = v else { return Err(EvalError::overload()) };
    let mut items = Vec::new();
    for item in list.iter() {
        match item? {
            Value::Optional(Some(inner)) => items.push((*inner).clone()),
            Value::Optional(None) => {}
            _ => return Err(EvalError::failed("value is not an optional")),
        }
    }
    Ok(Value::list(items))
}

fn end<'a>(v: &Value<'a>, last: bool) -> Out<'a> {
    let Value::List(list) = v else { return Err(EvalError::overload()) };
    let index = if last { list.len().saturating_sub(1) } else { 0 };
    match list.get(index) {
        Some(item) => Ok(Value::some(item?)),
        None => Ok(Value::Optional(None)),
    }
}

pub(super) fn declare(t: &mut Table) {
    t.global("optional.of", "optional_of", "V", "optional(V)", |_, a| Ok(Value::some(a.get(0)?.clone())));
    t.global("optional.ofNonZeroValue", "optional_ofNonZeroValue", "V", "optional(V)", |_, a| {
        let v = a.get(0)?;
        Ok(if is_zero(v) { Value::Optional(None) } else { Value::some(v.clone()) })
    });
    t.global("optional.none", "optional_none", "", "optional(V)", |_, _| Ok(Value::Optional(None)));
    t.member("value", "optional_value", "optional(V)", "V", |_, a| value(a.get(0)?));
    t.member("hasValue", "optional_hasValue", "optional(V)", "bool", |_, a| match a.get(0)? {
        Value::Optional(v) => Ok(Value::Bool(v.is_some())),
        _ => Err(EvalError::overload()),
    });
    t.member("first", "list_first", "list(V)", "optional(V)", |_, a| end(a.get(0)?, false));
    t.member("last", "list_last", "list(V)", "optional(V)", |_, a| end(a.get(0)?, true));
    t.global("optional.unwrap", "optional_unwrap", "list(optional(V))", "list(V)", |_, a| unwrap(a.get(0)?));
    t.member("unwrapOpt", "optional_unwrapOpt", "list(optional(V))", "list(V)", |_, a| unwrap(a.get(0)?));
}
