//! The writer: compact, keys in order, numbers and escapes as Go writes them.

use serde_json::{Number, Value};
use std::io::Write;

/// The canonical text of a value: no white space, keys sorted by bytes, floats as Go prints them.
pub fn encode(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write(&mut out, value, false);
    out
}

/// As [`encode`], appended to `out`.
pub fn encode_into(value: &Value, out: &mut Vec<u8>) {
    write(out, value, false);
}

/// A string literal, appended to `out`.
pub fn encode_str_into(text: &str, out: &mut Vec<u8>) {
    write_string(out, text, false);
}

/// As [`encode`], with `<`, `>` and `&` escaped as Go's `json.Marshal` does. Needed where the text
/// itself is data, as in the last-applied annotation.
pub fn encode_escaped(value: &Value) -> String {
    let mut out = Vec::with_capacity(256);
    write(&mut out, value, true);
    // Everything written below is UTF-8.
    String::from_utf8(out).unwrap_or_default()
}

fn write(out: &mut Vec<u8>, value: &Value, html: bool) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text, html),
        Value::Array(items) => {
            let mut separator = b'[';
            for item in items {
                out.push(separator);
                write(out, item, html);
                separator = b',';
            }
            out.extend_from_slice(if items.is_empty() { b"[]" } else { b"]" });
        }
        Value::Object(map) => {
            let mut separator = b'{';
            for (key, item) in map {
                out.push(separator);
                write_string(out, key, html);
                out.push(b':');
                write(out, item, html);
                separator = b',';
            }
            out.extend_from_slice(if map.is_empty() { b"{}" } else { b"}" });
        }
    }
}

fn write_number(out: &mut Vec<u8>, number: &Number) {
    if let Some(integer) = number.as_i64() {
        let _ = write!(out, "{integer}");
    } else if let Some(integer) = number.as_u64() {
        let _ = write!(out, "{integer}");
    } else if let Some(float) = number.as_f64() {
        out.extend_from_slice(format_float(float).as_bytes());
    }
}

/// A float as Go's `encoding/json` prints it: shortest digits, with an exponent only below 1e-6 and from 1e21.
pub fn format_float(float: f64) -> String {
    let size = float.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{float:e}");
        if text.contains("e-") { text } else { text.replace('e', "e+") }
    } else {
        float.to_string()
    }
}

/// Bytes that stand for themselves in every string.
const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut control = 0;
    while control < 0x20 {
        plain[control] = false;
        control += 1;
    }
    let special = b"\"\\<>&\xe2";
    let mut i = 0;
    while i < special.len() {
        plain[special[i] as usize] = false;
        i += 1;
    }
    plain
};

fn write_string(out: &mut Vec<u8>, text: &str, html: bool) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut start = 0;
    for (i, &byte) in bytes.iter().enumerate() {
        if PLAIN[usize::from(byte)] {
            continue;
        }
        // U+2028 and U+2029 are the only characters escaped outside ASCII: E2 80 A8 and E2 80 A9.
        let separator = byte == 0xe2 && bytes[i + 1] == 0x80 && matches!(bytes[i + 2], 0xa8 | 0xa9);
        let special =
            byte < 0x20 || byte == b'"' || byte == b'\\' || (html && matches!(byte, b'<' | b'>' | b'&'));
        if !special && !separator {
            continue;
        }
        out.extend_from_slice(&bytes[start..i]);
        start = i + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            0xe2 => {
                out.extend_from_slice(if bytes[i + 2] == 0xa8 { b"\\u2028" } else { b"\\u2029" });
                start = i + 3;
            }
            _ => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&digits);
            }
        }
    }
    out.extend_from_slice(&bytes[start..]);
    out.push(b'"');
}
