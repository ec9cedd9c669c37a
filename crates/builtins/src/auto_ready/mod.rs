//! `function-auto-ready`: decides which composed resources are ready.
//!
//! Only what is desired, exists, and has no readiness from an earlier step is checked, by the first of these that has
//! a result: an expression of the user for the kind, what is known about Kubernetes' own kinds, the condition
//! `Ready`. Only an expression can decide that something is *not* ready; the composite resource is not checked.

mod checks;
mod expressions;

use expressions::Expressions;
use serde::Deserialize;
use serde_json::{Map, Value};
use transom_function::{Ready, RunFunctionRequest, RunFunctionResponse, Struct};
use transom_object::{GroupVersion, GroupVersionKind};

use crate::review::{self, Builtin, Review, Unsupported};
use crate::{conditioned, desired, input, ttl};

/// The function.
pub(crate) struct AutoReady;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Input {
    ttl: String,
    cel_health_check_customization: Expressions,
    cel_health_check_customization_from: Option<String>,
}

impl Builtin for AutoReady {
    fn answer(&self, request: &mut RunFunctionRequest) -> RunFunctionResponse {
        input::answer(request, judge_all)
    }

    fn input_kind(&self) -> &'static str {
        "Input"
    }

    fn review(&self, input: &Map<String, Value>) -> Review {
        review::by_fields::<Input>(input, Unsupported::Ignored)
    }
}

review::function!(AutoReady);

fn judge_all(request: &RunFunctionRequest, response: &mut RunFunctionResponse) -> Result<(), String> {
    let mut input: Input = input::read(request, "v1beta1.Input")?;
    ttl::set(response, &input.ttl).map_err(|error| format!("cannot set ttl: {error}"))?;
    let context = response.context.as_ref().map(Struct::fields);
    let path = input.cel_health_check_customization_from.as_deref();
    let mut expressions = match (context, path) {
        (Some(context), Some(path)) => expressions::from_context(context, path),
        _ => Expressions::new(),
    };
    expressions.append(&mut input.cel_health_check_customization);

    let mut warnings = Vec::new();
    for (name, desired) in &mut desired::write_back(response).resources {
        if desired.ready() != Ready::Unspecified {
            continue;
        }
        if let Some(observed) = request.observed_composed(name) {
            desired.set_ready(judge(observed.object(), &expressions, &mut warnings));
        }
    }
    for warning in warnings {
        response.warning(warning);
    }
    Ok(())
}

/// Whether a resource is ready. A failing expression is a warning, and the resource is judged without it.
fn judge(object: &serde_json::Value, expressions: &Expressions, warnings: &mut Vec<String>) -> Ready {
    let kind = kind_of(object);
    match expressions::of_kind(expressions, &kind).map(|expression| expressions::holds(expression, object)) {
        Some(Ok(true)) => return Ready::True,
        Some(Ok(false)) => return Ready::False,
        Some(Err(error)) => warnings.push(error),
        None => {}
    }
    if checks::is_ready(&kind, object) == Some(true) || conditioned::is_true(object, "Ready") {
        return Ready::True;
    }
    Ready::Unspecified
}

/// The kind of an object; empty when its API version cannot be read.
fn kind_of(object: &serde_json::Value) -> GroupVersionKind {
    let text = |field: &str| object.get(field).and_then(serde_json::Value::as_str).unwrap_or_default();
    GroupVersion::parse(text("apiVersion")).map(|version| version.with_kind(text("kind"))).unwrap_or_default()
}

#[cfg(test)]
mod tests;
