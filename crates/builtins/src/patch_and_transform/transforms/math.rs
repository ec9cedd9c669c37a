//! Arithmetic, with Go's arithmetic: integers wrap around, floats stay floats.

use transom_gotemplate::{IntKind, Value as Go};
use transom_object::field::Path;

use super::super::input::{Math, MathType};
use super::super::validate;

pub(super) fn resolve(math: &Math, input: &Go) -> Result<Go, String> {
    validate::math(math, &Path::root()).map_err(|e| e.to_string())?;
    let whole = match input {
        Go::Int(IntKind::Int | IntKind::Int64, number) => *number,
        Go::Float(number) => truncate(*number),
        other => {
            return Err(format!(
                "input is required to be a number for math transformer, got {}",
                other.type_name()
            ));
        }
    };
    let bounded = |bound: i64, beyond: bool| if beyond { Go::int64(bound) } else { input.clone() };
    Ok(match (&math.kind, math.multiply, math.clamp_min, math.clamp_max) {
        (MathType::Multiply, Some(factor), ..) => match input {
            Go::Float(number) => Go::Float(number * factor as f64),
            _ => Go::int64(whole.wrapping_mul(factor)),
        },
        (MathType::ClampMin, _, Some(least), _) => bounded(least, whole < least),
        (MathType::ClampMax, _, _, Some(most)) => bounded(most, whole > most),
        (kind, ..) => return Err(format!("type {kind} is not supported for math transform type")),
    })
}

/// A float as Go on amd64 makes an integer of it: what does not fit becomes the least one.
pub(super) fn truncate(number: f64) -> i64 {
    const I64_BOUND: f64 = 9_223_372_036_854_775_808.0;
    if (-I64_BOUND..I64_BOUND).contains(&number) { number as i64 } else { i64::MIN }
}
