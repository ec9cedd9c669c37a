//! Functions: which exist, what types they take, and what they do.
//!
//! One table holds every overload of the language itself and of the libraries that Kubernetes gives to
//! `x-kubernetes-validations`: strings, lists, sets, regex, urls, ip, cidr, quantity, semver, format and
//! optionals, and the authorizer library, whose variables only admission policies and match conditions have.

mod address;
pub(crate) mod authorization;
pub(crate) mod convert;
pub(crate) mod format;
mod lists;
pub(crate) mod net;
pub(crate) mod operators;
mod optionals;
pub(crate) mod quantity;
mod regexes;
pub(crate) mod semver;
mod strings;
mod template;
mod times;
pub(crate) mod url;

use super::types::{Type, parse_type, parse_types};
use super::value::{EvalError, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub(crate) type Out<'a> = Result<Value<'a>, EvalError>;
type Run = for<'x, 'a> fn(&mut Work, Args<'x, 'a>) -> Out<'a>;

/// The arguments of a call; the target of a member call comes first.
#[derive(Clone, Copy)]
pub(crate) struct Args<'x, 'a>(pub &'x [Value<'a>]);

impl<'x, 'a> Args<'x, 'a> {
    pub(crate) fn get(self, index: usize) -> Result<&'x Value<'a>, EvalError> {
        self.0.get(index).ok_or_else(EvalError::overload)
    }
}

pub(crate) fn string<'x>(v: &'x Value<'_>) -> Result<&'x str, EvalError> {
    match v {
        Value::String(s) => Ok(s),
        _ => Err(EvalError::overload()),
    }
}

pub(crate) fn int(v: &Value<'_>) -> Result<i64, EvalError> {
    match v {
        Value::Int(n) => Ok(*n),
        _ => Err(EvalError::overload()),
    }
}

/// A bound on what one evaluation may build or compare, independent of its cost: some operations cost little and
/// grow their result exponentially when nested.
#[derive(Debug)]
pub(crate) struct Work {
    left: u64,
}

impl Default for Work {
    fn default() -> Self {
        Self { left: 10_000_000 }
    }
}

impl Work {
    pub(crate) fn spend(&mut self, amount: usize) -> Result<(), EvalError> {
        let amount = u64::try_from(amount).unwrap_or(u64::MAX);
        self.left = self.left.checked_sub(amount).ok_or(EvalError::CostExceeded)?;
        Ok(())
    }
}

/// How an overload is evaluated.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    Call(Run),
    /// A value that depends on nothing but the function's name.
    Constant(fn(&str) -> Option<Value<'static>>),
    /// Evaluated by the interpreter itself: it does not evaluate all its arguments.
    Special,
}

pub(crate) struct Overload {
    pub id: String,
    pub function: String,
    pub member: bool,
    pub args: Vec<Type>,
    pub result: Type,
    pub body: Body,
}

/// All functions by name.
pub(crate) struct Table(BTreeMap<String, Vec<Overload>>);

impl Table {
    fn add(&mut self, (function, id): (&str, &str), member: bool, args: &str, result: &str, body: Body) {
        self.0.entry(function.to_owned()).or_default().push(Overload {
            id: id.to_owned(),
            function: function.to_owned(),
            member,
            args: parse_types(args),
            result: parse_type(result),
            body,
        });
    }

    pub(super) fn global(&mut self, function: &str, id: &str, args: &str, result: &str, run: Run) {
        self.add((function, id), false, args, result, Body::Call(run));
    }

    pub(super) fn member(&mut self, function: &str, id: &str, args: &str, result: &str, run: Run) {
        self.add((function, id), true, args, result, Body::Call(run));
    }

    /// A function that is called both ways.
    pub(super) fn both(&mut self, function: &str, ids: (&str, &str), args: &str, result: &str, run: Run) {
        self.global(function, ids.0, args, result, run);
        self.member(function, ids.1, args, result, run);
    }

    pub(super) fn special(&mut self, function: &str, id: &str, member: bool, args: &str, result: &str) {
        self.add((function, id), member, args, result, Body::Special);
    }

    pub(super) fn constant(&mut self, function: &str, result: &str, f: fn(&str) -> Option<Value<'static>>) {
        self.add((function, function), false, "", result, Body::Constant(f));
    }
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table(BTreeMap::new());
    operators::declare(&mut table);
    convert::declare(&mut table);
    times::declare(&mut table);
    strings::declare(&mut table);
    regexes::declare(&mut table);
    lists::declare(&mut table);
    optionals::declare(&mut table);
    url::declare(&mut table);
    net::declare(&mut table);
    quantity::declare(&mut table);
    semver::declare(&mut table);
    format::declare(&mut table);
    authorization::declare(&mut table);
    table
});

/// The overloads of a function, or `None` when no such function exists.
pub(crate) fn function(name: &str) -> Option<&'static [Overload]> {
    TABLE.0.get(name).map(Vec::as_slice)
}

/// Whether a value may be passed for a parameter of a type.
pub(crate) fn accepts(ty: &Type, value: &Value<'_>) -> bool {
    match (ty, value) {
        (Type::Dyn | Type::Param(_), _)
        | (Type::Null, Value::Null)
        | (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Uint, Value::Uint(_))
        | (Type::Double, Value::Double(_))
        | (Type::String, Value::String(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Duration, Value::Duration(_))
        | (Type::Map(..), Value::Map(_))
        | (Type::Optional(_), Value::Optional(_))
        | (Type::Type(_), Value::Type(_)) => true,
        // The first element decides which of several list overloads applies.
        // A list that should hold lists may already be flat.
        (Type::List(item), Value::List(_)) if matches!(**item, Type::List(_)) => true,
        (Type::List(item), Value::List(list)) => match list.get(0) {
            Some(Ok(first)) => accepts(item, &first),
            _ => true,
        },
        (Type::Opaque(name), Value::Opaque(o)) => o.type_name() == *name,
        _ => false,
    }
}

/// The overload that fits arguments whose types were not known beforehand.
pub(crate) fn dispatch(name: &str, member: bool, args: &[Value<'_>]) -> Option<&'static Overload> {
    let fits = |o: &&Overload| {
        o.member == member
            && o.args.len() == args.len()
            && o.args.iter().zip(args).all(|(t, v)| accepts(t, v))
    };
    function(name)?.iter().find(fits)
}

pub(crate) use lists::insert_into;

/// Whether a regular expression can be compiled, or Go's error message.
pub(crate) fn compile_pattern(pattern: &str) -> Result<(), transom_go::regexp::Error> {
    regexes::compile(pattern).map(drop)
}
