//! `default empty coalesce all any ternary fail`.

use crate::functions::{Native, Type, fixed, variadic};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Native] = &[
    fixed("hello", &[], |_, _| Ok(Value::str("Hello!"))),
    variadic("default", &[Type::Any, Type::Any], |_, args| match args.get(1) {
        Some(given) if !empty(given) => Ok(given.clone()),
        _ => Ok(args[0].clone()),
    }),
    fixed("empty", &[Type::Any], |_, args| Ok(Value::Bool(empty(&args[0])))),
    variadic("coalesce", &[Type::Any], |_, args| {
        Ok(args.iter().find(|arg| !empty(arg)).cloned().unwrap_or(Value::Nil))
    }),
    variadic("all", &[Type::Any], |_, args| Ok(Value::Bool(!args.iter().any(empty)))),
    variadic("any", &[Type::Any], |_, args| Ok(Value::Bool(args.iter().any(|arg| !empty(arg))))),
    fixed("ternary", &[Type::Any, Type::Any, Type::Bool], |_, args| {
        Ok(args[usize::from(!args[2].truth())].clone())
    }),
    fixed("fail", &[Type::Str], |_, args| Err(super::args::text(args, 0)?.lossy().into_owned().into())),
];

/// Zero values are empty; structs never are.
pub(super) fn empty(value: &Value) -> bool {
    !value.truth()
}
