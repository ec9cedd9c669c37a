//! Numeric constants: every type the literal fits, decided at parse time.

use super::ast::Number;
use super::lex::ItemKind;
use crate::value::Value;
use transom_go::fmt::sprintf;
use transom_go::strconv::unquote_char;
use transom_go::strconv::{parse_float, parse_int, parse_uint};

pub(super) fn parse(text: &str, kind: ItemKind) -> Result<Number, String> {
    match kind {
        ItemKind::CharConstant => character(text),
        ItemKind::Complex => complex(text),
        _ => plain(text),
    }
}

fn character(text: &str) -> Result<Number, String> {
    let bytes = text.as_bytes();
    let (unit, tail) = unquote_char(&bytes[1..], b'\'').ok_or("invalid syntax")?;
    if tail != b"'" {
        return Err(format!("malformed character constant: {text}"));
    }
    let code = unit.code();
    Ok(Number {
        text: text.into(),
        int: Some(i64::from(code)),
        uint: Some(u64::from(code)),
        float: Some(f64::from(code)),
        complex: None,
    })
}

fn complex(text: &str) -> Result<Number, String> {
    // The sign that joins the parts is the last one that does not belong to an exponent.
    let split = text
        .char_indices()
        .skip(1)
        .filter(|(at, rune)| matches!(rune, '+' | '-') && !text[..*at].ends_with(['e', 'E', 'p', 'P']))
        .map(|(at, _)| at)
        .last()
        .ok_or("syntax error scanning complex number")?;
    let part = |text: &str| parse_float(text).map_err(|_| "syntax error scanning complex number".to_owned());
    let (re, im) = (part(&text[..split])?, part(&text[split..text.len() - 1])?);
    Ok(simplified(text, re, im))
}

fn simplified(text: &str, re: f64, im: f64) -> Number {
    let real = im == 0.0;
    Number {
        text: text.into(),
        int: as_int(re).filter(|_| real),
        uint: as_uint(re).filter(|_| real),
        float: Some(re).filter(|_| real),
        complex: Some((re, im)),
    }
}

fn as_int(value: f64) -> Option<i64> {
    let int = value as i64;
    (int as f64 == value && value < 9_223_372_036_854_775_808.0).then_some(int)
}

fn as_uint(value: f64) -> Option<u64> {
    let uint = value as u64;
    (uint as f64 == value && value < 18_446_744_073_709_551_616.0).then_some(uint)
}

fn plain(text: &str) -> Result<Number, String> {
    if let Some(imaginary) = text.strip_suffix('i')
        && let Ok(im) = parse_float(imaginary)
    {
        return Ok(simplified(text, 0.0, im));
    }
    let int = parse_int(text, 0).ok();
    let mut uint = parse_uint(text, 0).ok();
    if int == Some(0) {
        uint = Some(0);
    }
    let mut number = Number { text: text.into(), int, uint, float: None, complex: None };
    if let Some(int) = number.int {
        number.float = Some(int as f64);
    } else if let Some(uint) = number.uint {
        number.float = Some(uint as f64);
    } else if let Ok(float) = parse_float(text) {
        if !text.contains(['.', 'e', 'E', 'p', 'P']) {
            return Err(sprintf("integer overflow: %q", &[Value::str(text)]));
        }
        number.float = Some(float);
        number.int = as_int(float);
        number.uint = as_uint(float);
    }
    if number.float.is_none() {
        return Err(sprintf("illegal number syntax: %q", &[Value::str(text)]));
    }
    Ok(number)
}
