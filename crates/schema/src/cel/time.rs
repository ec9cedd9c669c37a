//! Durations and timestamps as Go writes them.

use jiff::Timestamp;

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
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (digits, after) = rest.split_at(number);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let scale: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => NANOS,
            "m" => 60 * NANOS,
            "h" => 3600 * NANOS,
            _ => return None,
        };
        total = total.checked_add(scaled(digits, scale)?)?;
        rest = next;
    }
    let signed = if negative { -total } else { total };
    i64::try_from(signed).ok()
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
pub(crate) fn parse_schema_duration(text: &str) -> Option<i64> {
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

/// A duration in seconds, as CEL prints it: `3730.5s`.
pub(crate) fn format_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let magnitude = nanos.unsigned_abs();
    let (seconds, fraction) = (magnitude / 1_000_000_000, magnitude % 1_000_000_000);
    if fraction == 0 {
        return format!("{sign}{seconds}s");
    }
    let digits = format!("{fraction:09}");
    format!("{sign}{seconds}.{}s", digits.trim_end_matches('0'))
}

/// RFC 3339, between the years 1 and 9999.
pub(crate) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let at = |i: usize, c: &[u8]| bytes.get(i).is_some_and(|b| c.contains(b));
    let shaped = digits(0..4)
        && at(4, b"-")
        && digits(5..7)
        && at(7, b"-")
        && digits(8..10)
        && at(10, b"Tt")
        && digits(11..13)
        && at(13, b":")
        && digits(14..16)
        && at(16, b":")
        && digits(17..19);
    if !shaped || bytes.get(17..19) == Some(b"60") {
        return None;
    }
    let tail = text.get(19..)?;
    let tail = match tail.strip_prefix(['.', ',']) {
        Some(rest) => {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            if end == 0 {
                return None;
            }
            rest.get(end..)?
        }
        None => tail,
    };
    let zone = tail.as_bytes();
    let offset = zone.len() == 6
        && matches!(zone[0], b'+' | b'-')
        && zone[3] == b':'
        && [1, 2, 4, 5].iter().all(|i| zone[*i].is_ascii_digit());
    if !(offset || matches!(tail, "Z" | "z")) {
        return None;
    }
    let parsed: Timestamp = text.parse().ok()?;
    in_range(parsed)
}

/// A day, `2006-01-02`, at midnight UTC.
pub(crate) fn parse_date(text: &str) -> Option<Timestamp> {
    if text.len() != 10 {
        return None;
    }
    parse_timestamp(&format!("{text}T00:00:00Z"))
}

const MIN_SECONDS: i64 = -62_135_596_800;
const MAX_SECONDS: i64 = 253_402_300_799;

/// The timestamp if CEL can hold it.
pub(crate) fn in_range(t: Timestamp) -> Option<Timestamp> {
    let seconds = t.as_nanosecond().div_euclid(NANOS);
    (i128::from(MIN_SECONDS)..=i128::from(MAX_SECONDS)).contains(&seconds).then_some(t)
}

pub(crate) fn from_seconds(seconds: i64) -> Option<Timestamp> {
    in_range(Timestamp::from_second(seconds).ok()?)
}

pub(crate) fn add(t: Timestamp, nanos: i64) -> Option<Timestamp> {
    let sum = t.as_nanosecond().checked_add(i128::from(nanos))?;
    in_range(Timestamp::from_nanosecond(sum).ok()?)
}

/// The distance between two timestamps, if a duration can hold it.
pub(crate) fn between(a: Timestamp, b: Timestamp) -> Option<i64> {
    i64::try_from(a.as_nanosecond() - b.as_nanosecond()).ok()
}

/// A zone by name (`America/New_York`, `UTC`) or offset (`+01:00`, `01:00`).
pub(crate) fn zone(name: &str) -> Option<jiff::tz::TimeZone> {
    if let Some((hours, minutes)) = name.split_once(':') {
        let (negative, hours) = match hours.as_bytes().first() {
            Some(b'-') => (true, &hours[1..]),
            Some(b'+') => (false, &hours[1..]),
            _ => (false, hours),
        };
        let hours: i32 = hours.parse().ok()?;
        let minutes: i32 = minutes.parse().ok()?;
        let seconds = hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?;
        let seconds = if negative { -seconds } else { seconds };
        return jiff::tz::Offset::from_seconds(seconds).ok().map(jiff::tz::TimeZone::fixed);
    }
    if matches!(name, "" | "UTC") {
        return Some(jiff::tz::TimeZone::UTC);
    }
    jiff::tz::TimeZone::get(name).ok()
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
        assert_eq!(format_duration(-3_730_500_000_000), "-3730.5s");
    }

    #[test]
    fn timestamps() {
        assert!(parse_timestamp("2011-08-18T19:03:37.010000000+01:00").is_some());
        for bad in ["1000-00-00T00:00:00Z", "1000-01-01T00:00:00ZZ", "2011-08-18", "2011-08-18T19:03:37", ""]
        {
            assert_eq!(parse_timestamp(bad), None, "{bad}");
        }
        assert!(parse_date("2021-02-29").is_none() && parse_date("2020-02-29").is_some());
        assert!(from_seconds(MIN_SECONDS - 1).is_none());
    }
}
