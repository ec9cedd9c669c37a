//! Dates. Any value that is not a time or a Unix second count means *now*, as in sprig.

use std::rc::Rc;

use super::args::text;
use crate::functions::{CallError, Env, Native, Type, fixed};
use crate::value::{IntKind, Value};
use transom_go::strconv::parse_int;
use transom_go::time::{self, Time, duration};

const STR_TIME: &[Type] = &[Type::Str, Type::Time];
const STR2: &[Type] = &[Type::Str, Type::Str];
const ANY: &[Type] = &[Type::Any];
const DATE_IN_ZONE: &[Type] = &[Type::Str, Type::Any, Type::Str];

pub(super) const FUNCTIONS: &[Native] = &[
    fixed("now", &[], |env, _| Ok(time_value(now(env)))),
    fixed("ago", ANY, |env, args| {
        let then = instant(env, &args[0], false);
        let since = now(env).since(&then);
        env.string(duration::format(duration::round(since, duration::SECOND)))
    }),
    fixed("date", &[Type::Str, Type::Any], |env, args| {
        let date = instant(env, &args[1], true).in_zone("Local");
        env.string(date.format_bytes(text(args, 0)?))
    }),
    fixed("dateInZone", DATE_IN_ZONE, date_in_zone),
    fixed("date_in_zone", DATE_IN_ZONE, date_in_zone),
    fixed("htmlDate", ANY, |env, args| {
        let date = instant(env, &args[0], true).in_zone("Local");
        env.string(date.format("2006-01-02"))
    }),
    fixed("htmlDateInZone", &[Type::Any, Type::Str], |env, args| {
        let date = instant(env, &args[0], true).in_zone(&text(args, 1)?.lossy());
        env.string(date.format("2006-01-02"))
    }),
    fixed("dateModify", STR_TIME, date_modify),
    fixed("date_modify", STR_TIME, date_modify),
    fixed("mustDateModify", STR_TIME, must_date_modify),
    fixed("must_date_modify", STR_TIME, must_date_modify),
    fixed("duration", ANY, |env, args| {
        let seconds = match &args[0] {
            Value::Str(text) => saturating(&text.lossy()),
            Value::Int(IntKind::Int64, seconds) => *seconds,
            _ => 0,
        };
        env.string(duration::format(seconds.wrapping_mul(duration::SECOND)))
    }),
    fixed("durationRound", ANY, |env, args| {
        let nanos = match &args[0] {
            Value::Str(text) => duration::parse(&text.lossy()).unwrap_or(0),
            Value::Int(IntKind::Int64, nanos) => *nanos,
            Value::Time(time) => now(env).since(time),
            _ => 0,
        };
        env.string(rounded(nanos.unsigned_abs()))
    }),
    fixed("toDate", STR2, |_, args| {
        Ok(time_value(time::parse(text(args, 0)?, text(args, 1)?).unwrap_or_else(|_| Time::zero())))
    }),
    fixed("mustToDate", STR2, |_, args| Ok(time_value(time::parse(text(args, 0)?, text(args, 1)?)?))),
    fixed("unixEpoch", &[Type::Time], |env, args| match &args[0] {
        Value::Time(time) => env.string(time.seconds.to_string()),
        _ => Ok(Value::str("")),
    }),
];

fn time_value(time: Time) -> Value {
    Value::Time(Rc::new(time))
}

fn now(env: &Env<'_>) -> Time {
    Time::from_nanos(env.context.now())
}

/// `strconv.ParseInt` gives the nearest bound with its range error, and sprig ignores the error.
fn saturating(text: &str) -> i64 {
    match parse_int(text, 10) {
        Ok(value) => value,
        Err(transom_go::strconv::NumberError::Range) if text.starts_with('-') => i64::MIN,
        Err(transom_go::strconv::NumberError::Range) => i64::MAX,
        Err(_) => 0,
    }
}

fn instant(env: &Env<'_>, value: &Value, int32: bool) -> Time {
    match value {
        Value::Time(time) => (**time).clone(),
        Value::Int(IntKind::Int | IntKind::Int64, seconds) => Time::from_unix(*seconds, 0),
        Value::Int(IntKind::Int32, seconds) if int32 => Time::from_unix(*seconds, 0),
        _ => now(env),
    }
}

fn date_in_zone(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let date = instant(env, &args[1], true).in_zone(&text(args, 2)?.lossy());
    env.string(date.format_bytes(text(args, 0)?))
}

fn date_modify(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    must_date_modify(env, args).or_else(|_| Ok(args[1].clone()))
}

fn must_date_modify(_: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let by = duration::parse(&text(args, 0)?.lossy())?;
    match &args[1] {
        Value::Time(time) => Ok(time_value(time.plus(by))),
        _ => Ok(args[1].clone()),
    }
}

fn rounded(nanos: u64) -> String {
    const SECOND_NANOS: u64 = 1_000_000_000;
    const HOUR_NANOS: u64 = 3600 * SECOND_NANOS;
    const UNITS: [(u64, &str); 6] = [
        (HOUR_NANOS * 24 * 365, "y"),
        (HOUR_NANOS * 24 * 30, "mo"),
        (HOUR_NANOS * 24, "d"),
        (HOUR_NANOS, "h"),
        (60 * SECOND_NANOS, "m"),
        (SECOND_NANOS, "s"),
    ];
    match UNITS.iter().find(|(unit, _)| nanos > *unit) {
        Some((unit, name)) => format!("{}{name}", nanos / unit),
        None => "0s".to_owned(),
    }
}
