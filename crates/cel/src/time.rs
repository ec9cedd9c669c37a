//! Durations and timestamps as Go writes them.

mod instant;

pub use instant::Instant;
pub(crate) use instant::{Civil, Zone};

const NANOS: i128 = 1_000_000_000;

/// Go's `time.ParseDuration`: `1h15m30.918s`, `-1.5h`, `0`.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    // One more than the largest positive duration, which has a negative counterpart.
    const MOST: u64 = 1 << 63;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (digits, after) = rest.split_at(number);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let scale: u64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let amount = in_units(digits, scale).filter(|amount| *amount <= MOST)?;
        total = total.checked_add(amount).filter(|total| *total <= MOST)?;
        rest = next;
    }
    if negative { Some(total.wrapping_neg().cast_signed()) } else { i64::try_from(total).ok() }
}

/// A decimal number times a unit. The part below one goes through a double, as in Go, whose rounding shows.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the product is positive and less than the unit"
)]
fn in_units(digits: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let (mut part, mut scale) = (0_u64, 1.0_f64);
    for digit in fraction.bytes() {
        // Digits beyond what an integer holds are dropped.
        let Some(more) = part.checked_mul(10).map(|n| n + u64::from(digit - b'0')) else { break };
        if more > 1 << 63 || part > (i64::MAX as u64) / 10 {
            break;
        }
        (part, scale) = (more, scale * 10.0);
    }
    let whole = whole.checked_mul(unit)?;
    whole.checked_add((part as f64 * (unit as f64 / scale)) as u64)
}

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
    if let Some(nanos) = parse_duration(text) {
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
        for (text, nanos) in [
            ("0", Some(0)),
            ("1s", Some(1_000_000_000)),
            ("-1.5h", Some(-5_400_000_000_000)),
            ("1h2m3s4ms5us6ns", Some(3_723_004_005_006)),
            (".5s", Some(500_000_000)),
            ("", None),
            ("1", None),
            ("1d", None),
            ("1nns", None),
            ("9999999999h", None),
        ] {
            assert_eq!(parse_duration(text), nanos, "{text}");
        }
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
        // Fractions are doubles: three tenths of a minute, and more digits than an integer holds.
        assert_eq!(parse_duration("1.123456789123456789123456789s"), Some(1_123_456_789));
        assert_eq!(parse_duration("0.9223372036854775807h"), Some(3_320_413_933_267));
        assert_eq!(parse_duration("-9223372036854775808ns"), Some(i64::MIN));
        assert_eq!(parse_duration("9223372036854775808ns"), None);
    }
}
