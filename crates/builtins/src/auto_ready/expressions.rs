//! Readiness by an expression, per kind. Expressions come with the input, or from the context through a path
//! such as `[apiextensions.crossplane.io/environment].checks`.

use regex::Regex;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use transom_cel::{self as cel, Bindings, Env, Program, Type};
use transom_object::GroupVersionKind;

use crate::expression;

/// Expressions by `<group>_<version>_<Kind>`; the core group is empty.
pub(super) type Expressions = BTreeMap<String, String>;

/// The expression for a kind.
pub(super) fn of_kind<'a>(expressions: &'a Expressions, kind: &GroupVersionKind) -> Option<&'a str> {
    let key = format!("{}_{}_{}", kind.group, kind.version, kind.kind);
    expressions.get(&key).map(String::as_str)
}

/// The expressions at a path of the context. There are none where the path does not exist; values that are not
/// strings are skipped.
pub(super) fn from_context(context: &Map<String, Value>, path: &str) -> Expressions {
    let mut keys = keys(path);
    let start = keys.next().and_then(|key| context.get(key));
    let end = keys.fold(start, |here, key| here?.get(key));
    let entries = end.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(kind, text)| Some((kind.clone(), text.as_str()?.to_owned()))).collect()
}

/// The keys of a path: `[a.b].c` is `a.b` and then `c`. Anything that is not a key is skipped.
fn keys(path: &str) -> impl Iterator<Item = &str> {
    static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\[([^\[\]]+)\]|([^.\[\]]+)").ok());
    let found = KEY.iter().flat_map(|key| key.captures_iter(path));
    found.filter_map(|key| Some(key.get(1).or_else(|| key.get(2))?.as_str()))
}

/// Whether an expression over `object` holds, or why it cannot be evaluated.
pub(super) fn holds(source: &str, object: &Value) -> Result<bool, String> {
    let env = Env::new().with("object", Type::Dyn).outside_kubernetes();
    let program = Program::compile(source, &env)
        .map_err(|error| format!("failed to compile query: {}", expression::issues(&error)))?;
    if *program.result_type() != Type::Bool {
        return Err("celQuery does not return a bool type".to_owned());
    }
    let bindings = Bindings::new().with("object", expression::value(object));
    match program.eval(&bindings, expression::MAX_COST) {
        Ok(value) => Ok(matches!(value, cel::Value::Bool(true))),
        Err(error) => Err(format!("failed to eval the program: {}", expression::failure(&error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_are_split_into_keys() {
        for (path, expected) in [
            ("a.b", vec!["a", "b"]),
            ("[a.b].c", vec!["a.b", "c"]),
            ("a[b.c]d", vec!["a", "b.c", "d"]),
            ("[]a", vec!["a"]),
            ("a[b", vec!["a", "b"]),
            ("[a[b]", vec!["a", "b"]),
            ("..a..", vec!["a"]),
            ("", vec![]),
        ] {
            assert_eq!(keys(path).collect::<Vec<_>>(), expected, "{path}");
        }
    }

    #[test]
    fn only_texts_of_an_object_are_taken() {
        let context = json!({"env": {"checks": {"a": "true", "b": 1}, "text": "true"}});
        let context = context.as_object().unwrap();
        assert_eq!(from_context(context, "env.checks"), Expressions::from([("a".into(), "true".into())]));
        for nowhere in ["", "env.text", "env.none", "env.text.x", "none"] {
            assert_eq!(from_context(context, nowhere), Expressions::new(), "{nowhere}");
        }
    }

    #[test]
    fn expressions_hold_or_say_why_not() {
        let object = json!({"status": {"phase": "Up", "count": 2}});
        assert_eq!(holds("object.status.phase == 'Up' && object.status.count == 2", &object), Ok(true));
        assert_eq!(holds("object.status.phase == 'Down'", &object), Ok(false));
        // The protocol has doubles only.
        assert_eq!(holds("type(object.status.count) == double", &object), Ok(true));
        for (source, expected) in [
            ("object.status.phase", "celQuery does not return a bool type"),
            ("object.status.none == 1", "failed to eval the program: no such key: none"),
            (
                "status",
                "failed to compile query: ERROR: <input>:1:1: undeclared reference to 'status' (in container '')\n | status\n | ^",
            ),
        ] {
            assert_eq!(holds(source, &object), Err(expected.to_owned()), "{source}");
        }
    }
}
