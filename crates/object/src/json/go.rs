//! A JSON value as Go code sees it: what its type is called, and whether it is empty.

use serde_json::Value;

/// The kind of value in messages of Go's decoder: `cannot unmarshal string into …`.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Go's `%T` of the value decoded without a type.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Go's `%T` of the value from a `google.protobuf.Struct`, where every number is a double.
pub fn go_type_in_struct(value: &Value) -> &'static str {
    if value.is_number() { "float64" } else { go_type(value) }
}

/// Whether `omitempty` leaves it out: null, false, zero, or without content.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// The strings in a list, other elements left out; empty when the value is not a list.
pub fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_as_go_sees_them() {
        for (value, kind, go, empty) in [
            (json!(null), "null", "<nil>", true),
            (json!(false), "bool", "bool", true),
            (json!(true), "bool", "bool", false),
            (json!(0), "number", "int64", true),
            (json!(-0.0), "number", "float64", true),
            (json!(0.5), "number", "float64", false),
            (json!(u64::MAX), "number", "float64", false),
            (json!(""), "string", "string", true),
            (json!("a"), "string", "string", false),
            (json!([]), "array", "[]interface {}", true),
            (json!([null]), "array", "[]interface {}", false),
            (json!({}), "object", "map[string]interface {}", true),
            (json!({"a": null}), "object", "map[string]interface {}", false),
        ] {
            assert_eq!((kind_of(&value), go_type(&value), is_empty(&value)), (kind, go, empty), "{value}");
        }
    }

    #[test]
    fn numbers_of_structs_are_doubles() {
        assert_eq!(go_type_in_struct(&json!(1)), "float64");
        assert_eq!(go_type_in_struct(&json!("1")), "string");
    }

    #[test]
    fn texts_of_lists_alone() {
        assert_eq!(strings(&json!(["a", 1, null, ["c"], "b"])), ["a", "b"]);
        for none in [json!(null), json!("a"), json!({"a": "b"}), json!([])] {
            assert!(strings(&none).is_empty(), "{none}");
        }
    }
}
