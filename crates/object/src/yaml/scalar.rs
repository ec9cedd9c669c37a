//! What a scalar means as a JSON value or as a key, by go-yaml v2's rules.

use crate::json::canonical_number;
use serde_json::{Number, Value};
use transom_go::yaml::{self, Version, format_float, format_float32};

/// The meaning of a scalar.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// Beyond `i64`: a number to JSON, but not a possible key.
    Uint(u64),
    /// Possibly infinite or not a number, which JSON cannot say.
    Float(f64),
    Text,
}

impl Scalar {
    /// The short tag, as error messages name it.
    pub(super) fn tag(&self) -> &'static str {
        match self {
            Self::Null => "!!null",
            Self::Bool(_) => "!!bool",
            Self::Int(_) | Self::Uint(_) => "!!int",
            Self::Float(_) => "!!float",
            Self::Text => "!!str",
        }
    }

    /// The JSON value, given the text it was resolved from.
    pub(super) fn into_value(self, text: &str) -> Result<Value, String> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(b) => Value::Bool(b),
            Self::Int(i) => Value::from(i),
            #[expect(clippy::cast_precision_loss, reason = "what the decoder of JSON does to such integers")]
            Self::Uint(u) => canonical_number(u as f64).map_or(Value::Null, Value::Number),
            // Upstream passes through JSON text, where minus zero is `-0`, an integer.
            Self::Float(0.0) => Value::from(0),
            Self::Float(f) => match canonical_number(f) {
                Some(number) => Value::Number(number),
                None => return Err(format!("unsupported value: {}", format_float(f))),
            },
            Self::Text => Value::String(text.to_owned()),
        })
    }

    /// The key a mapping gets in JSON, where keys are strings.
    pub(super) fn into_key(self, text: &str) -> Result<String, String> {
        Ok(match self {
            Self::Null => return Err("unsupported map key of type: null".to_owned()),
            Self::Uint(_) => return Err(format!("unsupported map key of type: uint64, key: {text}")),
            Self::Bool(b) => b.to_string(),
            Self::Int(i) => i.to_string(),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "upstream prints keys with the precision of a float32"
            )]
            Self::Float(f) => format_float32(f as f32),
            Self::Text => text.to_owned(),
        })
    }
}

/// Resolves a plain scalar without tag.
pub(super) fn resolve(text: &str) -> Scalar {
    match yaml::resolve(text, Version::V2) {
        yaml::Scalar::Null => Scalar::Null,
        yaml::Scalar::Bool(b) => Scalar::Bool(b),
        yaml::Scalar::Int(i) => Scalar::Int(i),
        yaml::Scalar::Uint(u) => Scalar::Uint(u),
        yaml::Scalar::Float(f) => Scalar::Float(f),
        // Timestamps stay the strings that they are written as.
        yaml::Scalar::Time(_) | yaml::Scalar::Merge | yaml::Scalar::Text => Scalar::Text,
    }
}

/// Dates and times in the notations that upstream recognises.
pub(super) fn is_timestamp(text: &str) -> bool {
    matches!(yaml::resolve(text, Version::V2), yaml::Scalar::Time(_))
}

/// A number as it is written: integers as they are, floats in Go's shortest `%g`.
pub(super) fn format_number(number: &Number) -> String {
    if let Some(float) = number.as_f64().filter(|_| number.is_f64()) {
        let json = crate::json::format_float(float);
        // Upstream re-reads the JSON text, where an integral float up to 2^64 looks like an integer.
        match resolve(&json) {
            Scalar::Int(_) | Scalar::Uint(_) => json,
            _ => format_float(float),
        }
    } else {
        number.to_string()
    }
}
