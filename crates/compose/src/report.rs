//! Conditions and events of the composite resource, once it is known which composed resources could be applied.

use crate::condition::{Event, EventType, Target, TargetedCondition};
use crate::decision::Decision;
use crate::failure::Failure;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use transom_object::quote::quote;
use transom_object::shorten::shorten;
use transom_object::time::Timestamp;
use transom_xapi::composite::Layout;
use transom_xapi::constants::{condition, event, reason};
use transom_xapi::{Condition, conditions};

/// The composed resources that the API server refused as invalid, each with its message.
pub type Unsynced = BTreeMap<String, String>;

/// The most causes that a condition names, and the most bytes of each; events and the resources themselves have the rest.
const MAX_CAUSES: usize = 3;
const MAX_CAUSE_BYTES: usize = 1 << 10;
/// The most names that a condition or event lists.
const MAX_NAMES: usize = 3;

const FATAL_MESSAGE: &str = "A fatal error occurred before the status of this condition could be determined.";

/// Events to record and conditions to set, both in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Events to record.
    pub events: Vec<Event>,
    /// Conditions to set.
    pub conditions: Vec<TargetedCondition>,
    /// The composed resources the API server refused.
    pub unsynced: Vec<String>,
    /// The composed resources that are not ready.
    pub unready: Vec<String>,
}

impl Decision {
    /// The report of a decision that was carried out, with Crossplane's wording.
    pub fn conclude(&self, unsynced: &Unsynced) -> Report {
        let mut report =
            Report { events: self.events.clone(), conditions: custom(&self.conditions), ..Report::default() };
        for (name, ready) in self.apply.iter().map(|a| (&a.name, a.ready)) {
            if unsynced.contains_key(name) {
                report.unsynced.push(name.clone());
                report.events.extend(about(std::slice::from_ref(name), "valid"));
            }
            if !ready {
                report.unready.push(name.clone());
                report.events.extend(about(std::slice::from_ref(name), "ready"));
            }
        }
        report.conditions.push(synced(&report.unsynced).into());
        report.conditions.push(ready(&report.unready, self.ready).into());
        report
    }

    /// The same report, whose conditions also name the causes, as far as they are known. Crossplane's wording comes first.
    /// All composed resources that are not yet valid or ready share one event: the cost of a reconcile must not grow by
    /// a write for each.
    pub fn explain(&self, mut report: Report, unsynced: &Unsynced) -> Report {
        report.events.truncate(self.events.len());
        report.events.extend(about(&report.unsynced, "valid"));
        report.events.extend(about(&report.unready, "ready"));
        let Report { conditions, unready, .. } = &mut report;
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
        report
    }

    /// Why these resources are not ready: warnings of functions, and errors that the resources report of themselves. When
    /// the pipeline reports the composite resource as a whole as not ready, every result of a function may be the cause.
    fn causes(&self, unready: &[String]) -> Vec<String> {
        let results = |kind: EventType| {
            self.events.iter().filter(move |event| event.step.is_some() && event.r#type == kind)
        };
        let mut causes = Vec::new();
        if self.ready == Some(false) {
            causes.extend(results(EventType::Warning).map(Event::text));
            if causes.is_empty() {
                causes.extend(results(EventType::Normal).map(Event::text));
            }
        } else {
            // A result of the function protocol has a severity, a message, a reason and a target, and no reference to a
            // resource. Functions quote the name of the resource in the message, so that is what is searched for.
            let quoted: Vec<String> = unready.iter().map(|name| quote(name)).collect();
            let concerns = |event: &&Event| quoted.iter().any(|name| event.message.contains(name.as_str()));
            causes.extend(results(EventType::Warning).filter(concerns).map(Event::text));
        }
        let failing = self.apply.iter().filter(|application| !application.ready);
        causes.extend(failing.filter_map(|a| Some(format!("{}: {}", a.name, a.problem.as_ref()?))));
        causes
    }
}

/// Adds the first few causes to a message.
fn append(message: &mut String, mut causes: Vec<String>) {
    let more = causes.len().saturating_sub(MAX_CAUSES);
    causes.truncate(MAX_CAUSES);
    let mut causes: Vec<_> = causes.iter().map(|cause| shorten(cause, MAX_CAUSE_BYTES)).collect();
    if more > 0 {
        causes.push(format!("and {more} more, see events").into());
    }
    if !causes.is_empty() {
        message.push_str(&format!(" ({})", causes.join("; ")));
    }
}

/// A server's message without memory addresses, which some of Kubernetes' messages contain: they differ each time, and a
/// condition that differs each time is written each time.
fn without_addresses(answer: &str) -> String {
    let mut parts = answer.split("0x");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(part.len());
        // Shorter numbers are what users wrote.
        let number = if digits >= 8 { "…" } else { &part[..digits] };
        text.extend(["0x", number, &part[digits..]]);
    }
    text
}

/// The conditions that functions may set. The control plane's own conditions are dropped.
fn custom(conditions: &[TargetedCondition]) -> Vec<TargetedCondition> {
    conditions.iter().filter(|c| !conditions::is_system(&c.condition.kind)).cloned().collect()
}

/// One event about composed resources that are not yet valid or ready.
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

/// The readiness of the composite resource. If the pipeline reports it, that of composed resources does not matter.
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
    conditions::first_and_more(MAX_NAMES, &sorted)
}

impl Failure {
    /// The report of a failure: the composite resource is not synced, and conditions that functions set before are
    /// unknown now, unless functions set them again before one of them returned a fatal result. `message` is that of the
    /// condition.
    pub fn conclude(&self, xr: &Value, message: &str) -> Report {
        let mut report = Report::default();
        report.conditions.push(Condition::reconcile_error(message).into());
        if self.is_fatal_result() {
            report.events.clone_from(&self.events);
            report.conditions.extend(custom(&self.conditions));
        }
        let known: BTreeSet<String> = report.conditions.iter().map(|c| c.condition.kind.clone()).collect();
        for old in conditions::of(xr) {
            if !conditions::is_system(&old.kind) && !known.contains(&old.kind) {
                let unknown = Condition::new(&old.kind, "Unknown", reason::FATAL_ERROR);
                report.conditions.push(unknown.with_message(FATAL_MESSAGE).into());
            }
        }
        report
    }
}

impl Report {
    /// Sets the conditions on a composite resource. A legacy one also lists those that its claim gets.
    pub fn mark(&self, xr: &mut Value, layout: Layout, now: Timestamp) {
        for TargetedCondition { condition, target } in &self.conditions {
            let condition = condition.clone();
            // Functions do not know generations; conditions of the control plane itself are about one.
            if conditions::is_system(&condition.kind) || condition.reason == reason::FATAL_ERROR {
                conditions::mark_observed(xr, [condition], now);
            } else {
                let kind = condition.kind.clone();
                conditions::mark(xr, [condition], now);
                if layout == Layout::Legacy && *target == Target::CompositeAndClaim {
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
