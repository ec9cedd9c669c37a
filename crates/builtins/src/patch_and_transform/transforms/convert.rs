//! Turning a value of one of Go's types into one of another.

use serde_json::Value;
use transom_go::strconv::{NumberError, format_float, parse_bool, parse_float, parse_int};
use transom_gotemplate::{IntKind, List, ListType, Map, MapType, Value as Go};
use transom_object::field::Path;
use transom_object::json::{decode, kind_of};
use transom_object::quantity::Quantity;
use transom_object::quote::quote;

use super::super::document::{Numbers, to_go};
use super::super::input::{Convert, ConvertFormat, ConvertTo};
use super::super::validate;
use super::math::truncate;

pub(super) fn resolve(convert: &Convert, input: Go) -> Result<Go, String> {
    validate::convert(convert, &Path::root()).map_err(|e| e.to_string())?;
    converted(convert, input)
}

pub(crate) fn converted(convert: &Convert, input: Go) -> Result<Go, String> {
    let to = match &convert.to_type {
        ConvertTo::Int => &ConvertTo::Int64,
        to => to,
    };
    let same = match input {
        Go::Str(_) => *to == ConvertTo::String,
        Go::Bool(_) => *to == ConvertTo::Bool,
        Go::Int(IntKind::Int | IntKind::Int64, _) => *to == ConvertTo::Int64,
        Go::Float(_) => *to == ConvertTo::Float64,
        other => return Err(format!("invalid input type {}", other.type_name())),
    };
    if same {
        return Ok(input);
    }
    let unsupported = || {
        let from = input.type_name();
        format!("conversion from {from} to {to} is not supported with format {}", convert.format())
    };
    match (&input, convert.format()) {
        (Go::Str(text), format) => from_text(&text.lossy(), to, format).unwrap_or_else(|| Err(unsupported())),
        (scalar, ConvertFormat::None) => from_scalar(scalar, to).ok_or_else(unsupported),
        _ => Err(unsupported()),
    }
}

fn from_text(text: &str, to: &ConvertTo, format: &ConvertFormat) -> Option<Result<Go, String>> {
    Some(match (to, format) {
        (ConvertTo::Int64, ConvertFormat::None) => {
            parse_int(text, 10).map(Go::int64).map_err(|e| refused("ParseInt", text, e))
        }
        (ConvertTo::Bool, ConvertFormat::None) => {
            parse_bool(text).map(Go::Bool).ok_or_else(|| refused("ParseBool", text, NumberError::Syntax))
        }
        (ConvertTo::Float64, ConvertFormat::None) => {
            parse_float(text).map(Go::Float).map_err(|e| refused("ParseFloat", text, e))
        }
        (ConvertTo::Float64, ConvertFormat::Quantity) => {
            Quantity::parse(text).map(|quantity| Go::Float(quantity.as_f64())).map_err(|e| e.to_string())
        }
        (ConvertTo::Object, ConvertFormat::Json) => decoded(text).and_then(|value| match value {
            Value::Object(_) => Ok(to_go(&value, Numbers::Floats)),
            Value::Null => Ok(Go::Map(Map::nil(MapType::StrAny))),
            _ => Err(misshapen(&value, "map[string]interface {}")),
        }),
        (ConvertTo::Array, ConvertFormat::Json) => decoded(text).and_then(|value| match value {
            Value::Array(_) => Ok(to_go(&value, Numbers::Floats)),
            Value::Null => Ok(Go::List(List::nil(ListType::Any))),
            _ => Err(misshapen(&value, "[]interface {}")),
        }),
        _ => return None,
    })
}

fn refused(function: &str, text: &str, error: NumberError) -> String {
    let why = match error {
        NumberError::Syntax => "invalid syntax",
        NumberError::Range => "value out of range",
    };
    format!("strconv.{function}: parsing {}: {why}", quote(text))
}

fn decoded(text: &str) -> Result<Value, String> {
    decode(text.as_bytes()).map(|decoded| decoded.value).map_err(|e| e.to_string())
}

fn misshapen(value: &Value, shape: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {shape}", kind_of(value))
}

fn from_scalar(scalar: &Go, to: &ConvertTo) -> Option<Go> {
    Some(match (scalar, to) {
        (Go::Int(_, number), ConvertTo::String) => Go::str(number.to_string()),
        (Go::Int(_, number), ConvertTo::Bool) => Go::Bool(*number == 1),
        (Go::Int(_, number), ConvertTo::Float64) => Go::Float(*number as f64),
        (Go::Bool(truth), ConvertTo::String) => Go::str(truth.to_string()),
        (Go::Bool(truth), ConvertTo::Int64) => Go::int64(i64::from(*truth)),
        (Go::Bool(truth), ConvertTo::Float64) => Go::Float(f64::from(u8::from(*truth))),
        (Go::Float(number), ConvertTo::String) => Go::str(format_float(*number, b'f', -1)),
        (Go::Float(number), ConvertTo::Int64) => Go::int64(truncate(*number)),
        (Go::Float(number), ConvertTo::Bool) => Go::Bool(*number == 1.0),
        _ => return None,
    })
}
