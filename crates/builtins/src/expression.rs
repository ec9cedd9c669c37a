//! Expressions in CEL over what a function is given. On the wire every number is a double, so it is one here too,
//! whatever our own JSON makes of it.

use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use transom_cel::{
    Bindings, CompileError, Env, EvalError, Key, Map, Message, ObjectType, Program, Text, Type, Value,
};
use transom_function::{Resource, State, Struct};

/// How much one evaluation may cost: enough for any sensible expression, and over in well under a second.
pub(crate) const MAX_COST: u64 = 10_000_000;

/// Why an expression is neither true nor false.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The text is not an expression.
    Syntax(String),
    /// The expression does not type-check.
    Meaning(String),
    /// The expression has this type, which is not wanted.
    Type(String),
    /// The evaluation failed.
    Evaluation(String),
    /// The result is not a boolean.
    NotBool,
}

/// Whether expressions must have the type boolean before they are evaluated, or may turn out to be boolean.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Typing {
    Static,
    Dynamic,
}

/// Evaluates an expression over the variables `observed`, `desired` and `context` of a request.
pub(crate) fn holds(
    source: &str,
    typing: Typing,
    observed: Option<&State>,
    desired: Option<&State>,
    context: Option<&Struct>,
) -> Result<bool, Problem> {
    let program = Program::compile(source, &ENV).map_err(|error| {
        let stage = if error.syntax { Problem::Syntax } else { Problem::Meaning };
        stage(issues(&error))
    })?;
    let ty = program.result_type();
    if *ty != Type::Bool && !(typing == Typing::Dynamic && *ty == Type::Dyn) {
        return Err(Problem::Type(type_name(ty)));
    }
    let mut bindings = Bindings::new();
    // Making a variable copies what it holds; most expressions name one.
    if program.mentions("observed") {
        bindings = bindings.with("observed", state(observed));
    }
    if program.mentions("desired") {
        bindings = bindings.with("desired", state(desired));
    }
    if program.mentions("context") {
        bindings = bindings.with("context", structure(context));
    }
    match program.eval(&bindings, MAX_COST) {
        Ok(Value::Bool(truth)) => Ok(truth),
        Ok(_) => Err(Problem::NotBool),
        Err(error) => Err(Problem::Evaluation(failure(&error))),
    }
}

/// Why an evaluation failed. That an operator does not take its operands is all there is to say about it.
pub(crate) fn failure(error: &EvalError) -> String {
    match error {
        EvalError::NoSuchOverload(what) if what.starts_with(['_', '!', '-']) => "no such overload".to_owned(),
        other => other.to_string(),
    }
}

static ENV: LazyLock<Env> = LazyLock::new(|| {
    let structure = || Type::map(Type::String, Type::Dyn);
    let message = |name: &str, fields: &[(&str, Type)]| {
        let fields = fields.iter().map(|(name, ty)| ((*name).to_owned(), ty.clone())).collect();
        Type::Object(Arc::new(ObjectType { name: format!("apiextensions.fn.proto.v1.{name}"), fields }))
    };
    let resource = message(
        "Resource",
        &[
            ("resource", structure()),
            ("connection_details", Type::map(Type::String, Type::Bytes)),
            ("ready", Type::Int),
        ],
    );
    let resources = Type::map(Type::String, resource.clone());
    let state = message("State", &[("composite", resource), ("resources", resources)]);
    let env = Env::new().with("observed", state.clone()).with("desired", state);
    env.with("context", structure()).outside_kubernetes()
});

/// A `State`. As of every message, what is not set has its default value.
fn state(state: Option<&State>) -> Value<'_> {
    let composite = state.and_then(|state| state.composite.as_ref());
    let resources = state.into_iter().flat_map(|state| &state.resources);
    let resources = map(resources.map(|(name, of)| (name.as_str(), resource(Some(of)))));
    let any = state.is_some_and(|state| !state.resources.is_empty());
    Message::new()
        .with("composite", resource(composite), composite.is_some())
        .with("resources", resources, any)
        .into()
}

fn resource(resource: Option<&Resource>) -> Value<'_> {
    let object = resource.and_then(|resource| resource.resource.as_ref());
    let details = resource.into_iter().flat_map(|resource| &resource.connection_details);
    let details =
        map(details.map(|(name, bytes)| (name.as_str(), Value::Bytes(Arc::from(bytes.as_slice())))));
    let ready = resource.map_or(0, |resource| resource.ready);
    Message::new()
        .with("resource", structure(object), object.is_some())
        .with("connection_details", details, resource.is_some_and(|of| !of.connection_details.is_empty()))
        .with("ready", Value::Int(i64::from(ready)), ready != 0)
        .into()
}

fn structure(object: Option<&Struct>) -> Value<'_> {
    let fields = object.into_iter().flat_map(Struct::fields);
    map(fields.map(|(key, field)| (key.as_str(), value(field))))
}

/// A value of the protocol.
pub(crate) fn value(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Value::String(Text::Borrowed(text)),
        Json::Array(items) => Value::List(items.iter().map(value).collect::<Vec<_>>().into()),
        Json::Object(fields) => map(fields.iter().map(|(key, field)| (key.as_str(), value(field)))),
    }
}

fn map<'a>(entries: impl Iterator<Item = (&'a str, Value<'a>)>) -> Value<'a> {
    let entries: BTreeMap<Key, Value<'a>> =
        entries.map(|(key, value)| (Key::String(Arc::from(key)), value)).collect();
    Value::Map(Map::Owned(Arc::new(entries)))
}

/// What is wrong with an expression, without the words that Kubernetes puts in front.
pub(crate) fn issues(error: &CompileError) -> String {
    let text = error.to_string();
    text.strip_prefix("compilation failed: ").map(str::to_owned).unwrap_or(text)
}

/// A type as messages name it.
fn type_name(ty: &Type) -> String {
    match ty {
        Type::Null => "null_type".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Type::Duration => "google.protobuf.Duration".to_owned(),
        Type::Type(of) => format!("type({})", type_name(of)),
        Type::List(of) => format!("list({})", type_name(of)),
        Type::Map(key, value) => format!("map({}, {})", type_name(key), type_name(value)),
        Type::Optional(of) => format!("optional_type({})", type_name(of)),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use transom_function::Ready;

    fn observed() -> State {
        let mut xr = Resource::new(json!({"spec": {"count": 42, "flag": true, "list": [1, 2]}})).unwrap();
        xr.connection_details.insert("user".to_owned(), b"ada".to_vec());
        let mut state = State::of(xr);
        state.resources.insert("a".to_owned(), Resource::default().with_ready(Ready::True));
        state
    }

    fn check(source: &str, typing: Typing) -> Result<bool, Problem> {
        let context = Struct::try_from(json!({"key": {"x": 1}})).unwrap();
        holds(source, typing, Some(&observed()), None, Some(&context))
    }

    #[test]
    fn requests_are_seen_as_messages() {
        for source in [
            "observed.composite.resource.spec.count == 42",
            "observed.composite.resource.spec.count == 42.0",
            "type(observed.composite.resource.spec.count) == double",
            "observed.composite.connection_details.user == b'ada'",
            "observed.resources['a'].ready == 1",
            "'a' in observed.resources && !('b' in observed.resources)",
            "has(observed.composite) && !has(desired.composite) && !has(desired.resources)",
            "desired.composite.resource == {} && desired.composite.ready == 0",
            "!has(observed.resources['a'].resource) && has(observed.resources['a'].ready)",
            "observed.resources.all(name, observed.resources[name].resource.size() == 0)",
            "context.key.x == 1 && context['key'].x == 1.0",
            "has(context.key) && !has(context.none)",
            "!has(context.key.x.none) && !has(observed.composite.resource.spec.flag.none)",
            "desired.resources.size() == 0",
            "observed == observed",
        ] {
            assert_eq!(check(source, Typing::Static), Ok(true), "{source}");
        }
        assert_eq!(check("observed.composite.resource.spec.flag", Typing::Dynamic), Ok(true));
    }

    #[test]
    fn each_problem_has_its_kind() {
        let failed = |text: &str| Problem::Evaluation(text.to_owned());
        for (source, typing, expected) in [
            ("observed.composite.resource.spec.flag", Typing::Static, Problem::Type("dyn".to_owned())),
            ("context", Typing::Dynamic, Problem::Type("map(string, dyn)".to_owned())),
            (
                "desired.composite",
                Typing::Dynamic,
                Problem::Type("apiextensions.fn.proto.v1.Resource".to_owned()),
            ),
            ("context.none == 1", Typing::Static, failed("no such key: none")),
            ("context.key.x + 1 == 2", Typing::Static, failed("no such overload")),
            ("context.key.x", Typing::Dynamic, Problem::NotBool),
        ] {
            assert_eq!(check(source, typing), Err(expected), "{source}");
        }
        assert!(
            matches!(check("1 +", Typing::Static), Err(Problem::Syntax(text)) if text.starts_with("ERROR: "))
        );
        let unknown = check("observed.none", Typing::Static);
        assert!(matches!(unknown, Err(Problem::Meaning(text)) if text.contains("undefined field 'none'")));
    }
}
