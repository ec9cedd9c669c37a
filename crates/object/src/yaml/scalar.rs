//! What a plain scalar means: go-yaml v2's resolution of null, booleans and numbers.

use crate::json::canonical_number;
use serde_json::{Number, Value};

/// The meaning of a scalar.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// Beyond `i64`: a number to JSON, but no possible key.
    Uint(u64),
    /// Possibly infinite or not a number, which JSON cannot say.
    Float(f64),
    Text,
}

impl Scalar {
    /// The short tag, as error messages name it.
    pub(super) fn tag(&self) -> &'static str {
        match self {
            Self::Null => "!!null",
            Self::Bool(_) => "!!bool",
            Self::Int(_) | Self::Uint(_) => "!!int",
            Self::Float(_) => "!!float",
            Self::Text => "!!str",
        }
    }

    /// The JSON value, given the text it was resolved from.
    pub(super) fn into_value(self, text: &str) -> Result<Value, String> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(b) => Value::Bool(b),
            Self::Int(i) => Value::from(i),
            #[expect(clippy::cast_precision_loss, reason = "what the decoder of JSON does to such integers")]
            Self::Uint(u) => canonical_number(u as f64).map_or(Value::Null, Value::Number),
            // Upstream passes through JSON text, where minus zero is `-0`, an integer.
            Self::Float(0.0) => Value::from(0),
            Self::Float(f) => match canonical_number(f) {
                Some(number) => Value::Number(number),
                None => return Err(format!("unsupported value: {}", format_float(f))),
            },
            Self::Text => Value::String(text.to_owned()),
        })
    }

    /// The key a mapping gets in JSON, where keys are strings.
    pub(super) fn into_key(self, text: &str) -> Result<String, String> {
        Ok(match self {
            Self::Null => return Err("unsupported map key of type: null".to_owned()),
            Self::Uint(_) => return Err(format!("unsupported map key of type: uint64, key: {text}")),
            Self::Bool(b) => b.to_string(),
            Self::Int(i) => i.to_string(),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "upstream prints keys with the precision of a float32"
            )]
            Self::Float(f) => format_single(f as f32),
            Self::Text => text.to_owned(),
        })
    }
}

/// Resolves a plain scalar without tag.
pub(super) fn resolve(text: &str) -> Scalar {
    match text.as_bytes().first() {
        None => Scalar::Null,
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => word(text),
        Some(b'.') => match text {
            ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
            ".inf" | ".Inf" | ".INF" => Scalar::Float(f64::INFINITY),
            _ => float(text).map_or(Scalar::Text, Scalar::Float),
        },
        Some(b'+' | b'-' | b'0'..=b'9') => match text {
            "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
            "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
            _ => number(text),
        },
        Some(_) => Scalar::Text,
    }
}

fn word(text: &str) -> Scalar {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        _ => Scalar::Text,
    }
}

/// Integers in Go's base-0 notation with underscores anywhere, else decimal floats.
fn number(text: &str) -> Scalar {
    let plain: std::borrow::Cow<'_, str> =
        if text.contains('_') { text.replace('_', "").into() } else { text.into() };
    integer(&plain).or_else(|| float(&plain).map(Scalar::Float)).unwrap_or(Scalar::Text)
}

fn integer(plain: &str) -> Option<Scalar> {
    let (negative, signed, digits) = match plain.as_bytes().first()? {
        b'-' => (true, true, &plain[1..]),
        b'+' => (false, true, &plain[1..]),
        _ => (false, false, plain),
    };
    let prefix = digits.get(..2).map(str::to_ascii_lowercase);
    let (radix, digits) = match prefix.as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some(_) if digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    let value = if negative { -i128::from(magnitude) } else { i128::from(magnitude) };
    match i64::try_from(value) {
        Ok(small) => Some(Scalar::Int(small)),
        // Upstream's unsigned parser takes no sign.
        Err(_) if !signed => Some(Scalar::Uint(magnitude)),
        Err(_) => None,
    }
}

/// A decimal float; what overflows is no float but a string, as upstream has it.
fn float(plain: &str) -> Option<f64> {
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(plain);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let mantissa_ok = match mantissa.split_once('.') {
        Some((whole, fraction)) => all_digits(whole) && all_digits(fraction) && mantissa.len() > 1,
        None => !mantissa.is_empty() && all_digits(mantissa),
    };
    let exponent_ok = exponent.is_none_or(|e| {
        let digits = e.strip_prefix(['+', '-']).unwrap_or(e);
        !digits.is_empty() && all_digits(digits)
    });
    if !mantissa_ok || !exponent_ok {
        return None;
    }
    plain.parse::<f64>().ok().filter(|f| f.is_finite())
}

/// A number as it is written: integers as they are, floats in Go's shortest `%g`.
pub(super) fn format_number(number: &Number) -> String {
    if let Some(float) = number.as_f64().filter(|_| number.is_f64()) {
        let json = crate::json::format_float(float);
        // Upstream re-reads the JSON text, where an integral float up to 2^64 looks like an integer.
        match resolve(&json) {
            Scalar::Int(_) | Scalar::Uint(_) => json,
            _ => format_float(float),
        }
    } else {
        number.to_string()
    }
}

/// Go's `strconv.FormatFloat(f, 'g', -1, 64)` with YAML's names for what is not finite.
fn format_float(float: f64) -> String {
    shortest(float.is_nan(), float.is_infinite(), float.is_sign_negative(), &format!("{float:e}"))
}

/// The same with the precision of a `float32`.
fn format_single(float: f32) -> String {
    shortest(float.is_nan(), float.is_infinite(), float.is_sign_negative(), &format!("{float:e}"))
}

/// Lays out digits given in scientific notation (`1.5e-7`): an exponent from -4 to 5 is written out.
fn shortest(nan: bool, infinite: bool, negative: bool, scientific: &str) -> String {
    if nan {
        return ".nan".to_owned();
    }
    if infinite {
        return if negative { "-.inf" } else { ".inf" }.to_owned();
    }
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific.to_owned() };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let sign = if negative { "-" } else { "" };
    if !(-4..6).contains(&exponent) {
        let direction = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{direction}{:02}", exponent.unsigned_abs());
    }
    let places = usize::try_from(exponent.unsigned_abs()).unwrap_or_default();
    if exponent < 0 {
        format!("{sign}0.{}{digits}", "0".repeat(places - 1))
    } else if digits.len() <= places + 1 {
        format!("{sign}{digits}{}", "0".repeat(places + 1 - digits.len()))
    } else {
        format!("{sign}{}.{}", &digits[..=places], &digits[places + 1..])
    }
}

/// Whether a plain scalar would be read back as this very string by every YAML 1.1 reader.
pub(super) fn reads_as_text(text: &str) -> bool {
    resolve(text) == Scalar::Text && !is_sexagesimal(text) && !is_timestamp(text)
}

/// Numbers of base 60 such as `1:30`, which others read although Go does not.
fn is_sexagesimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = unsigned.split(':');
    let first = parts.next().unwrap_or_default();
    let starts = first.starts_with(|c: char| c.is_ascii_digit()) && digits_or_underscores(first);
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else { return false };
    let (last, fraction) = last.split_once('.').unwrap_or((last, ""));
    let minute = |p: &str| match p.as_bytes() {
        [d] => d.is_ascii_digit(),
        [t, d] => (b'0'..=b'5').contains(t) && d.is_ascii_digit(),
        _ => false,
    };
    starts && middle.iter().all(|p| minute(p)) && minute(last) && digits_or_underscores(fraction)
}

fn digits_or_underscores(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || b == b'_')
}

/// Dates and times in the notations that upstream recognises.
pub(super) fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 8 || !bytes[..4].iter().all(u8::is_ascii_digit) || bytes[4] != b'-' {
        return false;
    }
    let year: u32 = text[..4].parse().unwrap_or_default();
    let mut rest = &text[5..];
    let Some(month) = take_number(&mut rest) else { return false };
    let Some(after) = rest.strip_prefix('-') else { return false };
    rest = after;
    let Some(day) = take_number(&mut rest) else { return false };
    if !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return false;
    }
    if rest.is_empty() {
        return true;
    }
    let zoned = rest.starts_with(['T', 't']);
    if !zoned && !rest.starts_with(' ') {
        return false;
    }
    rest = &rest[1..];
    let Some(rest) = after_clock(rest) else { return false };
    if zoned { is_zone(rest) } else { rest.is_empty() }
}

/// Hours, minutes and seconds with a fraction; what follows them.
fn after_clock(mut rest: &str) -> Option<&str> {
    for (limit, separator) in [(24, ":"), (60, ":"), (60, "")] {
        if take_number(&mut rest)? >= limit {
            return None;
        }
        rest = rest.strip_prefix(separator)?;
    }
    if let Some(fraction) = rest.strip_prefix(['.', ','])
        && fraction.starts_with(|c: char| c.is_ascii_digit())
    {
        rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    Some(rest)
}

fn is_zone(zone: &str) -> bool {
    let Some(offset) = zone.strip_prefix(['+', '-']) else { return zone == "Z" };
    let Some((hours, minutes)) = offset.split_once(':') else { return false };
    let two = |text: &str, limit: u32| {
        text.len() == 2
            && text.bytes().all(|b| b.is_ascii_digit())
            && text.parse::<u32>().is_ok_and(|n| n <= limit)
    };
    two(hours, 24) && two(minutes, 60)
}

/// One or two digits.
fn take_number(text: &mut &str) -> Option<u32> {
    let digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    *text = rest;
    number.parse().ok()
}

fn days_in(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
