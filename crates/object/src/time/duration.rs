//! Go's `time.Duration`, in nanoseconds, and how ages are shown.

use super::quote;

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads `1h30m`, `-1.5s`, `0`; the error is worded as Go words it.
pub fn parse_duration(text: &str) -> Result<i64, String> {
    let quoted = || quote(text.as_bytes());
    let invalid = || format!("time: invalid duration {}", quoted());
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0_u64;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", quoted()));
        }
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(|| {
            format!("time: unknown unit {} in duration {}", quote(unit.as_bytes()), quoted())
        })?;
        total = amount(whole, fraction, *scale)
            .and_then(|n| total.checked_add(n))
            .filter(|n| *n <= 1 << 63)
            .ok_or_else(invalid)?;
        rest = after;
    }
    match (i64::try_from(total), negative) {
        (Ok(n), false) => Ok(n),
        (Ok(n), true) => Ok(-n),
        // One more nanosecond fits below zero than above.
        (Err(_), true) => Ok(i64::MIN),
        (Err(_), false) => Err(invalid()),
    }
}

fn digits(s: &str) -> (&str, &str) {
    s.split_at(s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len()))
}

fn amount(whole: &str, fraction: &str, scale: u64) -> Option<u64> {
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Digits beyond a nanosecond are dropped; 18 are enough for any unit.
    let kept = &fraction[..fraction.len().min(18)];
    let part: u128 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
    let power = 10_u128.pow(u32::try_from(kept.len()).ok()?);
    let part = u64::try_from(part * u128::from(scale) / power).ok()?;
    whole.checked_mul(scale)?.checked_add(part)
}

/// `1h0m0.003s`, as Go prints a duration.
pub fn format_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let n = nanos.unsigned_abs();
    match n {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{n}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", decimal(n, 3)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", decimal(n, 6)),
        _ => {
            let (minutes, below) = (n / 60_000_000_000, n % 60_000_000_000);
            let seconds = decimal(below, 9);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, m) => format!("{sign}{m}m{seconds}s"),
                (h, m) => format!("{sign}{h}h{m}m{seconds}s"),
            }
        }
    }
}

/// `n ÷ 10^places` without trailing zeros.
fn decimal(n: u64, places: u32) -> String {
    let (whole, part) = (n / 10_u64.pow(places), n % 10_u64.pow(places));
    if part == 0 {
        return whole.to_string();
    }
    let digits = format!("{part:0>width$}", width = places as usize);
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

/// At most two units, fewer the older: `119s`, `2m30s`, `7h5m`, `2d1h`, `2y10d`.
pub fn human_duration(seconds: i64) -> String {
    let two = |big: i64, unit: char, small: i64, small_unit: char| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{small_unit}") }
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        i64::MIN..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, 'd', hours % 24, 'h'),
        _ if days < 365 * 2 => format!("{days}d"),
        _ if days < 365 * 8 => two(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
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
            assert_eq!(parse_duration(text).map(format_duration).as_deref(), Ok(shown), "{text}");
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
            assert_eq!(parse_duration(text).unwrap_err(), error);
        }
    }

    #[test]
    fn ages_lose_detail_as_they_grow() {
        for (seconds, shown) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (600, "10m"),
            (179 * 60 + 59, "179m"),
            (3 * 3600, "3h"),
            (7 * 3600 + 300, "7h5m"),
            (8 * 3600 + 300, "8h"),
            (48 * 3600, "2d"),
            (49 * 3600, "2d1h"),
            (8 * 86_400, "8d"),
            (729 * 86_400, "729d"),
            (730 * 86_400, "2y"),
            (740 * 86_400, "2y10d"),
            (8 * 365 * 86_400, "8y"),
        ] {
            assert_eq!(human_duration(seconds), shown);
        }
    }

    proptest::proptest! {
        #[test]
        fn formatted_durations_read_back(nanos: i64) {
            proptest::prop_assert_eq!(parse_duration(&format_duration(nanos)), Ok(nanos));
        }

        #[test]
        fn hostile_durations_do_not_panic(s in "[0-9.hmsnuµ+-]{0,40}") {
            let _ = parse_duration(&s);
        }
    }
}
