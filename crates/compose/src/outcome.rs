//! What the composite resource is told in the end, once it is known what could be applied.

use crate::condition::{Event, EventType, Target, TargetedCondition};
use crate::failure::Failure;
use crate::plan::Plan;
use serde_json::Value;
use std::collections::BTreeSet;
use transom_object::quote::quote;
use transom_object::time::Timestamp;
use transom_xapi::composite::Schema;
use transom_xapi::constants::{event, reason};
use transom_xapi::{Condition, conditions};

const FATAL_MESSAGE: &str = "A fatal error occurred before the status of this condition could be determined.";

/// Events to record and conditions to set, both in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub events: Vec<Event>,
    pub conditions: Vec<TargetedCondition>,
    /// The composed resources the API server refused.
    pub unsynced: Vec<String>,
    /// The composed resources that are not ready.
    pub unready: Vec<String>,
}

impl Plan {
    /// The outcome of a plan that was executed, given the composed resources that the API server refused as invalid.
    pub fn conclude(&self, unsynced: &BTreeSet<String>) -> Outcome {
        let mut outcome = Outcome {
            events: self.events.clone(),
            conditions: custom(&self.conditions),
            ..Outcome::default()
        };
        for application in &self.apply {
            let name = &application.name;
            if unsynced.contains(name) {
                outcome.unsynced.push(name.clone());
                outcome.events.push(about(format!("Composed resource {} is not yet valid", quote(name))));
            }
            if !application.ready {
                outcome.unready.push(name.clone());
                outcome.events.push(about(format!("Composed resource {} is not yet ready", quote(name))));
            }
        }
        outcome.conditions.push(synced(&outcome.unsynced).into());
        outcome.conditions.push(ready(&outcome.unready, self.ready).into());
        outcome
    }
}

/// What functions may set. They may not set the control plane's own conditions; those are dropped.
fn custom(conditions: &[TargetedCondition]) -> Vec<TargetedCondition> {
    conditions.iter().filter(|c| !conditions::is_system(&c.condition.kind)).cloned().collect()
}

fn about(message: String) -> Event {
    Event {
        r#type: EventType::Normal,
        reason: event::composite::COMPOSE.to_owned(),
        message,
        step: None,
        target: Target::Composite,
    }
}

fn synced(unsynced: &[String]) -> Condition {
    match unsynced {
        [] => Condition::reconcile_success(),
        names => Condition::reconcile_error(format!("Unsynced resources: {}", first_few(names))),
    }
}

/// What the pipeline says about the composite resource's readiness replaces what its composed resources say.
fn ready(unready: &[String], explicit: Option<bool>) -> Condition {
    match (explicit, unready) {
        (Some(true), _) | (None, []) => Condition::available(),
        (Some(false), _) => Condition::creating(),
        (None, names) => {
            Condition::creating().with_message(format!("Unready resources: {}", first_few(names)))
        }
    }
}

/// Names in order: all up to three, then how many more.
pub fn first_few(names: &[String]) -> String {
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    match sorted.as_slice() {
        [a, b, c] => format!("{a}, {b}, and {c}"),
        [a, b, c, rest @ ..] => format!("{a}, {b}, {c}, and {} more", rest.len()),
        few => few.join(", "),
    }
}

impl Failure {
    /// The outcome of a failure: the composite resource is not synced, and what functions had to say about it before
    /// is unknown now, unless they said so again before one of them said stop. `message` is what the condition says.
    pub fn conclude(&self, xr: &Value, message: &str) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.conditions.push(Condition::reconcile_error(message).into());
        if self.is_fatal_result() {
            outcome.events.clone_from(&self.events);
            outcome.conditions.extend(custom(&self.conditions));
        }
        let known: BTreeSet<String> = outcome.conditions.iter().map(|c| c.condition.kind.clone()).collect();
        for old in conditions::of(xr) {
            if !conditions::is_system(&old.kind) && !known.contains(&old.kind) {
                let unknown = Condition::new(&old.kind, "Unknown", reason::FATAL_ERROR);
                outcome.conditions.push(unknown.with_message(FATAL_MESSAGE).into());
            }
        }
        outcome
    }
}

impl Outcome {
    /// Sets the conditions on a composite resource. A legacy one remembers those its claim shall have, too.
    pub fn mark(&self, xr: &mut Value, schema: Schema, now: Timestamp) {
        for TargetedCondition { condition, target } in &self.conditions {
            let condition = condition.clone();
            // Functions do not know generations; whatever the control plane itself says is about one.
            if conditions::is_system(&condition.kind) || condition.reason == reason::FATAL_ERROR {
                conditions::mark_observed(xr, [condition], now);
            } else {
                let kind = condition.kind.clone();
                conditions::mark(xr, [condition], now);
                if schema == Schema::Legacy && *target == Target::CompositeAndClaim {
                    remember_for_claim(xr, &kind);
                }
            }
        }
    }
}

/// Adds to the set `status.claimConditionTypes`, which only ever grows.
fn remember_for_claim(xr: &mut Value, kind: &str) {
    let Some(status) = xr.get_mut("status").and_then(Value::as_object_mut) else { return };
    let types = status.entry("claimConditionTypes").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(types) = types
        && !types.iter().any(|t| t.as_str() == Some(kind))
    {
        types.push(kind.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_summed_up() {
        let few = |n: usize| first_few(&(0..n).rev().map(|i| i.to_string()).collect::<Vec<_>>());
        assert_eq!(few(0), "");
        assert_eq!(few(2), "0, 1");
        assert_eq!(few(3), "0, 1, and 2");
        assert_eq!(few(5), "0, 1, 2, and 2 more");
    }
}
