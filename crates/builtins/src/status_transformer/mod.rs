//! `function-status-transformer`: sets conditions on, and emits events for, a composite resource according to the
//! conditions of other resources.
//!
//! The input is a list of hooks. A hook whose matchers all match ([`matching`]) sets its conditions and creates its
//! events; what the matchers' patterns captured fills the templates of their messages. The function is never fatal:
//! errors are reported in a separate condition.

mod input;
mod matching;

use input::{CreateEvent, Hook, Input, SetCondition};
use matching::{Candidates, Captured};
use std::collections::BTreeSet;
use transom_function::proto::v1::Result as FunctionResult;
use transom_function::{
    Condition, RunFunctionRequest, RunFunctionResponse, Severity, Status, Struct, Target,
};
use transom_gotemplate::{Functions, Key, Limits, Map, MapType, Options, Template, Value};

use crate::input as step;
use crate::review::{self, Builtin, Review, Unsupported};

/// The condition that reports how the function itself did.
const SUCCESS: &str = "StatusTransformationSuccess";

/// The function.
pub(crate) struct StatusTransformer;

impl Builtin for StatusTransformer {
    fn answer(&self, request: &mut RunFunctionRequest) -> RunFunctionResponse {
        let mut response = request.start_response();
        let context = response.context.take();
        let outcome = transform(request, context.as_ref(), &mut response);
        response.context = context;
        match outcome {
            Ok(true) => drop(response.condition(SUCCESS, Status::ConditionTrue, "Available")),
            Ok(false) => {}
            Err(error) => failed(&mut response, review::INPUT_FAILURE, error),
        }
        response
    }

    fn input_kind(&self) -> &'static str {
        "StatusTransformation"
    }

    fn review(&self, input: &serde_json::Map<String, serde_json::Value>) -> Review {
        review::by_fields::<Input>(input, Unsupported::Ignored)
    }
}

review::function!(StatusTransformer);

fn failed(response: &mut RunFunctionResponse, reason: &str, message: String) {
    response.condition(SUCCESS, Status::ConditionFalse, reason).with_message(message);
}

/// Runs all hooks; returns whether all succeeded. An error ends the whole function.
fn transform(
    request: &RunFunctionRequest,
    context: Option<&Struct>,
    response: &mut RunFunctionResponse,
) -> Result<bool, String> {
    let input: Input = step::read(request, "v1beta1.StatusTransformation")?;
    let mut candidates = Candidates::new(request, context);
    let mut run = Run { response, set: BTreeSet::new(), all_well: true };
    for (index, hook) in input.status_condition_hooks.iter().enumerate() {
        if let Some(captured) = run.matched(index, hook, &mut candidates)? {
            run.act(index, hook, &captured);
        }
    }
    Ok(run.all_well)
}

struct Run<'a> {
    response: &'a mut RunFunctionResponse,
    /// The types of the conditions set so far.
    set: BTreeSet<String>,
    all_well: bool,
}

impl Run<'_> {
    fn problem(&mut self, reason: &str, message: String) {
        failed(self.response, reason, message);
        self.all_well = false;
    }

    /// What the matchers of a hook captured, when all of them match. A hook without any never does.
    fn matched(
        &mut self,
        index: usize,
        hook: &Hook,
        candidates: &mut Candidates<'_>,
    ) -> Result<Option<Captured>, String> {
        let mut all = Captured::new();
        for (i, matcher) in hook.matchers.iter().enumerate() {
            if matcher.include_extra_resources {
                candidates.load_extra().map_err(|error| format!("cannot load extra-resources: {error}"))?;
            }
            match matching::matches(matcher, candidates) {
                Ok(Some(captured)) => all.extend(captured),
                Ok(None) => return Ok(None),
                Err(error) => {
                    let place = format!("statusConditionHookIndex: {index}, matchConditionIndex: {i}");
                    self.problem("MatchFailure", format!("cannot match resources, {place}: {error}"));
                    return Ok(None);
                }
            }
        }
        Ok((!hook.matchers.is_empty()).then_some(all))
    }

    fn act(&mut self, index: usize, hook: &Hook, captured: &Captured) {
        for (i, setter) in hook.set_conditions.iter().enumerate() {
            if self.set.contains(&setter.condition.r#type) && !setter.force {
                continue;
            }
            match condition(setter, captured) {
                Ok(condition) => {
                    self.set.insert(condition.r#type.clone());
                    self.response.conditions.push(condition);
                }
                Err(error) => {
                    let place = format!("statusConditionHookIndex: {index}, setConditionIndex: {i}");
                    self.problem("SetConditionFailure", format!("cannot set condition, {place}: {error}"));
                }
            }
        }
        for (i, event) in hook.create_events.iter().enumerate() {
            match result(event, captured) {
                Ok(result) => self.response.results.push(result),
                Err(error) => {
                    let place = format!("statusConditionHookIndex: {index}, createEventIndex: {i}");
                    self.problem("SetConditionFailure", format!("cannot create event, {place}: {error}"));
                }
            }
        }
    }
}

fn target(name: &str) -> Option<i32> {
    let target = if name == "CompositeAndClaim" { Target::CompositeAndClaim } else { Target::Composite };
    Some(target as i32)
}

fn condition(setter: &SetCondition, captured: &Captured) -> Result<Condition, String> {
    let wanted = &setter.condition;
    let status = match wanted.status.as_str() {
        "True" => Status::ConditionTrue,
        "False" => Status::ConditionFalse,
        _ => Status::ConditionUnknown,
    };
    Ok(Condition {
        r#type: wanted.r#type.clone(),
        status: status as i32,
        reason: wanted.reason.clone(),
        message: wanted.message.as_deref().map(|message| fill_in(message, captured)).transpose()?,
        target: target(&setter.target),
    })
}

fn result(wanted: &CreateEvent, captured: &Captured) -> Result<FunctionResult, String> {
    let severity = match wanted.event.r#type.as_deref() {
        None | Some("Normal") => Severity::Normal,
        Some("Warning") => Severity::Warning,
        Some(other) => return Err(format!("invalid type {other}, must be one of [Normal, Warning]")),
    };
    Ok(FunctionResult {
        severity: severity as i32,
        message: fill_in(&wanted.event.message, captured)?,
        reason: wanted.event.reason.clone(),
        target: target(&wanted.target),
    })
}

/// A message with what was captured filled in. When nothing was, it is not a template.
fn fill_in(message: &str, captured: &Captured) -> Result<String, String> {
    if captured.is_empty() {
        return Ok(message.to_owned());
    }
    let options = Options { plain: true, ..Options::default() };
    let template =
        Template::parse("", message, &options).map_err(|error| format!("cannot parse template: {error}"))?;
    let values = Map::new(MapType::StrStr);
    for (name, value) in captured {
        values.insert(Key::Str(name.as_str().into()), Value::str(value.as_str()));
    }
    let filled = template.execute(&Value::Map(values), &Functions::default(), &Limits::default());
    filled.map_err(|error| format!("cannot execute template: {error}"))
}

#[cfg(test)]
mod tests;
