//! What a timestamp or a duration consists of: `getHours()` and the like.

use super::{Args, Out, Table, string};
use crate::time::Zone;
use crate::value::{EvalError, Value};
use transom_go::time::Time;

type Part = fn(&Time) -> i64;

/// Of a timestamp in UTC, or in the zone that the second argument names.
fn part<'a>(args: Args<'_, 'a>, part: Part) -> Out<'a> {
    let Value::Timestamp(t) = args.get(0)? else { return Err(EvalError::overload()) };
    let zone = match args.get(1) {
        Ok(name) => {
            let name = string(name)?;
            Zone::get(name).ok_or_else(|| EvalError::failed(format!("unknown time zone {name}")))?
        }
        Err(_) => Zone::UTC,
    };
    Ok(Value::Int(part(&t.at(&zone).time())))
}

fn of_duration<'a>(args: Args<'_, 'a>, unit: i64) -> Out<'a> {
    match args.get(0)? {
        Value::Duration(d) => Ok(Value::Int(d / unit)),
        _ => Err(EvalError::overload()),
    }
}

pub(super) fn declare(t: &mut Table) {
    // One list per accessor because a function pointer captures nothing.
    macro_rules! accessor {
        ($name:literal, $id:literal, $part:expr) => {
            t.member($name, concat!("timestamp_to_", $id), "timestamp", "int", |_, a| part(a, $part));
            t.member($name, concat!("timestamp_to_", $id, "_with_tz"), "timestamp, string", "int", |_, a| {
                part(a, $part)
            });
        };
    }
    accessor!("getFullYear", "year", |t| t.civil().year);
    accessor!("getMonth", "month", |t| t.civil().month - 1);
    accessor!("getDayOfYear", "day_of_year", |t| t.year_day() - 1);
    accessor!("getDayOfMonth", "day_of_month", |t| t.civil().day - 1);
    accessor!("getDate", "day_of_month_1_based", |t| t.civil().day);
    accessor!("getDayOfWeek", "day_of_week", |t| t.weekday());
    accessor!("getHours", "hours", |t| t.civil().hour);
    accessor!("getMinutes", "minutes", |t| t.civil().minute);
    accessor!("getSeconds", "seconds", |t| t.civil().second);
    accessor!("getMilliseconds", "milliseconds", |t| i64::from(t.nanos / 1_000_000));
    t.member("getHours", "duration_to_hours", "duration", "int", |_, a| of_duration(a, 3_600_000_000_000));
    t.member("getMinutes", "duration_to_minutes", "duration", "int", |_, a| of_duration(a, 60_000_000_000));
    t.member("getSeconds", "duration_to_seconds", "duration", "int", |_, a| of_duration(a, 1_000_000_000));
    t.member("getMilliseconds", "duration_to_milliseconds", "duration", "int", |_, a| {
        of_duration(a, 1_000_000)
    });
}
