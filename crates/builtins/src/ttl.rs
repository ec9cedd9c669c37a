//! The TTL of a response, when a function's input has one in Go's notation for durations.

use transom_function::{ResponseMeta, RunFunctionResponse};
use transom_object::time::parse_duration;

const SECOND_NANOS: i64 = 1_000_000_000;

/// Sets the time from a text such as `1m30s`; the empty text leaves it as it is.
pub(crate) fn set(response: &mut RunFunctionResponse, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let nanos = parse_duration(text).map_err(|e| e.to_string())?;
    let remainder = i32::try_from(nanos % SECOND_NANOS).unwrap_or_default();
    let ttl = prost_types::Duration { seconds: nanos / SECOND_NANOS, nanos: remainder };
    response.meta.get_or_insert_with(ResponseMeta::default).ttl = Some(ttl);
    Ok(())
}
