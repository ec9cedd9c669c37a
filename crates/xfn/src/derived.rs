//! What a FunctionIO derives from observed resources: whether they are ready, and connection details.

use serde_json::Value;
use std::collections::BTreeMap;
use transom_function::Resource;
use transom_object::{conditions, fieldpath, json};

/// Whether all checks pass; without checks, whether the condition `Ready` is true.
pub(crate) fn is_ready(observed: &Value, checks: &[Value]) -> Result<bool, String> {
    if checks.is_empty() {
        return Ok(has_condition(observed, "Ready", "True"));
    }
    for (index, check) in checks.iter().enumerate() {
        if !passes(observed, check).map_err(|e| format!("readinessChecks[{index}]: {e}"))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_condition(observed: &Value, kind: &str, status: &str) -> bool {
    let found = observed.pointer("/status/conditions").and_then(Value::as_array);
    found.is_some_and(|found| conditions::has_status(found, kind, status))
}

fn passes(observed: &Value, check: &Value) -> Result<bool, String> {
    let text = |field: &str| check.get(field).and_then(Value::as_str);
    let path = || text("fieldPath").ok_or("fieldPath: it is required".to_owned());
    let found = match text("type").unwrap_or_default() {
        "None" => return Ok(true),
        "NonEmpty" => fieldpath::get(observed, path()?).map(|value| !value.is_null()),
        "MatchString" => {
            let wanted = text("matchString").ok_or("matchString: it is required")?;
            fieldpath::get_string(observed, path()?).map(|found| found == wanted)
        }
        "MatchInteger" => {
            let wanted = check.get("matchInteger").and_then(Value::as_i64);
            let wanted = wanted.ok_or("matchInteger: it is required")?;
            fieldpath::get_integer(observed, path()?).map(|found| found == wanted)
        }
        "MatchTrue" => fieldpath::get_bool(observed, path()?),
        "MatchFalse" => fieldpath::get_bool(observed, path()?).map(|found| !found),
        "MatchCondition" => {
            let wanted = |field: &str| check.get("matchCondition")?.get(field)?.as_str();
            let (Some(kind), Some(status)) = (wanted("type"), wanted("status")) else {
                return Err("matchCondition: its type and status are required".to_owned());
            };
            return Ok(has_condition(observed, kind, status));
        }
        other => return Err(format!("type: {other:?} is not a type of readiness check")),
    };
    match found {
        Err(error) if error.is_not_found() => Ok(false),
        other => other.map_err(|e| e.to_string()),
    }
}

/// The connection details that a resource gives. What is not there yet is left out; it may come.
pub(crate) fn connection_details(
    observed: Option<&Resource>,
    wanted: &[Value],
) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut details = BTreeMap::new();
    for (index, detail) in wanted.iter().enumerate() {
        let text = |field: &str| detail.get(field).and_then(Value::as_str);
        let missing = |field: &str| format!("connectionDetails[{index}].{field}: it is required");
        let kind = text("type").ok_or_else(|| missing("type"))?;
        let (default_name, value) = match kind {
            "FromConnectionSecretKey" => {
                let key =
                    text("fromConnectionSecretKey").ok_or_else(|| missing("fromConnectionSecretKey"))?;
                (Some(key), observed.and_then(|found| found.connection_details.get(key).cloned()))
            }
            "FromFieldPath" => {
                let path = text("fromFieldPath").ok_or_else(|| missing("fromFieldPath"))?;
                let value = observed.and_then(|found| found.get(path).ok());
                (None, value.map(as_text))
            }
            "FromValue" => (None, Some(text("value").ok_or_else(|| missing("value"))?.as_bytes().to_vec())),
            other => {
                return Err(format!("connectionDetails[{index}].type: {other:?} is not a type of detail"));
            }
        };
        let name = text("name").or(default_name).ok_or_else(|| missing("name"))?;
        details.extend(value.map(|value| (name.to_owned(), value)));
    }
    Ok(details)
}

/// A text as it is, anything else as JSON.
fn as_text(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        value => json::encode_escaped(value).into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn readiness_is_checked_as_by_crossplane() {
        let observed = json!({"spec": {"n": 3, "s": "x", "t": true, "e": null}, "status": {"conditions": [
            {"type": "Ready", "status": "False"}, {"type": "Synced", "status": "True"},
        ]}});
        let check = |more: Value| is_ready(&observed, &[more]);
        assert_eq!(is_ready(&observed, &[]), Ok(false), "the condition Ready counts");
        for (check_of, expected) in [
            (json!({"type": "None"}), true),
            (json!({"type": "NonEmpty", "fieldPath": "spec.s"}), true),
            (json!({"type": "NonEmpty", "fieldPath": "spec.nothing"}), false),
            (json!({"type": "MatchString", "fieldPath": "spec.s", "matchString": "x"}), true),
            (json!({"type": "MatchString", "fieldPath": "spec.s", "matchString": "y"}), false),
            (json!({"type": "MatchInteger", "fieldPath": "spec.n", "matchInteger": 3}), true),
            (json!({"type": "MatchTrue", "fieldPath": "spec.t"}), true),
            (json!({"type": "MatchFalse", "fieldPath": "spec.t"}), false),
            (json!({"type": "MatchCondition", "matchCondition": {"type": "Synced", "status": "True"}}), true),
        ] {
            assert_eq!(check(check_of.clone()), Ok(expected), "{check_of}");
        }
        for (wrong, words) in [
            (
                json!({"type": "MatchString", "fieldPath": "spec.s"}),
                "readinessChecks[0]: matchString: it is required",
            ),
            (json!({"type": "NonEmpty"}), "fieldPath: it is required"),
            (json!({"type": "Matsh"}), "\"Matsh\" is not a type of readiness check"),
            (json!({"type": "MatchString", "fieldPath": "spec.n", "matchString": "3"}), "not a string"),
        ] {
            let error = check(wrong.clone()).unwrap_err();
            assert!(error.contains(words), "{wrong}: {error}");
        }
    }

    #[test]
    fn details_are_derived_from_what_is_observed() {
        let mut observed = Resource::new(json!({"status": {"port": 80, "host": "h"}})).unwrap();
        observed.connection_details.insert("password".into(), b"p".to_vec());
        let wanted = [
            json!({"type": "FromConnectionSecretKey", "fromConnectionSecretKey": "password"}),
            json!({"type": "FromConnectionSecretKey", "fromConnectionSecretKey": "later", "name": "l"}),
            json!({"type": "FromFieldPath", "fromFieldPath": "status.port", "name": "port"}),
            json!({"type": "FromValue", "value": "v", "name": "fixed"}),
        ];
        let details = connection_details(Some(&observed), &wanted).unwrap();
        let pairs: Vec<_> = details.iter().map(|(k, v)| (k.as_str(), v.as_slice())).collect();
        assert_eq!(pairs, [("fixed", &b"v"[..]), ("password", b"p"), ("port", b"80")]);
        assert_eq!(connection_details(None, &wanted).unwrap().len(), 1, "only what needs no resource");
        let error = connection_details(None, &[json!({"type": "FromValue", "value": "v"})]).unwrap_err();
        assert_eq!(error, "connectionDetails[0].name: it is required");
    }
}
