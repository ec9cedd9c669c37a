//! The writer: compact, keys in order, numbers and escapes as Go writes them.

use serde_json::{Number, Value};
use std::io::Write;
use transom_go::json::{Html, append_string, format_float};

/// The canonical text of a value: no white space, keys sorted by bytes, floats as Go prints them.
pub fn encode(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write(&mut out, value, Html::Plain);
    out
}

/// As [`encode`], appended to `out`.
pub fn encode_into(value: &Value, out: &mut Vec<u8>) {
    write(out, value, Html::Plain);
}

/// A string literal, appended to `out`.
pub fn encode_str_into(text: &str, out: &mut Vec<u8>) {
    append_string(out, text.as_bytes(), Html::Plain);
}

/// As [`encode`], with `<`, `>` and `&` escaped as Go's `json.Marshal` does. Needed where the text
/// itself is data, as in the last-applied annotation.
pub fn encode_escaped(value: &Value) -> String {
    let mut out = Vec::with_capacity(256);
    write(&mut out, value, Html::Escaped);
    // Everything written below is UTF-8.
    String::from_utf8(out).unwrap_or_default()
}

fn write(out: &mut Vec<u8>, value: &Value, html: Html) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => append_string(out, text.as_bytes(), html),
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
                append_string(out, key.as_bytes(), html);
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
