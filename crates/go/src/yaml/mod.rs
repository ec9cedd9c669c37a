//! Scalars of gopkg.in/yaml: what a plain scalar means, and how a string must be written to be read back.
//!
//! Versions 2 (which Kubernetes uses) and 3 differ in the words that are booleans: those of YAML 1.1, or `true` and
//! `false` alone. Numbers and timestamps are YAML 1.1's in both.

mod style;

use crate::strconv::{parse_float, parse_int, parse_uint, shortest_float, shortest_float32};
use crate::time::{self, Time};
pub use style::{Findings, analyze, double_quoted, escape, is_break, is_printable, single_quoted};

/// Whose rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// gopkg.in/yaml.v2: `yes`, `on`, `y` and the like are booleans.
    V2,
    /// gopkg.in/yaml.v3: they are strings.
    V3,
}

/// What a plain scalar means.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// `~`, `null`, or nothing.
    Null,
    /// `<<`.
    Merge,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer beyond `i64`.
    Uint(u64),
    /// A float, possibly infinite or not a number.
    Float(f64),
    /// A date, with or without a time.
    Time(Time),
    /// None of the others: a string.
    Text,
}

/// What a plain scalar without a tag means.
pub fn resolve(text: &str, version: Version) -> Scalar {
    let Some(first) = text.bytes().next() else { return Scalar::Null };
    if let Some(meaning) = word(text) {
        return meaning;
    }
    if version == Version::V2
        && let Some(truth) = old_boolean(text)
    {
        return Scalar::Bool(truth);
    }
    let meaning = match first {
        b'.' => parse_float(text).ok().map(Scalar::Float),
        b'+' | b'-' | b'0'..=b'9' => timestamp(text).map(Scalar::Time).or_else(|| number(text)),
        _ => None,
    };
    meaning.unwrap_or(Scalar::Text)
}

fn word(text: &str) -> Option<Scalar> {
    Some(match text {
        "true" | "True" | "TRUE" => Scalar::Bool(true),
        "false" | "False" | "FALSE" => Scalar::Bool(false),
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        "<<" => Scalar::Merge,
        _ => return None,
    })
}

/// The booleans that YAML 1.1 has and 1.2 has not.
fn old_boolean(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// Integers in Go's base-0 notation with underscores anywhere, else decimal floats.
fn number(text: &str) -> Option<Scalar> {
    let plain = text.replace('_', "");
    if let Ok(value) = parse_int(&plain, 0) {
        return Some(Scalar::Int(value));
    }
    if let Ok(value) = parse_uint(&plain, 0) {
        return Some(Scalar::Uint(value));
    }
    // A float that overflows is a string.
    if is_decimal(&plain) { parse_float(&plain).ok().map(Scalar::Float) } else { None }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_decimal(text: &str) -> bool {
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let mantissa = match mantissa.split_once('.') {
        Some((whole, fraction)) => all_digits(whole) && all_digits(fraction) && mantissa.len() > 1,
        None => !mantissa.is_empty() && all_digits(mantissa),
    };
    let exponent = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    mantissa && exponent
}

fn timestamp(text: &str) -> Option<Time> {
    const LAYOUTS: [&str; 4] = [
        "2006-1-2T15:4:5.999999999Z07:00",
        "2006-1-2t15:4:5.999999999Z07:00",
        "2006-1-2 15:4:5.999999999",
        "2006-1-2",
    ];
    // Most numbers are distinguished from dates without trying the layouts.
    let year = text.bytes().take_while(u8::is_ascii_digit).count();
    if year != 4 || text.as_bytes().get(4) != Some(&b'-') {
        return None;
    }
    LAYOUTS.iter().find_map(|layout| time::parse(layout.as_bytes(), text.as_bytes()).ok())
}

/// Whether a string, written plain, is read back as this very string by every reader of YAML 1.1 and 1.2.
pub fn reads_as_text(text: &str) -> bool {
    resolve(text, Version::V2) == Scalar::Text && !is_base60(text)
}

/// Numbers of base 60 such as `1:30`, which other readers know although Go does not.
fn is_base60(text: &str) -> bool {
    let digits_or_underscores = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = unsigned.split(':');
    let first = parts.next().unwrap_or_default();
    let starts = first.starts_with(|rune: char| rune.is_ascii_digit()) && digits_or_underscores(first);
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else { return false };
    let (last, fraction) = last.split_once('.').unwrap_or((last, ""));
    let minute = |part: &str| match part.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [tens, digit] => (b'0'..=b'5').contains(tens) && digit.is_ascii_digit(),
        _ => false,
    };
    starts && middle.iter().all(|part| minute(part)) && minute(last) && digits_or_underscores(fraction)
}

/// A float as it is written: Go's shortest `%g`, with YAML's names for what is not finite.
pub fn format_float(float: f64) -> String {
    named(shortest_float(float))
}

/// The same with the precision of a `float32`.
pub fn format_float32(float: f32) -> String {
    named(shortest_float32(float))
}

fn named(text: String) -> String {
    match text.as_str() {
        "+Inf" => ".inf".to_owned(),
        "-Inf" => "-.inf".to_owned(),
        "NaN" => ".nan".to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars() {
        for (text, meaning) in [
            ("", Scalar::Null),
            ("~", Scalar::Null),
            ("<<", Scalar::Merge),
            ("True", Scalar::Bool(true)),
            ("0x1F", Scalar::Int(31)),
            ("-0b11", Scalar::Int(-3)),
            ("0o17", Scalar::Int(15)),
            ("017", Scalar::Int(15)),
            ("1_000", Scalar::Int(1000)),
            ("08", Scalar::Float(8.0)),
            ("18446744073709551615", Scalar::Uint(u64::MAX)),
            ("+18446744073709551615", Scalar::Float(18_446_744_073_709_551_615.0)),
            (".5", Scalar::Float(0.5)),
            ("1e3", Scalar::Float(1000.0)),
            ("1e999", Scalar::Text),
            ("-.inf", Scalar::Float(f64::NEG_INFINITY)),
            ("1:30", Scalar::Text),
            (".", Scalar::Text),
            ("-", Scalar::Text),
            ("2024-02-30", Scalar::Text),
        ] {
            assert_eq!(resolve(text, Version::V2), meaning, "{text}");
            assert_eq!(resolve(text, Version::V3), meaning, "{text}");
        }
        for text in ["2024-02-29", "2024-2-9T1:2:3Z", "2024-02-09t01:02:03.5+01:00", "2024-02-09 1:2:3.25"] {
            assert!(matches!(resolve(text, Version::V2), Scalar::Time(_)), "{text}");
        }
        assert_eq!(resolve("on", Version::V2), Scalar::Bool(true));
        assert_eq!(resolve("No", Version::V2), Scalar::Bool(false));
        assert_eq!(resolve("on", Version::V3), Scalar::Text);
    }

    #[test]
    fn strings_that_must_be_quoted() {
        for text in ["y", "OFF", "1:30", "-190:20:30.15", "2024-02-29", "1_0", "~", ".inf", "<<"] {
            assert!(!reads_as_text(text), "{text}");
        }
        for text in ["1:60:99x", "yess", "a:b", "1:99", "12:", "2024-02-30"] {
            assert!(reads_as_text(text), "{text}");
        }
    }

    #[test]
    fn floats() {
        for (float, text) in
            [(0.1, "0.1"), (1e6, "1e+06"), (-1.5e-7, "-1.5e-07"), (100_000.0, "100000"), (0.0001, "0.0001")]
        {
            assert_eq!(format_float(float), text);
        }
        assert_eq!(format_float32(0.1), "0.1");
        assert_eq!(format_float32(16_777_216.0), "1.6777216e+07");
        assert_eq!((format_float(f64::INFINITY).as_str(), format_float(f64::NAN).as_str()), (".inf", ".nan"));
    }
}
