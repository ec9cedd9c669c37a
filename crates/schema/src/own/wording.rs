//! Text that must read exactly as Go prints it: quoted strings, numbers, JSON and `%v`.
//!
//! Manager identifiers, `FieldsV1` keys and error messages are compared by clients and stored in
//! objects, so the differences between Go's and Rust's formatting matter.

use serde_json::{Number, Value};
use std::fmt::Write;

/// A value in a path: strings quoted, the rest as `%v`.
pub(super) fn display(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => number(n, -4),
        Value::String(s) => quote(s),
        Value::Array(items) => format!("[{}]", items.iter().map(display).collect::<Vec<_>>().join(",")),
        Value::Object(map) => map.iter().map(|(k, v)| format!("{k}={}", display(v))).collect(),
    }
}

/// Go's `%q`.
pub(super) fn quote(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if (c as u32) < 0x80 && c.is_control() => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c if !printable(c) && (c as u32) < 0x10000 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c if !printable(c) => {
                let _ = write!(out, "\\U{:08x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// What Go's `strconv.IsPrint` accepts, approximated by Rust's own notion in `escape_debug`.
fn printable(c: char) -> bool {
    c == '\'' || c == ' ' || (!c.is_whitespace() && c.escape_debug().len() == 1)
}

/// A number in Go's shortest form; exponents below `low` (and from 21) switch to scientific notation.
fn number(n: &Number, low: i32) -> String {
    match n.as_i64() {
        Some(i) => i.to_string(),
        None => float(n.as_f64().unwrap_or(0.0), low),
    }
}

fn float(f: f64, low: i32) -> String {
    let scientific = format!("{f:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if f == 0.0 || (low..21).contains(&exponent) {
        return format!("{f}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Compact JSON as Go's encoder writes it: keys sorted, `<`, `>` and `&` escaped, `1.0` as `1`.
pub(super) fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(value, &mut out);
    out
}

pub(super) fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(n) => {
            // Unlike %v, JSON has no leading zero in the exponent.
            let text = number(n, -6);
            out.push_str(&text.replacen("e-0", "e-", 1));
        }
        Value::String(s) => write_json_string(s, true, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (k, v)) in map.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_json_string(k, true, out);
                out.push(':');
                write_json(v, out);
            }
            out.push('}');
        }
    }
}

pub(super) fn write_json_string(s: &str, html: bool, out: &mut String) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{0}'..'\u{20}' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if html => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Go's `%v` of a decoded value, as it appears inside `&{…}`.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(s) => s.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let fields: Vec<_> = map.iter().map(|(k, v)| format!("{k}:{}", plain(v))).collect();
            format!("map[{}]", fields.join(" "))
        }
        scalar => display(scalar),
    }
}

/// Go's `%#v` of a decoded value.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(literal).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let fields: Vec<_> = map.iter().map(|(k, v)| format!("{}:{}", quote(k), literal(v))).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        scalar => display(scalar),
    }
}

/// Go's `%T` of a decoded value.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.as_i64().is_some() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn floats_print_as_go_prints_them() {
        for (value, display_text, json_text) in [
            (json!(1.0), "1", "1"),
            (json!(2.25), "2.25", "2.25"),
            (json!(-0.5), "-0.5", "-0.5"),
            (json!(1e21), "1e+21", "1e+21"),
            (json!(1e20), "100000000000000000000", "100000000000000000000"),
            (json!(0.00001), "1e-05", "0.00001"),
            (json!(1.5e-7), "1.5e-07", "1.5e-7"),
            (json!(0.0), "0", "0"),
        ] {
            assert_eq!(display(&value), display_text);
            assert_eq!(json(&value), json_text);
        }
    }

    #[test]
    fn strings_quote_as_go_quotes_them() {
        assert_eq!(quote("a\"\\\u{0}\u{7f}\u{200b}é'☺"), "\"a\\\"\\\\\\x00\\x7f\\u200bé'☺\"");
        assert_eq!(json(&json!("<a&\u{1}>")), r#""\u003ca\u0026\u0001\u003e""#);
    }

    #[test]
    fn go_syntax_of_values() {
        let v = json!({"a": [1, "x", null]});
        assert_eq!(plain(&v), "map[a:[1 x <nil>]]");
        assert_eq!(literal(&v), r#"map[string]interface {}{"a":[]interface {}{1, "x", interface {}(nil)}}"#);
    }
}
