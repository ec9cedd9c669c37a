//! Strings in double quotes as Go's `%q` writes them: the form every Kubernetes message uses.

use std::fmt::Write;

pub fn quote(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{07}' => out.push_str("\\a"),
            '\u{08}' => out.push_str("\\b"),
            '\u{0c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{0b}' => out.push_str("\\v"),
            c if is_print(c) => out.push(c),
            c => escape(&mut out, u32::from(c)),
        }
    }
    out.push('"');
    out
}

fn escape(out: &mut String, code: u32) {
    // Writing to a String cannot fail.
    let _ = match code {
        0..=0x7f => write!(out, "\\x{code:02x}"),
        0x80..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// Go's `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    // Rust escapes exactly what is not printable, except that it also escapes a combining mark that comes first;
    // hence the letter before it.
    let probe: String = ['a', c].iter().collect();
    probe.escape_debug().count() == 2
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
    }
}
