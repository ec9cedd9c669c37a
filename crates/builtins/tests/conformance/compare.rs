//! Comparing two responses in their JSON form, in full but for what may differ ([`normalized`]). A result that is
//! expected without a message may have any: the tests it comes from leave it open.

use super::normal::normalized;
use serde_json::Value;

/// How the second differs from the first, with the path of the first difference.
pub(crate) fn compare(expected: &Value, actual: &Value) -> Result<(), String> {
    let (expected, mut actual) = (normalized(expected), normalized(actual));
    let wanted = expected["results"].as_array().into_iter().flatten();
    let results = actual.get_mut("results").and_then(Value::as_array_mut).into_iter().flatten();
    for (wanted, result) in wanted.zip(results) {
        if wanted.get("message").is_none() {
            result.as_object_mut().map(|result| result.remove("message"));
        }
    }
    differ("response", &expected, &actual)
}

fn differ(path: &str, expected: &Value, actual: &Value) -> Result<(), String> {
    match (expected, actual) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                let other = b.get(key).ok_or_else(|| format!("{path}.{key} is missing: {value}"))?;
                differ(&format!("{path}.{key}"), value, other)?;
            }
            match b.iter().find(|(key, _)| !a.contains_key(*key)) {
                Some((key, value)) => Err(format!("{path}.{key} is surplus: {value}")),
                None => Ok(()),
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for (i, (x, y)) in a.iter().zip(b).enumerate() {
                differ(&format!("{path}[{i}]"), x, y)?;
            }
            match a.len() == b.len() {
                true => Ok(()),
                false => Err(format!("{path} has {} elements, not {}: {actual}", b.len(), a.len())),
            }
        }
        _ if expected == actual => Ok(()),
        _ => Err(format!("{path} is {actual}, not {expected}")),
    }
}
