//! What the composite resource is told in the end, once it is known what could be applied.

use crate::condition::{Event, EventType, Target, TargetedCondition};
use crate::failure::Failure;
use crate::plan::{Application, Plan};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use transom_object::quote::quote;
use transom_object::shorten::shorten;
use transom_object::time::Timestamp;
use transom_xapi::composite::Schema;
use transom_xapi::constants::{condition, event, reason};
use transom_xapi::{Condition, conditions};

/// The composed resources that the API server refused as invalid, each with its answer.
pub type Unsynced = BTreeMap<String, String>;

/// Causes that a condition names, and how long each may be; events and the resources themselves have the rest.
const CAUSES: usize = 3;
const LONGEST_CAUSE: usize = 1 << 10;

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
    /// The outcome of a plan that was executed, in Crossplane's words.
    pub fn conclude(&self, unsynced: &Unsynced) -> Outcome {
        let mut outcome = Outcome {
            events: self.events.clone(),
            conditions: custom(&self.conditions),
            ..Outcome::default()
        };
        for Application { name, ready, .. } in &self.apply {
            if unsynced.contains_key(name) {
                outcome.unsynced.push(name.clone());
                outcome.events.extend(about(std::slice::from_ref(name), "valid"));
            }
            if !ready {
                outcome.unready.push(name.clone());
                outcome.events.extend(about(std::slice::from_ref(name), "ready"));
            }
        }
        outcome.conditions.push(synced(&outcome.unsynced).into());
        outcome.conditions.push(ready(&outcome.unready, self.ready).into());
        outcome
    }

    /// The same outcome, whose conditions also name the causes, as far as they are known. Crossplane's words come first.
    /// Composed resources that are not yet what they should be have one event for all of them: the cost of a reconcile
    /// must not grow by a write for each.
    pub fn explain(&self, mut outcome: Outcome, unsynced: &Unsynced) -> Outcome {
        outcome.events.truncate(self.events.len());
        outcome.events.extend(about(&outcome.unsynced, "valid"));
        outcome.events.extend(about(&outcome.unready, "ready"));
        let Outcome { conditions, unready, .. } = &mut outcome;
        for Condition { kind, status, message, .. } in conditions.iter_mut().map(|c| &mut c.condition) {
            match (kind.as_str(), status.as_str()) {
                (condition::SYNCED, "False") => {
                    let cause =
                        |(name, why): (&String, &String)| format!("{name}: {}", without_addresses(why));
                    append(message, unsynced.iter().map(cause).collect());
                }
                (condition::READY, "False") => {
                    // Crossplane leaves it empty when a function decides on the whole.
                    if message.is_empty() {
                        *message = match unready.as_slice() {
                            [] => "A function reports that the composite resource is not ready".to_owned(),
                            names => format!("Unready resources: {}", first_few(names)),
                        };
                    }
                    append(message, self.causes(unready));
                }
                _ => {}
            }
        }
        outcome
    }

    /// Why these resources are not ready: what functions warn of, and what the resources report of themselves. When the
    /// pipeline says so of the composite resource as a whole, everything that functions said may be the cause.
    fn causes(&self, unready: &[String]) -> Vec<String> {
        let said = |kind: EventType| {
            self.events.iter().filter(move |event| event.step.is_some() && event.r#type == kind)
        };
        let mut causes = Vec::new();
        if self.ready == Some(false) {
            causes.extend(said(EventType::Warning).map(Event::text));
            if causes.is_empty() {
                causes.extend(said(EventType::Normal).map(Event::text));
            }
        } else {
            let quoted: Vec<String> = unready.iter().map(|name| quote(name)).collect();
            let concerns = |event: &&Event| quoted.iter().any(|name| event.message.contains(name.as_str()));
            causes.extend(said(EventType::Warning).filter(concerns).map(Event::text));
        }
        let failing = self.apply.iter().filter(|application| !application.ready);
        causes.extend(failing.filter_map(|a| Some(format!("{}: {}", a.name, a.problem.as_ref()?))));
        causes
    }
}

/// Adds the first few causes to a message.
fn append(message: &mut String, mut causes: Vec<String>) {
    let more = causes.len().saturating_sub(CAUSES);
    causes.truncate(CAUSES);
    let mut causes: Vec<_> = causes.iter().map(|cause| shorten(cause, LONGEST_CAUSE)).collect();
    if more > 0 {
        causes.push(format!("and {more} more, see events").into());
    }
    if !causes.is_empty() {
        message.push_str(&format!(" ({})", causes.join("; ")));
    }
}

/// A server's answer without addresses of its memory, as some of Kubernetes' messages have: they are others each time,
/// and a condition that changes all the time is written all the time.
fn without_addresses(answer: &str) -> String {
    let mut parts = answer.split("0x");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(part.len());
        // Shorter numbers are what users wrote.
        let shown = if digits >= 8 { "…" } else { &part[..digits] };
        text.extend(["0x", shown, &part[digits..]]);
    }
    text
}

/// What functions may set. They may not set the control plane's own conditions; those are dropped.
fn custom(conditions: &[TargetedCondition]) -> Vec<TargetedCondition> {
    conditions.iter().filter(|c| !conditions::is_system(&c.condition.kind)).cloned().collect()
}

/// One event about composed resources that are not yet what they should be.
fn about(names: &[String], what: &str) -> Option<Event> {
    let message = match names {
        [] => return None,
        [name] => format!("Composed resource {} is not yet {what}", quote(name)),
        names => format!("Composed resources {} are not yet {what}", first_few(names)),
    };
    Some(Event {
        r#type: EventType::Normal,
        reason: event::composite::COMPOSE.to_owned(),
        message,
        step: None,
        target: Target::Composite,
    })
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

    #[test]
    fn addresses_are_not_shown_and_other_numbers_are() {
        let answer = "Invalid value: (*v1.Pod)(0xc000f3a8e0): 0xff must not be 0x";
        assert_eq!(without_addresses(answer), "Invalid value: (*v1.Pod)(0x…): 0xff must not be 0x");
    }
}
