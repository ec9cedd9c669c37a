//! `semver`: semantic versions, compared by precedence.

use super::{Args, Out, Table, string};
use crate::opaque::Opaque;
use crate::value::{EvalError, Value};
use std::cmp::Ordering;
use transom_go::semver::{SemverError, StrictVersion};

fn parse(args: Args<'_, '_>) -> Result<Result<StrictVersion, SemverError>, EvalError> {
    let text = string(args.get(0)?)?;
    let loosely = matches!(args.get(1), Ok(Value::Bool(true)));
    Ok(if loosely { StrictVersion::parse_loosely(text) } else { StrictVersion::parse(text) })
}

fn with<T>(args: Args<'_, '_>, index: usize, f: impl FnOnce(&StrictVersion) -> T) -> Result<T, EvalError> {
    if let Value::Opaque(o) = args.get(index)?
        && let Opaque::Semver(v) = &**o
    {
        return Ok(f(v));
    }
    Err(EvalError::overload())
}

fn compare(args: Args<'_, '_>) -> Result<Ordering, EvalError> {
    with(args, 0, |a| with(args, 1, |b| a.precedence(b)))?
}

fn component<'a>(args: Args<'_, 'a>, index: usize) -> Out<'a> {
    let n = with(args, 0, |v| v.numbers.get(index).copied().unwrap_or(0))?;
    Ok(Value::Int(i64::try_from(n).unwrap_or(i64::MAX)))
}

pub(super) fn declare(t: &mut Table) {
    const V: &str = "kubernetes.Semver";
    let two = format!("{V}, {V}");
    for (id, is, args) in [
        ("string_to_semver", "is_semver_string", "string"),
        ("string_bool_to_semver", "is_semver_string_bool", "string, bool"),
    ] {
        t.global("semver", id, args, V, |_, a| match parse(a)? {
            Ok(v) => Ok(Value::opaque(Opaque::Semver(v))),
            Err(why) => Err(EvalError::Failed(why.to_string())),
        });
        t.global("isSemver", is, args, "bool", |_, a| Ok(Value::Bool(parse(a)?.is_ok())));
    }
    t.member("isGreaterThan", "semver_is_greater_than", &two, "bool", |_, a| {
        Ok(Value::Bool(compare(a)?.is_gt()))
    });
    t.member("isLessThan", "semver_is_less_than", &two, "bool", |_, a| Ok(Value::Bool(compare(a)?.is_lt())));
    t.member("compareTo", "semver_compare_to", &two, "int", |_, a| Ok(Value::Int(compare(a)? as i64)));
    t.member("major", "semver_major", V, "int", |_, a| component(a, 0));
    t.member("minor", "semver_minor", V, "int", |_, a| component(a, 1));
    t.member("patch", "semver_patch", V, "int", |_, a| component(a, 2));
}
