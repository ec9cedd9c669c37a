//! What a plain scalar means to yaml.v3: YAML 1.2 with some of 1.1's numbers and timestamps.

use std::rc::Rc;
use std::sync::LazyLock;

use regex::Regex;

use crate::strconv::number::{parse_float, parse_int, parse_uint};
use crate::time;
use crate::value::{UintKind, Value};

static FLOAT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$").ok());

pub enum Resolved {
    Null,
    Merge,
    Value(Value),
    /// An ordinary string.
    Text,
}

pub fn resolve(text: &str) -> Resolved {
    let Some(first) = text.bytes().next() else { return Resolved::Null };
    match text {
        "true" | "True" | "TRUE" => return Resolved::Value(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Resolved::Value(Value::Bool(false)),
        "~" | "null" | "Null" | "NULL" => return Resolved::Null,
        ".nan" | ".NaN" | ".NAN" => return Resolved::Value(Value::Float(f64::NAN)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Resolved::Value(Value::Float(f64::INFINITY));
        }
        "-.inf" | "-.Inf" | "-.INF" => return Resolved::Value(Value::Float(f64::NEG_INFINITY)),
        "<<" => return Resolved::Merge,
        _ => {}
    }
    let number = match first {
        b'.' => parse_float(text).ok().map(Value::Float),
        b'+' | b'-' | b'0'..=b'9' => timestamp(text).or_else(|| number(text)),
        _ => None,
    };
    number.map_or(Resolved::Text, Resolved::Value)
}

fn number(text: &str) -> Option<Value> {
    let plain: String = text.chars().filter(|rune| *rune != '_').collect();
    if let Ok(value) = parse_int(&plain, 0) {
        return Some(Value::int(value));
    }
    if let Ok(value) = parse_uint(&plain, 0) {
        return Some(Value::Uint(UintKind::Uint64, value));
    }
    if FLOAT.as_ref().is_some_and(|pattern| pattern.is_match(&plain)) {
        return parse_float(&plain).ok().map(Value::Float);
    }
    None
}

fn timestamp(text: &str) -> Option<Value> {
    const LAYOUTS: [&str; 4] = [
        "2006-1-2T15:4:5.999999999Z07:00",
        "2006-1-2t15:4:5.999999999Z07:00",
        "2006-1-2 15:4:5.999999999",
        "2006-1-2",
    ];
    let year = text.bytes().take_while(u8::is_ascii_digit).count();
    if year != 4 || text.as_bytes().get(4) != Some(&b'-') {
        return None;
    }
    let parsed = LAYOUTS.iter().find_map(|layout| time::parse(layout.as_bytes(), text.as_bytes()).ok());
    parsed.map(|time| Value::Time(Rc::new(time)))
}

/// YAML 1.1 booleans and base-60 numbers, which other readers would misread if left plain.
pub fn is_old_form(text: &str) -> bool {
    let old_bool = matches!(
        text,
        "y" | "Y"
            | "yes"
            | "Yes"
            | "YES"
            | "on"
            | "On"
            | "ON"
            | "n"
            | "N"
            | "no"
            | "No"
            | "NO"
            | "off"
            | "Off"
            | "OFF"
    );
    old_bool || is_base60(text)
}

fn is_base60(text: &str) -> bool {
    static PATTERN: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$").ok());
    text.contains(':') && PATTERN.as_ref().is_some_and(|pattern| pattern.is_match(text))
}
