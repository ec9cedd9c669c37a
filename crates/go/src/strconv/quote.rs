//! String literals: writing them (`%q`) and reading them.

use crate::unicode::is_print;
use crate::utf8::{decode_rune, push_rune, runes};

/// Which runes a literal shows as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printable {
    /// Those that are printable (`strconv.Quote`).
    Unicode,
    /// Those that are printable ASCII (`strconv.QuoteToASCII`).
    Ascii,
}

/// `strconv.Quote`: the double-quoted literal, as `%q` writes it.
pub fn quote(text: &str) -> String {
    quote_bytes(text.as_bytes(), Printable::Unicode)
}

/// `strconv.Quote` and `strconv.QuoteToASCII` of bytes; those that are not UTF-8 are written as `\x..`.
pub fn quote_bytes(text: &[u8], printable: Printable) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for (at, rune, width) in runes(text) {
        if width == 1 && rune == '\u{FFFD}' {
            out.push_str(&format!("\\x{:02x}", text[at]));
        } else {
            push_escaped(&mut out, rune, '"', printable);
        }
    }
    out.push('"');
    out
}

/// `strconv.QuoteRune` for a code that may not be a valid rune.
pub fn quote_rune(code: u64, printable: Printable) -> String {
    let rune = u32::try_from(code).ok().and_then(char::from_u32).unwrap_or('\u{FFFD}');
    let mut out = String::from('\'');
    push_escaped(&mut out, rune, '\'', printable);
    out.push('\'');
    out
}

fn push_escaped(out: &mut String, rune: char, delimiter: char, printable: Printable) {
    if rune == delimiter || rune == '\\' {
        out.push('\\');
        out.push(rune);
        return;
    }
    if is_print(rune) && (rune.is_ascii() || printable == Printable::Unicode) {
        out.push(rune);
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
    out.push_str(&escape);
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
        b'"' if inner.contains(&b'\n') => None,
        b'"' => unescape(inner, b'"'),
        _ => None,
    }
}

/// What is written between two quotes: `strconv.UnquoteChar` until the end. Unlike in Go's own literals, lines may end.
pub fn unescape(mut text: &[u8], quote: u8) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    while !text.is_empty() {
        let (unit, rest) = unquote_char(text, quote)?;
        match unit {
            Unit::Byte(byte) => out.push(byte),
            Unit::Rune(rune) => push_rune(&mut out, rune),
        }
        text = rest;
    }
    Some(out)
}

/// The value of one character or escape of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A byte: ASCII, or an escape such as `\xff`.
    Byte(u8),
    /// A rune.
    Rune(char),
}

impl Unit {
    /// The byte or code point as a number.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_as_go_does() {
        for (text, quoted) in [
            ("", r#""""#),
            ("it's", r#""it's""#),
            (r#"a\"b"#, r#""a\\\"b""#),
            ("\u{7}\u{8}\u{b}\u{c}\n\r\t", r#""\a\b\v\f\n\r\t""#),
            ("\0\u{1b}\u{7f}", r#""\x00\x1b\x7f""#),
            ("é你🍔e\u{301}\u{301}", "\"é你🍔e\u{301}\u{301}\""),
            ("\u{200b}\u{a0}\u{feff}\u{10ffff}", r#""\u200b\u00a0\ufeff\U0010ffff""#),
        ] {
            assert_eq!(quote(text), quoted);
        }
        assert_eq!(quote_bytes(b"a\xffb", Printable::Unicode), r#""a\xffb""#);
        assert_eq!(quote_bytes("é".as_bytes(), Printable::Ascii), r#""\u00e9""#);
    }

    #[test]
    fn line_breaks_are_refused_in_literals_only() {
        assert_eq!(unquote("\"a\nb\""), None);
        assert_eq!(unescape(b"a\nb", b'"').as_deref(), Some(b"a\nb".as_slice()));
        assert_eq!(unescape(br"it\'s \x41\101\u00e9", b'\'').as_deref(), Some("it's AAé".as_bytes()));
        for refused in [&b"it's"[..], br#"\""#, br"\400", br"\ud800", br"\"] {
            assert_eq!(unescape(refused, b'\''), None, "{refused:?}");
        }
    }
}
