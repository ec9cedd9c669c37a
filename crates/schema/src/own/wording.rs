//! Text that must read exactly as Go prints it: values in paths and messages, and keys of `FieldsV1`.
//!
//! Manager identifiers, `FieldsV1` keys and error messages are compared by clients and stored in
//! objects, so the differences between Go's and Rust's formatting matter.

use serde_json::{Number, Value};
use std::fmt::Write;
pub(super) use transom_object::quote::quote;

/// A value in a path: strings quoted, the rest as `%v`.
pub(super) fn display(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => number(n),
        Value::String(s) => quote(s),
        Value::Array(items) => format!("[{}]", items.iter().map(display).collect::<Vec<_>>().join(",")),
        Value::Object(map) => map.iter().map(|(k, v)| format!("{k}={}", display(v))).collect(),
    }
}

/// A number in Go's shortest form, with an exponent below 1e-4 and from 1e21.
fn number(n: &Number) -> String {
    if let Some(i) = n.as_i64() {
        return i.to_string();
    }
    let float = n.as_f64().unwrap_or_default();
    if float == 0.0 || (1e-4..1e21).contains(&float.abs()) {
        return float.to_string();
    }
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |e| ('-', e));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// A JSON string as it appears in a key of `FieldsV1`, where Go does not escape `<`, `>` and `&`.
pub(super) fn write_json_string(s: &str, out: &mut String) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{0}'..'\u{20}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn floats_print_as_go_prints_them() {
        for (value, text) in [
            (json!(1.0), "1"),
            (json!(2.25), "2.25"),
            (json!(-0.5), "-0.5"),
            (json!(1e21), "1e+21"),
            (json!(1e20), "100000000000000000000"),
            (json!(0.00001), "1e-05"),
            (json!(1.5e-7), "1.5e-07"),
            (json!(0.0), "0"),
        ] {
            assert_eq!(display(&value), text);
        }
    }

    #[test]
    fn keys_escape_only_what_json_must() {
        let mut out = String::new();
        write_json_string("<a\"\\\u{1}\n&", &mut out);
        assert_eq!(out, r#""<a\"\\\u0001\n&""#);
    }

    #[test]
    fn go_syntax_of_values() {
        let v = json!({"a": [1, "x", null]});
        assert_eq!(plain(&v), "map[a:[1 x <nil>]]");
        assert_eq!(literal(&v), r#"map[string]interface {}{"a":[]interface {}{1, "x", interface {}(nil)}}"#);
    }
}
