//! Selectors of namespaces and objects, and match conditions.

use crate::Request;
use serde_json::Value;
use std::sync::Arc;
use transom_cel::{AccessDecider, AccessQuestion, Bindings, Env, Program, Type, Value as CelValue};
use transom_object::labels::Selector;
use transom_object::meta;

/// A label selector that is compiled when its configuration is read. One that cannot be read matches nothing.
#[derive(Clone, Debug)]
pub struct LabelSelector(Option<Selector>);

impl LabelSelector {
    /// Reads a `LabelSelector`; none selects everything.
    pub fn parse(selector: &Value) -> Self {
        match selector {
            Value::Null => Self(Some(Selector::everything())),
            selector => Self(Selector::from_label_selector(selector).ok()),
        }
    }

    /// Whether it selects everything, regardless of labels.
    pub fn is_everything(&self) -> bool {
        self.0.as_ref().is_some_and(Selector::is_everything)
    }

    /// Whether it selects an object by its labels.
    pub fn selects(&self, object: &Value) -> bool {
        self.0.as_ref().is_some_and(|selector| selector.matches(&meta::labels(object)))
    }

    /// Whether it selects the old or the new object.
    pub fn selects_either(&self, request: &Request) -> bool {
        let selects = |object: &Value| object.is_object() && self.selects(object);
        self.is_everything() || selects(&request.object) || selects(&request.old_object)
    }
}

/// The variables of match conditions; policies have more.
pub fn variables() -> Env {
    variables_of_messages()
        .with("authorizer", Type::AUTHORIZER)
        .with("authorizer.requestResource", Type::RESOURCE_CHECK)
}

/// The same without the authorizer.
pub(crate) fn variables_of_messages() -> Env {
    Env::new()
        .with("object", Type::Dyn)
        .with("oldObject", Type::Dyn)
        .with("request", Type::Dyn)
        .with("namespaceObject", Type::Dyn)
}

/// The values of [`variables`].
pub fn bindings<'a>(
    request: &'a Request,
    namespace: &'a Value,
    authorizer: &Arc<dyn AccessDecider>,
) -> Bindings<'a> {
    Bindings::new()
        .with("object", CelValue::from_json(&request.object))
        .with("oldObject", CelValue::from_json(&request.old_object))
        .with("request", CelValue::from_json(&request.request))
        .with("namespaceObject", CelValue::from_json(namespace))
        .with("authorizer", CelValue::authorizer(authorizer))
        .with("authorizer.requestResource", CelValue::resource_check(authorizer, requested(request)))
}

/// A question about the endpoint of the request, in whichever version the object is seen.
fn requested(request: &Request) -> AccessQuestion {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let request = &request.request;
    AccessQuestion {
        group: text(&request["requestResource"]["group"]),
        resource: text(&request["requestResource"]["resource"]),
        subresource: text(&request["requestSubResource"]),
        namespace: text(&request["namespace"]),
        name: text(&request["name"]),
        ..AccessQuestion::default()
    }
}

/// The match conditions of a webhook or a policy, compiled.
#[derive(Debug, Default)]
pub struct Conditions(Vec<(String, Result<Program, String>)>);

/// What match conditions say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matched {
    /// All of them hold.
    Yes,
    /// One does not hold.
    No,
    /// None is false, and some have no value: why.
    Failed(String),
}

impl Conditions {
    /// Compiles `matchConditions` in an environment.
    pub fn compile(conditions: &Value, env: &Env) -> Self {
        let each = conditions.as_array().into_iter().flatten().map(|condition| {
            let text = |key: &str| condition[key].as_str().unwrap_or_default();
            let program = Program::compile(text("expression"), env).map_err(|e| e.to_string());
            (text("name").to_owned(), program)
        });
        Self(each.collect())
    }

    /// Evaluates them all: one that is false outweighs any failure.
    pub fn evaluate(&self, bindings: &Bindings<'_>) -> Matched {
        let mut failures = Vec::new();
        for (name, program) in &self.0 {
            let value = program
                .as_ref()
                .map_err(Clone::clone)
                .and_then(|program| program.eval_default(bindings).map_err(|e| e.to_string()));
            match value {
                Ok(CelValue::Bool(true)) => {}
                Ok(CelValue::Bool(false)) => return Matched::No,
                Ok(_) => failures.push(format!("matchCondition {name:?} is not a bool")),
                Err(why) => failures.push(format!("matchCondition {name:?} failed: {why}")),
            }
        }
        if failures.is_empty() { Matched::Yes } else { Matched::Failed(failures.join(", ")) }
    }
}
