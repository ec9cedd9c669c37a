//! Durations: nanoseconds in an `int64`, written and read in Go's `1h2m3.5s` form.

pub const SECOND: i64 = 1_000_000_000;
const MICROSECOND: i64 = 1000;
const MILLISECOND: i64 = 1_000_000;

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

/// `time.ParseDuration`.
pub fn parse(text: &str) -> Result<i64, String> {
    let shown = String::from_utf8_lossy(&crate::strconv::quote::quote(text.as_bytes(), false)).into_owned();
    let invalid = || format!("time: invalid duration {shown}");
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (value, after) = element(rest, &invalid, &shown)?;
        total = total.checked_add(value).filter(|total| *total <= 1 << 63).ok_or_else(invalid)?;
        rest = after;
    }
    if negative {
        return 0i64.checked_sub_unsigned(total).ok_or_else(invalid);
    }
    i64::try_from(total).map_err(|_| invalid())
}

/// One `12.5m` and what follows it.
fn element<'a>(text: &'a str, invalid: &dyn Fn() -> String, shown: &str) -> Result<(u64, &'a str), String> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole_len = digits(text);
    let whole = &text[..whole_len];
    let mut rest = &text[whole_len..];
    let mut decimals = "";
    if let Some(after) = rest.strip_prefix('.') {
        let length = digits(after);
        decimals = &after[..length];
        rest = &after[length..];
    }
    if whole.is_empty() && decimals.is_empty() {
        return Err(invalid());
    }
    let unit_len = rest.find(|rune: char| rune == '.' || rune.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_len);
    let scale: u64 = match unit {
        "" => return Err(format!("time: missing unit in duration {shown}")),
        "ns" => 1,
        "us" | "µs" | "μs" => 1000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => {
            let unit = crate::strconv::quote::quote(unit.as_bytes(), false);
            return Err(format!("time: unknown unit {} in duration {shown}", String::from_utf8_lossy(&unit)));
        }
    };
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
    let mut value = whole.checked_mul(scale).filter(|value| *value <= 1 << 63).ok_or_else(invalid)?;
    if !decimals.is_empty() {
        let kept = &decimals[..decimals.len().min(18)];
        let numerator: u64 = kept.parse().unwrap_or(0);
        let part = numerator as f64 * (scale as f64 / 10f64.powi(i32::try_from(kept.len()).unwrap_or(0)));
        value = value.checked_add(part as u64).ok_or_else(invalid)?;
    }
    Ok((value, rest))
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
