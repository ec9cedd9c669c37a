//! `typeOf`, `kindOf` and the like, and `reflect.DeepEqual`.

use super::args;
use crate::functions::{Native, Type, fixed};
use crate::value::{MAX_DEPTH, Value};

const TARGET: &[Type] = &[Type::Str, Type::Any];

pub(super) const FUNCTIONS: &[Native] = &[
    fixed("typeOf", &[Type::Any], |_, args| Ok(Value::str(&*args[0].type_name()))),
    fixed("typeIs", TARGET, |_, args| {
        Ok(Value::Bool(**args::text(args, 0)? == *args[1].type_name().as_bytes()))
    }),
    fixed("typeIsLike", TARGET, |_, args| {
        let (target, found) = (args::text(args, 0)?.lossy(), args[1].type_name());
        Ok(Value::Bool(target == found || found.strip_prefix('*') == Some(&*target)))
    }),
    fixed("kindOf", &[Type::Any], |_, args| Ok(Value::str(args[0].kind().name()))),
    fixed("kindIs", TARGET, |_, args| {
        Ok(Value::Bool(**args::text(args, 0)? == *args[1].kind().name().as_bytes()))
    }),
    fixed("deepEqual", &[Type::Any, Type::Any], |_, args| Ok(Value::Bool(deep_equal(&args[0], &args[1])))),
];

pub(crate) fn deep_equal(a: &Value, b: &Value) -> bool {
    equal(a, b, 0)
}

fn equal(a: &Value, b: &Value, depth: usize) -> bool {
    // Data this deep is cyclic for all we can tell; Go, too, takes a revisited pair as equal.
    if depth > MAX_DEPTH {
        return true;
    }
    match (a, b) {
        (Value::Missing | Value::Nil, Value::Missing | Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(x, a), Value::Int(y, b)) => x == y && a == b,
        (Value::Named(x, a), Value::Named(y, b)) => x == y && a == b,
        (Value::Uint(x, a), Value::Uint(y, b)) => x == y && a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Complex(a, x), Value::Complex(b, y)) => a == b && x == y,
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::List(a), Value::List(b)) => {
            if a.ty() != b.ty() || a.is_nil() != b.is_nil() || a.len() != b.len() {
                return false;
            }
            a.same(b) || a.items().iter().zip(b.items().iter()).all(|(a, b)| equal(a, b, depth + 1))
        }
        (Value::Map(a), Value::Map(b)) => {
            if a.ty() != b.ty() || a.is_nil() != b.is_nil() || a.len() != b.len() {
                return false;
            }
            let entries = || {
                a.entries()
                    .iter()
                    .zip(b.entries().iter())
                    .all(|(a, b)| a.0 == b.0 && equal(a.1, b.1, depth + 1))
            };
            a.same(b) || entries()
        }
        (Value::Struct(a), Value::Struct(b)) => {
            a.type_name == b.type_name
                && a.fields.iter().zip(&b.fields).all(|(a, b)| equal(&a.1, &b.1, depth + 1))
        }
        (Value::Time(a), Value::Time(b)) => a == b,
        (Value::Version(a), Value::Version(b)) => a == b,
        _ => false,
    }
}
