//! sprig v3.3.0, the functions function-go-templating ships. `env` and `expandenv` are absent, as there.

mod case;
mod certificates;
mod convert;
mod crypto;
mod dates;
mod decimal;
mod defaults;
mod dicts;
mod encoding;
mod json;
mod keys;
mod lists;
mod math;
mod merge;
mod password;
mod paths;
mod primes;
mod reflect;
mod regexes;
mod strings;
mod urls;
mod versions;

pub(crate) use reflect::deep_equal;

use crate::functions::{CallError, Env, Native};
use crate::value::Value;

/// A deep copy, counted against the budget.
pub(crate) fn copy(env: &mut Env<'_>, value: &Value) -> Result<Value, CallError> {
    dicts::deep_copy(env, value, 0)
}

pub const TABLES: &[&[Native]] = &[
    case::FUNCTIONS,
    certificates::FUNCTIONS,
    convert::FUNCTIONS,
    crypto::FUNCTIONS,
    dates::FUNCTIONS,
    defaults::FUNCTIONS,
    dicts::FUNCTIONS,
    encoding::FUNCTIONS,
    json::FUNCTIONS,
    lists::FUNCTIONS,
    lists::PAIRED,
    math::FUNCTIONS,
    password::FUNCTIONS,
    paths::FUNCTIONS,
    reflect::FUNCTIONS,
    regexes::FUNCTIONS,
    strings::FUNCTIONS,
    urls::FUNCTIONS,
    versions::FUNCTIONS,
];

mod args {
    //! Reading arguments whose kinds the signature has already promised.

    use crate::functions::CallError;
    use crate::value::{List, Map, Str, Value};

    pub fn text(args: &[Value], index: usize) -> Result<&Str, CallError> {
        match args.get(index) {
            Some(Value::Str(text)) => Ok(text),
            _ => Err("reflect: Call using value of the wrong type".into()),
        }
    }

    pub fn int(args: &[Value], index: usize) -> Result<i64, CallError> {
        match args.get(index) {
            Some(Value::Int(_, value)) => Ok(*value),
            Some(Value::Uint(_, value)) => Ok(i64::try_from(*value).unwrap_or(i64::MAX)),
            _ => Err("reflect: Call using value of the wrong type".into()),
        }
    }

    pub fn map(args: &[Value], index: usize) -> Result<&Map, CallError> {
        match args.get(index) {
            Some(Value::Map(map)) => Ok(map),
            _ => Err("reflect: Call using value of the wrong type".into()),
        }
    }

    /// A list argument of a function that takes `interface {}` and reflects on it; `doing` words the refusal.
    pub fn list<'a>(value: &'a Value, doing: &str) -> Result<&'a List, CallError> {
        match value {
            Value::List(list) => Ok(list),
            Value::Nil | Value::Missing => {
                Err("runtime error: invalid memory address or nil pointer dereference".into())
            }
            other => Err(format!("{doing} {}", other.kind().name()).into()),
        }
    }
}
