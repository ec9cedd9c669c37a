//! Durations: nanoseconds in an `int64`, written and read in Go's `1h2m3.5s` form.

use super::{ParseError, quote};

/// Nanoseconds in a second.
pub const SECOND: i64 = 1_000_000_000;
const MICROSECOND: i64 = 1000;
const MILLISECOND: i64 = 1_000_000;

/// `Duration.String`.
pub fn format(nanos: i64) -> String {
    if nanos == 0 {
        return "0s".to_owned();
    }
    let sign = if nanos < 0 { "-" } else { "" };
    let magnitude = nanos.unsigned_abs();
    let unit = |unit: i64, name: &str| {
        let unit = unit.unsigned_abs();
        let digits = unit.ilog10() as usize;
        format!("{sign}{}{}{name}", magnitude / unit, fraction(magnitude % unit, digits))
    };
    if magnitude < SECOND.unsigned_abs() {
        return match magnitude {
            0..1000 => format!("{sign}{magnitude}ns"),
            1000..1_000_000 => unit(MICROSECOND, "µs"),
            _ => unit(MILLISECOND, "ms"),
        };
    }
    let whole = magnitude / SECOND.unsigned_abs();
    let seconds = format!("{}{}s", whole % 60, fraction(magnitude % SECOND.unsigned_abs(), 9));
    let (hours, minutes) = (whole / 3600, whole / 60 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}"),
        (0, _) => format!("{sign}{minutes}m{seconds}"),
        _ => format!("{sign}{hours}h{minutes}m{seconds}"),
    }
}

fn fraction(rest: u64, digits: usize) -> String {
    if rest == 0 {
        return String::new();
    }
    format!(".{}", format!("{rest:0digits$}").trim_end_matches('0'))
}

/// `time.ParseDuration`. The error is worded as Go's.
pub fn parse(text: &str) -> Result<i64, ParseError> {
    let invalid = || ParseError(format!("time: invalid duration {}", quote(text.as_bytes())));
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, unit, after) = element(rest).ok_or_else(invalid)?;
        let scale = match unit {
            "" => {
                let text = quote(text.as_bytes());
                return Err(ParseError(format!("time: missing unit in duration {text}")));
            }
            unit => nanoseconds(unit).ok_or_else(|| {
                let (unit, text) = (quote(unit.as_bytes()), quote(text.as_bytes()));
                ParseError(format!("time: unknown unit {unit} in duration {text}"))
            })?,
        };
        let amount = number.times(scale).and_then(|amount| total.checked_add(amount));
        total = amount.filter(|total| *total <= 1 << 63).ok_or_else(invalid)?;
        rest = after;
    }
    // One more nanosecond fits below zero than above.
    let signed = if negative { 0i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() };
    signed.ok_or_else(invalid)
}

/// A decimal number: its part before the point, and the digits after it.
struct Number<'a> {
    whole: u64,
    fraction: &'a str,
}

impl Number<'_> {
    /// The number times a unit, in nanoseconds. The part below one goes through a double, as in Go, whose rounding shows.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the product is positive and less than the unit"
    )]
    fn times(&self, unit: u64) -> Option<u64> {
        let (mut part, mut scale) = (0_u64, 1.0_f64);
        for digit in self.fraction.bytes() {
            // Digits beyond what an integer holds are dropped.
            let more = part.checked_mul(10).map(|part| part + u64::from(digit - b'0'));
            let Some(more) = more.filter(|more| *more <= 1 << 63) else { break };
            (part, scale) = (more, scale * 10.0);
        }
        let whole = self.whole.checked_mul(unit).filter(|whole| *whole <= 1 << 63)?;
        whole.checked_add((part as f64 * (unit as f64 / scale)) as u64).filter(|amount| *amount <= 1 << 63)
    }
}

/// The number and unit that a text begins with, and what follows.
fn element(text: &str) -> Option<(Number<'_>, &str, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (before, mut rest) = text.split_at(digits(text));
    let whole =
        if before.is_empty() { 0 } else { before.parse::<u64>().ok().filter(|whole| *whole <= 1 << 63)? };
    let mut fraction = "";
    if let Some(after) = rest.strip_prefix('.') {
        (fraction, rest) = after.split_at(digits(after));
    }
    if before.is_empty() && fraction.is_empty() {
        return None;
    }
    let unit = rest.find(|rune: char| rune == '.' || rune.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit);
    Some((Number { whole, fraction }, unit, rest))
}

fn nanoseconds(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// `Duration.Round`: to the nearest multiple, halves away from zero.
pub fn round(nanos: i64, unit: i64) -> i64 {
    if unit <= 0 {
        return nanos;
    }
    let rest = nanos % unit;
    let toward_zero = nanos - rest;
    if rest.unsigned_abs() * 2 < unit.unsigned_abs() {
        return toward_zero;
    }
    let step = if nanos < 0 { -unit } else { unit };
    toward_zero.checked_add(step).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_reads() {
        for (text, shown) in [
            ("0", "0s"),
            ("1h", "1h0m0s"),
            ("-1.5h", "-1h30m0s"),
            ("+5s", "5s"),
            ("1us", "1µs"),
            ("1μs", "1µs"),
            ("1500us", "1.5ms"),
            ("0.0000000001s", "0s"),
            (".5s", "500ms"),
            ("1m.5s", "1m0.5s"),
            ("9223372036854775807ns", "2562047h47m16.854775807s"),
            ("-9223372036854775808ns", "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(parse(text).map(format).as_deref(), Ok(shown), "{text}");
        }
    }

    #[test]
    fn says_what_go_says() {
        for (text, error) in [
            ("", r#"time: invalid duration """#),
            ("-", r#"time: invalid duration "-""#),
            ("3000000h", r#"time: invalid duration "3000000h""#),
            ("9223372036854775808ns", r#"time: invalid duration "9223372036854775808ns""#),
            ("99999999999999999999ns", r#"time: invalid duration "99999999999999999999ns""#),
            ("1", r#"time: missing unit in duration "1""#),
            ("1.5.5s", r#"time: missing unit in duration "1.5.5s""#),
            ("..s", r#"time: invalid duration "..s""#),
            ("1h x", r#"time: unknown unit "h x" in duration "1h x""#),
            (" 1s", r#"time: invalid duration " 1s""#),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn fractions_are_doubles() {
        for (text, nanos) in [
            ("1.123456789123456789123456789s", Ok(1_123_456_789)),
            ("0.9223372036854775807h", Ok(3_320_413_933_267)),
            ("1h2m3s4ms5us6ns", Ok(3_723_004_005_006)),
            ("1nns", Err(r#"time: unknown unit "nns" in duration "1nns""#.to_owned())),
            ("1é", Err(r#"time: unknown unit "\xc3\xa9" in duration "1\xc3\xa9""#.to_owned())),
        ] {
            assert_eq!(parse(text).map_err(|e| e.to_string()), nanos, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn formatted_durations_read_back(nanos: i64) {
            proptest::prop_assert_eq!(parse(&format(nanos)), Ok(nanos));
        }

        #[test]
        fn hostile_durations_do_not_panic(s in "[0-9.hmsnuµ+-]{0,40}") {
            let _ = parse(&s);
        }
    }
}
