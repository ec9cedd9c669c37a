//! When an Object is ready, by its policy or by a CEL expression whose cost is bounded. Pure.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_cel::{Bindings, Env, Key, Map, Program, Text, Type, Value as CelValue};
use transom_provider::{Condition, conditions};

/// How much one evaluation of an expression may cost: enough for any sensible one, and over in well under a second.
const MAX_COST: u64 = 10_000_000;

/// Why an expression is neither true nor false.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("cel query cannot be empty")]
    Empty,
    #[error("failed to compile query: {0}")]
    Compile(String),
    #[error("failed to eval the program: {0}")]
    Evaluate(String),
}

/// The condition `Ready` that follows from an observed object; none if it stays as it is.
pub(super) fn condition(readiness: Option<&Value>, live: &Value, is_up_to_date: bool) -> Option<Condition> {
    let text = |field: &str| readiness.and_then(|r| r.get(field)).and_then(Value::as_str).unwrap_or_default();
    let ready = match text("policy") {
        "DeriveFromObject" => conditions::get(&conditions::of(live), "Ready").is_true(),
        "AllTrue" => all_true(live),
        "DeriveFromCelQuery" => match holds(text("celQuery"), live) {
            Ok(ready) => ready,
            Err(problem) => return Some(Condition::unavailable().with_message(problem.to_string())),
        },
        _ => return is_up_to_date.then(Condition::available),
    };
    Some(if ready { Condition::available() } else { Condition::unavailable() })
}

fn all_true(live: &Value) -> bool {
    let all = live.pointer("/status/conditions").and_then(Value::as_array);
    all.is_some_and(|all| !all.is_empty() && all.iter().all(|condition| condition["status"] == "True"))
}

/// Whether an expression over `object` holds. One that is not known to be a truth value before it is evaluated does not.
fn holds(source: &str, live: &Value) -> Result<bool, Problem> {
    if source.is_empty() {
        return Err(Problem::Empty);
    }
    let env = Env::new().with("object", Type::Dyn).outside_kubernetes();
    let program = Program::compile(source, &env).map_err(|error| {
        let words = error.to_string();
        Problem::Compile(words.strip_prefix("compilation failed: ").map(str::to_owned).unwrap_or(words))
    })?;
    if *program.result_type() != Type::Bool {
        return Ok(false);
    }
    let bindings = Bindings::new().with("object", value(live));
    match program.eval(&bindings, MAX_COST) {
        Ok(value) => Ok(matches!(value, CelValue::Bool(true))),
        Err(error) => Err(Problem::Evaluate(error.to_string())),
    }
}

fn value(json: &Value) -> CelValue<'_> {
    match json {
        Value::Null => CelValue::Null,
        Value::Bool(truth) => CelValue::Bool(*truth),
        Value::Number(number) => match number.as_i64() {
            Some(number) => CelValue::Int(number),
            None => CelValue::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => CelValue::String(Text::Borrowed(text)),
        Value::Array(items) => CelValue::List(items.iter().map(value).collect::<Vec<_>>().into()),
        Value::Object(fields) => {
            let entries: BTreeMap<Key, CelValue<'_>> = fields
                .iter()
                .map(|(key, field)| (Key::String(Arc::from(key.as_str())), value(field)))
                .collect();
            CelValue::Map(Map::Owned(Arc::new(entries)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ready(readiness: &Value, live: &Value, is_up_to_date: bool) -> (String, String) {
        let condition = condition(Some(readiness), live, is_up_to_date);
        condition.map(|c| (c.status.to_string(), c.message)).unwrap_or_default()
    }

    #[test]
    fn policies() {
        let live = |conditions: Value| json!({"status": {"conditions": conditions, "ready": true, "n": 2}});
        let none = json!({"kind": "ConfigMap"});
        let both = live(json!([{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]));
        let one = live(json!([{"type": "Ready", "status": "True"}]));
        for (policy, live, expected) in [
            ("AllTrue", &none, "False"),
            ("AllTrue", &both, "False"),
            ("AllTrue", &one, "True"),
            ("DeriveFromObject", &both, "True"),
            ("DeriveFromObject", &none, "False"),
            ("SuccessfulCreate", &none, "True"),
        ] {
            assert_eq!(
                ready(&json!({"policy": policy}), live, true),
                (expected.to_owned(), String::new()),
                "{policy}"
            );
        }
        assert_eq!(ready(&json!({}), &none, false), Default::default(), "Ready stays as it is");
        for (query, expected, message) in [
            ("object.status.ready == true", "True", ""),
            ("object.status.n == 2 && object.status.conditions.all(c, c.status == 'True')", "True", ""),
            ("object.status.ready", "False", ""),
            ("object.status.absent == 1", "False", "failed to eval the program: no such key: absent"),
            ("object.status.conditions.exists(c, c.type == 'Other')", "False", ""),
        ] {
            let readiness = json!({"policy": "DeriveFromCelQuery", "celQuery": query});
            assert_eq!(
                ready(&readiness, &one, true),
                (expected.to_owned(), message.to_owned()),
                "K5, K6: {query}"
            );
        }
        let broken = ready(&json!({"policy": "DeriveFromCelQuery", "celQuery": "object."}), &one, true);
        assert!(broken.1.starts_with("failed to compile query: "), "{broken:?}");
    }
}
