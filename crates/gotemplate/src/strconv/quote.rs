//! Go string literals: writing them (`%q`) and reading them.

use super::unicode::is_print;
use crate::value::text::{decode_rune, runes};

/// `strconv.Quote`; with `ascii`, `strconv.QuoteToASCII`.
pub fn quote(text: &[u8], ascii: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'"');
    for (at, rune, width) in runes(text) {
        if width == 1 && rune == '\u{FFFD}' {
            out.extend_from_slice(format!("\\x{:02x}", text[at]).as_bytes());
        } else {
            push_escaped(&mut out, rune, '"', ascii);
        }
    }
    out.push(b'"');
    out
}

/// `strconv.QuoteRune` for a code that may not be a valid rune.
pub fn quote_rune(code: u64, ascii: bool) -> Vec<u8> {
    let rune = u32::try_from(code).ok().and_then(char::from_u32).unwrap_or('\u{FFFD}');
    let mut out = vec![b'\''];
    push_escaped(&mut out, rune, '\'', ascii);
    out.push(b'\'');
    out
}

fn push_escaped(out: &mut Vec<u8>, rune: char, delimiter: char, ascii: bool) {
    if rune == delimiter || rune == '\\' {
        out.push(b'\\');
        push_rune(out, rune);
        return;
    }
    if if ascii { rune.is_ascii() && is_print(rune) } else { is_print(rune) } {
        push_rune(out, rune);
        return;
    }
    let escape = match rune {
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\u{C}' => "\\f".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\u{B}' => "\\v".to_owned(),
        _ if u32::from(rune) < 0x20 || rune == '\u{7F}' => format!("\\x{:02x}", u32::from(rune)),
        _ if u32::from(rune) < 0x10000 => format!("\\u{:04x}", u32::from(rune)),
        _ => format!("\\U{:08x}", u32::from(rune)),
    };
    out.extend_from_slice(escape.as_bytes());
}

pub fn push_rune(out: &mut Vec<u8>, rune: char) {
    out.extend_from_slice(rune.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Whether the text can be written between backquotes, for `%#q`.
pub fn can_backquote(text: &[u8]) -> bool {
    runes(text).all(|(_, rune, width)| {
        if width > 1 {
            rune != '\u{FEFF}'
        } else {
            rune != '\u{FFFD}' && (rune >= ' ' || rune == '\t') && rune != '`' && rune != '\u{7F}'
        }
    })
}

/// `strconv.Unquote` of a double-quoted or backquoted literal.
pub fn unquote(literal: &str) -> Option<Vec<u8>> {
    let bytes = literal.as_bytes();
    if bytes.len() < 2 || bytes.first() != bytes.last() {
        return None;
    }
    let inner = &bytes[1..bytes.len() - 1];
    match bytes[0] {
        b'`' if inner.contains(&b'`') => None,
        b'`' => Some(inner.iter().copied().filter(|byte| *byte != b'\r').collect()),
        b'"' => unescape(inner),
        _ => None,
    }
}

fn unescape(mut text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    while !text.is_empty() {
        if text[0] == b'\n' {
            return None;
        }
        let (unit, rest) = unquote_char(text, b'"')?;
        match unit {
            Unit::Byte(byte) => out.push(byte),
            Unit::Rune(rune) => push_rune(&mut out, rune),
        }
        text = rest;
    }
    Some(out)
}

pub enum Unit {
    Byte(u8),
    Rune(char),
}

impl Unit {
    pub fn code(&self) -> u32 {
        match self {
            Unit::Byte(byte) => u32::from(*byte),
            Unit::Rune(rune) => u32::from(*rune),
        }
    }
}

/// `strconv.UnquoteChar`: one character or escape, and what follows it.
pub fn unquote_char(text: &[u8], quote: u8) -> Option<(Unit, &[u8])> {
    let first = *text.first()?;
    if first == quote {
        return None;
    }
    if first >= 0x80 {
        let (rune, width) = decode_rune(text);
        return Some((Unit::Rune(rune), &text[width..]));
    }
    if first != b'\\' {
        return Some((Unit::Byte(first), &text[1..]));
    }
    let escape = *text.get(1)?;
    let rest = &text[2..];
    let simple = |byte: u8| Some((Unit::Byte(byte), rest));
    match escape {
        b'a' => simple(7),
        b'b' => simple(8),
        b'f' => simple(12),
        b'n' => simple(b'\n'),
        b'r' => simple(b'\r'),
        b't' => simple(b'\t'),
        b'v' => simple(11),
        b'\\' => simple(b'\\'),
        b'\'' | b'"' if escape == quote => simple(escape),
        b'x' => Some((Unit::Byte(u8::try_from(hex(rest.get(..2)?)?).ok()?), &rest[2..])),
        b'u' => Some((Unit::Rune(char::from_u32(hex(rest.get(..4)?)?)?), &rest[4..])),
        b'U' => Some((Unit::Rune(char::from_u32(hex(rest.get(..8)?)?)?), &rest[8..])),
        b'0'..=b'7' => {
            let digits = text.get(1..4)?;
            if !digits.iter().all(|digit| (b'0'..=b'7').contains(digit)) {
                return None;
            }
            let value = digits.iter().fold(0u32, |value, digit| value * 8 + u32::from(digit - b'0'));
            Some((Unit::Byte(u8::try_from(value).ok()?), &text[4..]))
        }
        _ => None,
    }
}

fn hex(digits: &[u8]) -> Option<u32> {
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
