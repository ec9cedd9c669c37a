//! Methods of Go types that templates can reach: `now.Year`, `(semver "1.2.3").Major`, `$d.Hours`.

use std::rc::Rc;

use crate::functions::Type;
use crate::value::{IntKind, Named, UintKind, Value};
use transom_go::semver::{SemverError, Version};
use transom_go::time::{Time, duration};

pub(super) struct Method {
    pub name: &'static str,
    pub params: &'static [Type],
    pub run: fn(&Value, &[Value]) -> Result<Value, String>,
}

pub(super) fn find(receiver: &Value, name: &[u8]) -> Option<&'static Method> {
    let table: &'static [Method] = match receiver {
        Value::Time(_) => TIME,
        Value::Struct(shape) if shape.instant().is_some() => TIME,
        Value::Version(_) => VERSION,
        Value::Named(Named::Duration, _) => DURATION,
        Value::Named(..) => METHODS_OF_NAMED,
        _ => return None,
    };
    table.iter().find(|method| method.name.as_bytes() == name)
}

const fn method(
    name: &'static str,
    params: &'static [Type],
    run: fn(&Value, &[Value]) -> Result<Value, String>,
) -> Method {
    Method { name, params, run }
}

fn mismatch<T>() -> Result<T, String> {
    Err("reflect: Call using value of the wrong type".to_owned())
}

fn time(value: &Value) -> Result<&Time, String> {
    match value {
        Value::Time(time) => Ok(time),
        Value::Struct(shape) => shape.instant().map_or_else(mismatch, Ok),
        _ => mismatch(),
    }
}

fn int(value: &Value) -> Result<i64, String> {
    match value {
        Value::Int(_, value) | Value::Named(_, value) => Ok(*value),
        _ => mismatch(),
    }
}

fn version(value: &Value) -> Result<&Version, String> {
    match value {
        Value::Version(version) => Ok(version),
        _ => mismatch(),
    }
}

fn changed(version: Result<Version, SemverError>) -> Result<Value, String> {
    version.map(|version| Value::Version(Rc::new(version))).map_err(|error| error.to_string())
}

fn text(value: &Value) -> Result<String, String> {
    match value {
        Value::Str(text) => Ok(text.lossy().into_owned()),
        _ => mismatch(),
    }
}

fn time_value(time: Time) -> Value {
    Value::Time(Rc::new(time))
}

fn truncated(time: &Time, unit: i64, up: bool) -> Time {
    if unit <= 0 {
        return time.clone();
    }
    // Go truncates from the zero time, not from the epoch.
    let since_zero = time.unix_nanos() - i128::from(Time::ZERO_SECONDS) * 1_000_000_000;
    let rest = i64::try_from(since_zero.rem_euclid(i128::from(unit))).unwrap_or(0);
    if up && rest + rest >= unit { time.plus(unit - rest) } else { time.plus(-rest) }
}

const TIME: &[Method] = &[
    method("Format", &[Type::Str], |value, args| match &args[0] {
        Value::Str(layout) => Ok(Value::str(time(value)?.format_bytes(layout))),
        _ => mismatch(),
    }),
    method("String", &[], |value, _| Ok(Value::str(time(value)?.to_string()))),
    method("Unix", &[], |value, _| Ok(Value::int64(time(value)?.seconds))),
    method("UnixMilli", &[], |value, _| nanos_in(value, 1_000_000)),
    method("UnixMicro", &[], |value, _| nanos_in(value, 1000)),
    method("UnixNano", &[], |value, _| nanos_in(value, 1)),
    method("Year", &[], |value, _| Ok(Value::int(time(value)?.civil().year))),
    method("Month", &[], |value, _| Ok(Value::Named(Named::Month, time(value)?.civil().month))),
    method("Day", &[], |value, _| Ok(Value::int(time(value)?.civil().day))),
    method("Hour", &[], |value, _| Ok(Value::int(time(value)?.civil().hour))),
    method("Minute", &[], |value, _| Ok(Value::int(time(value)?.civil().minute))),
    method("Second", &[], |value, _| Ok(Value::int(time(value)?.civil().second))),
    method("Nanosecond", &[], |value, _| Ok(Value::int(i64::from(time(value)?.nanos)))),
    method("YearDay", &[], |value, _| Ok(Value::int(time(value)?.year_day()))),
    method("Weekday", &[], |value, _| Ok(Value::Named(Named::Weekday, time(value)?.weekday()))),
    method("IsZero", &[], |value, _| {
        let time = time(value)?;
        Ok(Value::Bool(time.seconds == Time::ZERO_SECONDS && time.nanos == 0))
    }),
    method("UTC", &[], |value, _| Ok(time_value(time(value)?.in_zone("UTC")))),
    method("Local", &[], |value, _| Ok(time_value(time(value)?.in_zone("Local")))),
    method("Add", &[Type::Duration], |value, args| Ok(time_value(time(value)?.plus(int(&args[0])?)))),
    method("AddDate", &[Type::Int, Type::Int, Type::Int], |value, args| {
        Ok(time_value(time(value)?.plus_date(int(&args[0])?, int(&args[1])?, int(&args[2])?)))
    }),
    method("Sub", &[Type::Time], |value, args| {
        Ok(Value::Named(Named::Duration, time(value)?.since(time(&args[0])?)))
    }),
    method("Before", &[Type::Time], |value, args| {
        Ok(Value::Bool(time(value)?.unix_nanos() < time(&args[0])?.unix_nanos()))
    }),
    method("After", &[Type::Time], |value, args| {
        Ok(Value::Bool(time(value)?.unix_nanos() > time(&args[0])?.unix_nanos()))
    }),
    method("Equal", &[Type::Time], |value, args| {
        Ok(Value::Bool(time(value)?.unix_nanos() == time(&args[0])?.unix_nanos()))
    }),
    method("Truncate", &[Type::Duration], |value, args| {
        Ok(time_value(truncated(time(value)?, int(&args[0])?, false)))
    }),
    method("Round", &[Type::Duration], |value, args| {
        Ok(time_value(truncated(time(value)?, int(&args[0])?, true)))
    }),
];

fn nanos_in(value: &Value, unit: i128) -> Result<Value, String> {
    Ok(Value::int64(i64::try_from(time(value)?.unix_nanos().div_euclid(unit)).unwrap_or(i64::MAX)))
}

const DURATION: &[Method] = &[
    method("String", &[], |value, _| Ok(Value::str(duration::format(int(value)?)))),
    method("Nanoseconds", &[], |value, _| Ok(Value::Int(IntKind::Int64, int(value)?))),
    method("Microseconds", &[], |value, _| Ok(Value::Int(IntKind::Int64, int(value)? / 1000))),
    method("Milliseconds", &[], |value, _| Ok(Value::Int(IntKind::Int64, int(value)? / 1_000_000))),
    method("Seconds", &[], |value, _| Ok(Value::Float(int(value)? as f64 / 1e9))),
    method("Minutes", &[], |value, _| Ok(Value::Float(int(value)? as f64 / 6e10))),
    method("Hours", &[], |value, _| Ok(Value::Float(int(value)? as f64 / 3.6e12))),
    method("Abs", &[], |value, _| Ok(Value::Named(Named::Duration, int(value)?.saturating_abs()))),
    method("Round", &[Type::Duration], |value, args| {
        Ok(Value::Named(Named::Duration, duration::round(int(value)?, int(&args[0])?)))
    }),
    method("Truncate", &[Type::Duration], |value, args| {
        let (nanos, unit) = (int(value)?, int(&args[0])?);
        Ok(Value::Named(Named::Duration, if unit <= 0 { nanos } else { nanos - nanos % unit }))
    }),
];

const METHODS_OF_NAMED: &[Method] = &[method("String", &[], |value, _| match value {
    Value::Named(named, number) => Ok(Value::str(named.text(*number))),
    _ => mismatch(),
})];

const VERSION: &[Method] = &[
    method("Major", &[], |value, _| Ok(Value::Uint(UintKind::Uint64, version(value)?.major))),
    method("Minor", &[], |value, _| Ok(Value::Uint(UintKind::Uint64, version(value)?.minor))),
    method("Patch", &[], |value, _| Ok(Value::Uint(UintKind::Uint64, version(value)?.patch))),
    method("Prerelease", &[], |value, _| Ok(Value::str(version(value)?.prerelease.as_str()))),
    method("Metadata", &[], |value, _| Ok(Value::str(version(value)?.metadata.as_str()))),
    method("Original", &[], |value, _| Ok(Value::str(version(value)?.original.as_str()))),
    method("String", &[], |value, _| Ok(Value::str(version(value)?.to_string()))),
    method("Compare", &[Type::Version], |value, args| {
        Ok(Value::int(version(value)?.precedence(version(&args[0])?) as i64))
    }),
    method("Equal", &[Type::Version], |value, args| {
        Ok(Value::Bool(version(value)?.precedence(version(&args[0])?).is_eq()))
    }),
    method("LessThan", &[Type::Version], |value, args| {
        Ok(Value::Bool(version(value)?.precedence(version(&args[0])?).is_lt()))
    }),
    method("LessThanEqual", &[Type::Version], |value, args| {
        Ok(Value::Bool(version(value)?.precedence(version(&args[0])?).is_le()))
    }),
    method("GreaterThan", &[Type::Version], |value, args| {
        Ok(Value::Bool(version(value)?.precedence(version(&args[0])?).is_gt()))
    }),
    method("GreaterThanEqual", &[Type::Version], |value, args| {
        Ok(Value::Bool(version(value)?.precedence(version(&args[0])?).is_ge()))
    }),
    method("IncMajor", &[], |value, _| Ok(Value::Version(Rc::new(version(value)?.next_major())))),
    method("IncMinor", &[], |value, _| Ok(Value::Version(Rc::new(version(value)?.next_minor())))),
    method("IncPatch", &[], |value, _| Ok(Value::Version(Rc::new(version(value)?.next_patch())))),
    method("SetPrerelease", &[Type::Str], |value, args| {
        changed(version(value)?.with_prerelease(&text(&args[0])?))
    }),
    method("SetMetadata", &[Type::Str], |value, args| {
        changed(version(value)?.with_metadata(&text(&args[0])?))
    }),
];
