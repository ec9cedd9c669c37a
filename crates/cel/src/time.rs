//! Durations and timestamps: parsed from and written as texts, as Go and cel-go do it, and the `duration` format of schemas,
//! which also knows days and weeks. Nothing here reads a clock.

mod instant;

pub use instant::Instant;
pub(crate) use instant::Zone;

use transom_go::time::duration;

const NANOS: i128 = 1_000_000_000;

/// A decimal number times `scale`, fractions below one dropped.
fn scaled(digits: &str, scale: i128) -> Option<i128> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || digits.len() > 40 {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut total = whole.checked_mul(scale)?;
    let mut unit = scale;
    for c in fraction.chars() {
        unit /= 10;
        total = total.checked_add(i128::from(c.to_digit(10)?) * unit)?;
    }
    Some(total)
}

/// Durations as the `duration` format of OpenAPI schemas takes them: Go's, and `3 days`, `2w`.
pub fn parse_schema_duration(text: &str) -> Option<i64> {
    if let Ok(nanos) = duration::parse(text) {
        return Some(nanos);
    }
    let (negative, body) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut total: i128 = 0;
    let mut rest = body.trim_start();
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (digits, after) = rest.split_at(number);
        let after = after.trim_start();
        let unit_end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let scale: i128 = match unit.to_lowercase().as_str() {
            "ns" | "nano" | "nanos" | "nanosecond" | "nanoseconds" => 1,
            "us" | "µs" | "micro" | "micros" | "microsecond" | "microseconds" => 1_000,
            "ms" | "milli" | "millis" | "millisecond" | "milliseconds" => 1_000_000,
            "s" | "sec" | "secs" | "second" | "seconds" => NANOS,
            "m" | "min" | "mins" | "minute" | "minutes" => 60 * NANOS,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600 * NANOS,
            "d" | "day" | "days" => 86_400 * NANOS,
            "w" | "week" | "weeks" => 7 * 86_400 * NANOS,
            _ => return None,
        };
        total = total.checked_add(scaled(digits, scale)?)?;
        rest = next.trim_start();
    }
    if body.trim().is_empty() {
        return None;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// A duration in seconds, as CEL prints it: `3730.5s`. The seconds are a double, as in Go.
#[expect(clippy::cast_precision_loss, reason = "as Go does")]
pub(crate) fn format_duration(nanos: i64) -> String {
    let (seconds, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    format!("{}s", seconds as f64 + fraction as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(parse_schema_duration("2 days"), Some(172_800_000_000_000));
        assert_eq!(parse_schema_duration("1w"), Some(604_800_000_000_000));
        assert_eq!(parse_schema_duration("soon"), None);
        for (nanos, text) in [
            (-3_730_500_000_000, "-3730.5s"),
            (1, "0.000000001s"),
            (i64::MAX, "9223372036.854776s"),
            (i64::MIN, "-9223372036.854776s"),
        ] {
            assert_eq!(format_duration(nanos), text);
        }
    }
}
