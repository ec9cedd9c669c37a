//! Number arithmetic and printing as Go does it: integers are 64-bit and compared as such, everything else is
//! a float.

use crate::model::{Schema, Type};
use serde_json::{Number, Value};
use transom_go::strconv::shortest_float;

/// A JSON number as the Go decoder would hold it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Num {
    Int(i64),
    Float(f64),
}

impl Num {
    pub(super) fn of(number: &Number) -> Self {
        match number.as_i64() {
            Some(i) => Num::Int(i),
            None => Num::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }

    /// A bound is cut down to an integer before an integer is compared with it.
    pub(super) fn below_or_at(self, maximum: f64, exclusive: bool) -> bool {
        match self {
            Num::Int(i) if exclusive => i < maximum as i64,
            Num::Int(i) => i <= maximum as i64,
            Num::Float(f) if exclusive => f < maximum,
            Num::Float(f) => f <= maximum,
        }
    }

    pub(super) fn above_or_at(self, minimum: f64, exclusive: bool) -> bool {
        match self {
            Num::Int(i) if exclusive => i > minimum as i64,
            Num::Int(i) => i >= minimum as i64,
            Num::Float(f) if exclusive => f > minimum,
            Num::Float(f) => f >= minimum,
        }
    }

    /// `None` when the factor is not positive, which makes every number invalid.
    pub(super) fn is_multiple_of(self, factor: f64) -> Option<bool> {
        match self {
            Num::Int(i) if factor.fract() == 0.0 => (factor as i64 > 0).then(|| i % factor as i64 == 0),
            // The real API server cuts the factor down to an integer here, and refuses `3` where it takes `3.0`.
            Num::Int(i) => Num::Float(i as f64).is_multiple_of(factor),
            Num::Float(f) => {
                (factor > 0.0).then(|| is_integral(if factor < 1.0 { 1.0 / factor * f } else { f / factor }))
            }
        }
    }

    /// Whether a number fits into the machine type that a schema's type and format stand for.
    pub(super) fn fits(self, schema: &Schema) -> bool {
        const I64_BOUND: f64 = 9_223_372_036_854_775_808.0;
        let format = numeric_format(schema);
        match schema.ty {
            Type::Integer if format.is_some() => {
                let whole = match self {
                    Num::Int(i) => Some(i),
                    Num::Float(f) => {
                        (f.fract() == 0.0 && (-I64_BOUND..I64_BOUND).contains(&f)).then_some(f as i64)
                    }
                };
                whole.is_some_and(|i| format != Some("int32") || i32::try_from(i).is_ok())
            }
            Type::Number if format == Some("float") => match self {
                Num::Int(_) => true,
                Num::Float(f) => (f as f32).is_finite(),
            },
            _ => true,
        }
    }

    /// The number in the type in which it is compared with a bound: one that does not fit the format is compared as a
    /// float.
    pub(super) fn against(self, bound: f64, schema: &Schema) -> Self {
        match self {
            Num::Int(i) if !Num::Float(bound).fits(schema) => Num::Float(i as f64),
            number => number,
        }
    }

    pub(super) fn to_json(self) -> Value {
        match self {
            Num::Int(i) => i.into(),
            Num::Float(f) => f.into(),
        }
    }

    /// A bound in the type it is compared in, as Go's `%v` prints it.
    pub(super) fn print_bound(self, bound: f64) -> String {
        match self {
            Num::Int(_) => (bound as i64).to_string(),
            Num::Float(_) => shortest_float(bound),
        }
    }
}

/// The format of a number where it is one that numbers are checked against.
pub(super) fn numeric_format(schema: &Schema) -> Option<&str> {
    let known: &[&str] = match schema.ty {
        _ if schema.int_or_string => &[],
        Type::Integer => &["int32", "int64"],
        Type::Number => &["float", "double"],
        _ => &[],
    };
    schema.format.as_deref().filter(|format| known.contains(format))
}

/// Whether a float is an integer that JSON can carry exactly, with a tolerance for rounding.
pub(super) fn is_integral(f: f64) -> bool {
    const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_991.0;
    if !f.is_finite() || f.abs() > MAX_EXACT_INTEGER {
        return false;
    }
    let whole = f.trunc();
    f == whole || (whole != 0.0 && (f - whole).abs() / (f.abs() + whole.abs()) < 1e-9)
}

/// Whether an enum admits a value: equal, or equal once a number is converted to the type of the enum's.
pub(super) fn enum_admits(allowed: &Value, value: &Value) -> bool {
    match (allowed, value) {
        (Value::Number(allowed), Value::Number(value)) => match (Num::of(allowed), Num::of(value)) {
            (Num::Int(a), Num::Int(v)) => a == v,
            (Num::Int(a), Num::Float(v)) => a == v as i64,
            (Num::Float(a), Num::Int(v)) => a == v as f64,
            (Num::Float(a), Num::Float(v)) => a == v,
        },
        // A `null` never matches, not even a `null` in the enum.
        (_, Value::Null) => false,
        (allowed, value) => allowed == value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_bound_numbers() {
        let schema = |ty, format: &str| Schema { ty, format: Some(format.into()), ..Schema::default() };
        let int32 = schema(Type::Integer, "int32");
        assert!(Num::Int(i32::MAX.into()).fits(&int32) && !Num::Int(1 << 31).fits(&int32));
        assert!(Num::Float(3.0).fits(&int32) && !Num::Float(3.5).fits(&int32));
        assert!(Num::Int(1 << 31).fits(&schema(Type::Integer, "unheard-of")));
        assert!(!Num::Float(1e300).fits(&schema(Type::Number, "float")));
        assert!(Num::Float(1e300).fits(&schema(Type::Number, "double")));
        let int64 = schema(Type::Integer, "int64");
        assert!(Num::Float(9.22e18).fits(&int64) && Num::Float(-9_223_372_036_854_775_808.0).fits(&int64));
        assert!(!Num::Float(9_223_372_036_854_775_808.0).fits(&int64));
    }

    #[test]
    fn integers_are_compared_as_integers() {
        assert!(Num::Int(1).below_or_at(1.9, false) && !Num::Int(2).below_or_at(1.9, false));
        assert!(!Num::Int(1).below_or_at(1.9, true));
        assert!(
            Num::Float(0.3).is_multiple_of(0.1).unwrap() && !Num::Float(0.35).is_multiple_of(0.1).unwrap()
        );
        assert_eq!(Num::Int(4).is_multiple_of(0.5), Some(true));
        assert_eq!(Num::Int(4).is_multiple_of(1.5), Some(false));
        assert_eq!(Num::Int(4).is_multiple_of(-2.0), None);
    }
}
