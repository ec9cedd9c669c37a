//! The scalars with a canonical form: quantities and times, read and written again as Go does.

use serde_json::Value;
use transom_object::quantity::{MILLI, ParseError, Quantity};
use transom_object::time::{self, Timestamp};

/// Seconds of 0001-01-01T00:00:00Z, Go's zero time.
const ZERO_TIME_SECONDS: i64 = -62_135_596_800;

/// A quantity as Go writes it after reading it.
pub(crate) fn quantity(text: &str) -> Result<String, ParseError> {
    Quantity::parse(text.trim()).map(|q| q.to_string())
}

/// The quantity rounded up to a milli, if it is finer than that.
pub(crate) fn round_up_to_milli(text: &str) -> Option<String> {
    let mut quantity = Quantity::parse(text).ok()?;
    (!quantity.round_up(MILLI)).then(|| quantity.to_string())
}

/// A `metav1.Time`, or with `micro` a `metav1.MicroTime`, as Go writes it again.
pub(crate) fn time(text: &str, micro: bool) -> Result<Value, String> {
    let parsed = if micro { time::parse_micro(text) } else { time::parse(text) };
    let parsed = parsed.map_err(|e| e.to_string())?;
    Ok(moment(parsed, micro))
}

/// A moment in UTC; Go's zero time is `null`.
pub(crate) fn moment(at: Timestamp, micro: bool) -> Value {
    match at {
        at if at.as_second() == ZERO_TIME_SECONDS && at.subsec_nanosecond() < 1000 => Value::Null,
        at if micro => time::format_micro(at).into(),
        at => time::format(at).into(),
    }
}
