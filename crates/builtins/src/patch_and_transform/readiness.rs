//! Whether a composed resource is ready, by its observed state.

use transom_object::field::Path;
use transom_object::fieldpath;

use super::document::{Document, Numbers};
use super::input::{ReadinessCheck, ReadinessCheckType};
use super::validate;
use crate::conditioned::{condition, is_true};

/// Whether all checks pass; without checks, whether the condition `Ready` is true.
pub(super) fn is_ready(observed: &Document<'_>, checks: &[ReadinessCheck]) -> Result<bool, String> {
    if checks.is_empty() {
        return Ok(is_true(observed.value(), "Ready"));
    }
    for (i, check) in checks.iter().enumerate() {
        let passed = passes(check, observed);
        if !passed.map_err(|e| format!("cannot run readiness check at index {i}: {e}"))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn passes(check: &ReadinessCheck, observed: &Document<'_>) -> Result<bool, String> {
    validate::readiness_check(check, &Path::root()).map_err(|e| format!("invalid: {e}"))?;
    let (object, path) = (observed.value(), check.field_path.as_deref().unwrap_or_default());
    let result = match &check.kind {
        ReadinessCheckType::None => Ok(true),
        ReadinessCheckType::NonEmpty => fieldpath::get(object, path).map(|_| true),
        ReadinessCheckType::MatchString => {
            fieldpath::get_string(object, path).map(|text| Some(text) == check.match_string.as_deref())
        }
        ReadinessCheckType::MatchInteger => {
            // A number that has just arrived is a float to the original, and no integer.
            if observed.numbers() == Numbers::Floats && fieldpath::get(object, path).is_ok() {
                return Err(format!("{path}: not a (int64) number"));
            }
            fieldpath::get_integer(object, path).map(|number| Some(number) == check.match_integer)
        }
        ReadinessCheckType::MatchTrue => fieldpath::get_bool(object, path),
        ReadinessCheckType::MatchFalse => fieldpath::get_bool(object, path).map(|truth| !truth),
        ReadinessCheckType::MatchCondition => {
            // The original dies of a check without one.
            let wanted = check.match_condition.as_ref().ok_or("matchCondition: Required value")?;
            Ok(condition(object, &wanted.kind).status == wanted.status)
        }
        ReadinessCheckType::Unknown(_) => Ok(false),
    };
    match result {
        Err(error) if error.is_not_found() => Ok(false),
        other => other.map_err(|e| e.to_string()),
    }
}
