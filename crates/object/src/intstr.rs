//! `IntOrString`: a number, or a text that is often a percentage (`25%`).

use crate::quote::quote;
use serde_json::Value;
use std::fmt;

/// A field that takes a number or a text, such as a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IntOrString {
    /// A number.
    Int(i32),
    /// A text.
    String(String),
}

impl IntOrString {
    /// A number where the text is one, else the text itself.
    pub fn parse(s: &str) -> Self {
        s.parse().map_or_else(|_| Self::String(s.to_owned()), Self::Int)
    }

    /// Reads a field; `None` for what is neither a text nor a 32-bit integer.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::String(s) => Some(Self::String(s.clone())),
            // A Go decoder leaves the zero value.
            Value::Null => Some(Self::Int(0)),
            other => other.as_i64().and_then(|n| n.try_into().ok()).map(Self::Int),
        }
    }

    /// The JSON value.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Int(n) => (*n).into(),
            Self::String(s) => s.as_str().into(),
        }
    }

    /// The number itself, or the percentage of `total`; a text that is not a percentage is an error.
    pub fn scaled(&self, total: i64, round_up: bool) -> Result<i64, PercentageError> {
        let percent = match self {
            Self::Int(n) => return Ok(i64::from(*n)),
            Self::String(s) => percentage(s)?,
        };
        // Through floats, as upstream: the casts saturate.
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "as upstream")]
        {
            let exact = percent as f64 * total as f64 / 100.0;
            Ok(if round_up { exact.ceil() } else { exact.floor() } as i64)
        }
    }
}

/// Why a text is not a percentage, worded as upstream words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PercentageError {
    /// It does not end in `%`.
    #[error("invalid value for IntOrString: invalid type: string is not a percentage")]
    NoPercentSign,
    /// What stands before `%` is not a number, as `strconv.Atoi` words it.
    #[error(
        "invalid value for IntOrString: invalid value {}: strconv.Atoi: parsing {}: {why}",
        quote(&format!("{digits}%")),
        quote(.digits)
    )]
    Number {
        /// What stands before `%`.
        digits: String,
        /// What is wrong with the number.
        why: &'static str,
    },
}

fn percentage(s: &str) -> Result<i64, PercentageError> {
    let digits = s.strip_suffix('%').ok_or(PercentageError::NoPercentSign)?;
    digits.parse().map_err(|e: std::num::ParseIntError| {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let why = match e.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        PercentageError::Number { digits: digits.to_owned(), why }
    })
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(n) => write!(f, "{n}"),
            Self::String(s) => f.write_str(s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_numbers_and_texts() {
        assert_eq!(IntOrString::parse("-5"), IntOrString::Int(-5));
        assert_eq!(IntOrString::parse("2147483648").to_string(), "2147483648");
        assert_eq!(IntOrString::from_value(&json!(1.5)), None);
        assert_eq!(IntOrString::from_value(&json!(2_147_483_648_i64)), None);
        assert_eq!(IntOrString::from_value(&json!("x")).map(|v| v.to_value()), Some(json!("x")));
    }

    #[test]
    fn scales_percentages() {
        let s = |s: &str| IntOrString::String(s.into());
        assert_eq!(s("33%").scaled(10, true), Ok(4));
        assert_eq!(s("33%").scaled(10, false), Ok(3));
        assert_eq!(IntOrString::Int(7).scaled(10, false), Ok(7));
        assert_eq!(
            s("x%").scaled(1, true).unwrap_err().to_string(),
            r#"invalid value for IntOrString: invalid value "x%": strconv.Atoi: parsing "x": invalid syntax"#
        );
        assert_eq!(
            s("5").scaled(1, true).unwrap_err().to_string(),
            "invalid value for IntOrString: invalid type: string is not a percentage"
        );
    }
}
