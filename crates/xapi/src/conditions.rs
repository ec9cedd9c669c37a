//! Conditions as Crossplane sets them.
//!
//! Unlike the API server's own conditions, a condition that changes in anything but its time replaces the old entry:
//! the transition time moves with reason, message and generation too. One that is equal leaves the old entry, time
//! included, untouched — otherwise controllers would wake themselves.
//!
//! `is_system` lists the types that only the control plane sets on composite resources. A new one belongs there: otherwise
//! functions can see and set it, and it becomes `Unknown` when a pipeline fails.

mod packages;

use crate::composition::{nullable, omit};
use crate::constants::{condition, message, reason};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::Duration;
use transom_object::shorten::shorten;
use transom_object::time::{self, Timestamp};

/// The most bytes of a condition's message. What functions and servers report is unbounded, and a status that is too
/// large cannot be written at all: of a longer message the middle is left out.
pub const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// A condition of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Empty until the condition is set.
    #[serde(deserialize_with = "nullable")]
    pub last_transition_time: String,
    /// A CamelCase reason for the status.
    pub reason: String,
    /// A human-readable explanation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The generation of the object that it is about.
    #[serde(skip_serializing_if = "omit::zero")]
    pub observed_generation: i64,
}

impl Condition {
    /// A condition without a message.
    pub fn new(kind: &str, status: &str, reason: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            ..Self::default()
        }
    }

    /// `StorageMigrated`: all objects are stored in the referenceable version.
    pub fn storage_migrated(version: &str) -> Self {
        let message = format!("all objects are stored in {version}");
        Self::new(condition::STORAGE_MIGRATED, "True", reason::ALL_STORED).with_message(message)
    }

    /// `StorageMigrated`: some objects may still be stored in another version.
    pub fn storage_migrating(version: &str, written: usize, objects: usize) -> Self {
        let message = format!("{written} of {objects} objects are stored in {version}");
        Self::new(condition::STORAGE_MIGRATED, "False", reason::MIGRATING).with_message(message)
    }

    /// `Ready`: it is.
    pub fn available() -> Self {
        Self::new(condition::READY, "True", reason::AVAILABLE)
    }

    /// `Ready`: it is not, and was before.
    pub fn unavailable() -> Self {
        Self::new(condition::READY, "False", reason::UNAVAILABLE)
    }

    /// `Ready`: it is not yet.
    pub fn creating() -> Self {
        Self::new(condition::READY, "False", reason::CREATING)
    }

    /// `Ready`: it is being deleted.
    pub fn deleting() -> Self {
        Self::new(condition::READY, "False", reason::DELETING)
    }

    /// Of a claim whose composite resource is not ready.
    pub fn waiting() -> Self {
        Self::new(condition::READY, "False", reason::WAITING).with_message(message::CLAIM_WAITING)
    }

    /// `Synced`: the last reconcile succeeded.
    pub fn reconcile_success() -> Self {
        Self::new(condition::SYNCED, "True", reason::RECONCILE_SUCCESS)
    }

    /// `Synced`: the last reconcile failed.
    pub fn reconcile_error(error: impl Into<String>) -> Self {
        Self::new(condition::SYNCED, "False", reason::RECONCILE_ERROR).with_message(error)
    }

    /// `Synced`: reconciliation is paused.
    pub fn reconcile_paused() -> Self {
        Self::new(condition::SYNCED, "False", reason::RECONCILE_PAUSED).with_message(message::PAUSED)
    }

    /// `Established` of a definition: composite resources are reconciled.
    pub fn watching_composite() -> Self {
        Self::new(condition::ESTABLISHED, "True", reason::WATCHING_COMPOSITE)
    }

    /// `Established` of a definition: it is being deleted.
    pub fn terminating_composite() -> Self {
        Self::new(condition::ESTABLISHED, "False", reason::TERMINATING_COMPOSITE)
    }

    /// `Offered` of a definition: claims are reconciled.
    pub fn watching_claim() -> Self {
        Self::new(condition::OFFERED, "True", reason::WATCHING_CLAIM)
    }

    /// `Offered` of a definition: it is being deleted.
    pub fn terminating_claim() -> Self {
        Self::new(condition::OFFERED, "False", reason::TERMINATING_CLAIM)
    }

    /// `ValidPipeline` of a revision: its functions can run in it.
    pub fn valid_pipeline() -> Self {
        Self::new(condition::VALID_PIPELINE, "True", reason::VALID_PIPELINE)
    }

    /// `ValidPipeline` of a revision: a function lacks a capability.
    pub fn missing_capabilities(message: impl Into<String>) -> Self {
        Self::new(condition::VALID_PIPELINE, "False", reason::MISSING_CAPABILITIES).with_message(message)
    }

    /// `Responsive`: changes of this object come too often to act on each of them.
    pub fn watch_circuit_open(triggered_by: &str) -> Self {
        Self::new(condition::RESPONSIVE, "False", reason::WATCH_CIRCUIT_OPEN)
            .with_message(format!("Too many watch events from {triggered_by}. Allowing events periodically."))
    }

    /// A function has not answered for a while, but still may.
    pub fn waiting_for_function(step: &str, function: &str, silence: Duration) -> Self {
        let silence = silence.as_secs_f64();
        Self::new(condition::RESPONSIVE, "False", reason::WAITING_FOR_FUNCTION).with_message(format!(
            "Pipeline step {step:?} waits for function {function:?}, which has not answered for {silence} s."
        ))
    }

    /// `Responsive`: changes are acted on at once.
    pub fn watch_circuit_closed() -> Self {
        Self::new(condition::RESPONSIVE, "True", reason::WATCH_CIRCUIT_CLOSED)
    }

    /// The same with a message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// The same, about a generation.
    #[must_use]
    pub fn with_generation(mut self, generation: i64) -> Self {
        self.observed_generation = generation;
        self
    }

    /// Whether its status is `True`.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }

    /// Whether both are equal, apart from their times. A generation counts only if both have one.
    pub fn equals_ignoring_time(&self, other: &Self) -> bool {
        let generations = (self.observed_generation, other.observed_generation);
        (&self.kind, &self.status, &self.reason, &self.message)
            == (&other.kind, &other.status, &other.reason, &other.message)
            && (generations.0 == 0 || generations.1 == 0 || generations.0 == generations.1)
    }
}

/// Whether only Crossplane itself may set conditions of this type: functions cannot.
pub fn is_system(kind: &str) -> bool {
    is_core_system(kind) || kind == condition::RESPONSIVE
}

/// The system types every Crossplane resource has.
pub fn is_core_system(kind: &str) -> bool {
    matches!(kind, condition::READY | condition::SYNCED | condition::HEALTHY | condition::UP_TO_DATE)
}

/// The condition of a type; `Unknown` if it is not set.
pub fn get(conditions: &[Condition], kind: &str) -> Condition {
    conditions.iter().find(|c| c.kind == kind).cloned().unwrap_or_else(|| Condition::new(kind, "Unknown", ""))
}

/// Sets a condition as of `now`, unless it has a time; returns whether anything changed. A message that is too
/// long is shortened.
pub fn set(conditions: &mut Vec<Condition>, mut new: Condition, now: Timestamp) -> bool {
    if new.message.len() > MAX_MESSAGE_BYTES {
        new.message = shorten(&new.message, MAX_MESSAGE_BYTES).into_owned();
    }
    if new.last_transition_time.is_empty() {
        new.last_transition_time = time::format(now);
    }
    let mut found = false;
    let mut changed = false;
    for old in conditions.iter_mut().filter(|c| c.kind == new.kind) {
        found = true;
        if !old.equals_ignoring_time(&new) {
            old.clone_from(&new);
            changed = true;
        }
    }
    if !found {
        conditions.push(new);
        changed = true;
    }
    changed
}

/// The first `n` names, and how many more there are.
pub fn first_and_more(n: usize, names: &[&str]) -> String {
    match names {
        _ if n == 0 => names.len().to_string(),
        _ if names.len() > n => format!("{}, and {} more", names[..n].join(", "), names.len() - n),
        [first @ .., last] if names.len() == n => format!("{}, and {last}", first.join(", ")),
        _ => names.join(", "),
    }
}

/// Whether two lists are equal, apart from order and times.
pub fn same(a: &[Condition], b: &[Condition]) -> bool {
    let sorted = |list: &[Condition]| {
        let mut list = list.to_vec();
        list.sort_by(|a, b| a.kind.cmp(&b.kind));
        list
    };
    a.len() == b.len() && sorted(a).iter().zip(&sorted(b)).all(|(a, b)| a.equals_ignoring_time(b))
}

/// The conditions of a dynamic object. Entries that are not conditions are left out.
pub fn of(object: &Value) -> Vec<Condition> {
    let list = object.get("status").and_then(|s| s.get("conditions")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|c| Condition::deserialize(c).ok()).collect()
}

/// Writes the conditions of a dynamic object; an empty list removes the field. A status that is not an object is
/// left unchanged.
pub fn write(object: &mut Value, conditions: &[Condition]) {
    let Some(object) = object.as_object_mut() else { return };
    let status = object.entry("status").or_insert_with(|| Map::new().into());
    let Some(status) = status.as_object_mut() else { return };
    if conditions.is_empty() {
        status.remove("conditions");
    } else {
        status.insert("conditions".to_owned(), json!(conditions));
    }
}

/// Sets conditions of a dynamic object as of `now`; returns whether anything changed.
pub fn mark(object: &mut Value, new: impl IntoIterator<Item = Condition>, now: Timestamp) -> bool {
    let mut conditions = of(object);
    let mut changed = false;
    for condition in new {
        changed |= set(&mut conditions, condition, now);
    }
    if changed {
        write(object, &conditions);
    }
    changed
}

/// [`mark`], with the object's current generation in every condition.
pub fn mark_observed(object: &mut Value, new: impl IntoIterator<Item = Condition>, now: Timestamp) -> bool {
    let generation = transom_object::meta::generation(object);
    mark(object, new.into_iter().map(|c| c.with_generation(generation)), now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        time::parse(text).unwrap()
    }

    #[test]
    fn an_equal_condition_keeps_its_time_and_a_changed_one_does_not() {
        let (early, late) = (at("2024-01-01T00:00:00Z"), at("2025-01-01T00:00:00Z"));
        let mut list = Vec::new();
        assert!(set(&mut list, Condition::creating(), early));
        assert!(!set(&mut list, Condition::creating(), late));
        assert!(
            !set(&mut list, Condition::creating().with_generation(4), late),
            "a new generation alone is not a change"
        );
        assert_eq!(list[0].last_transition_time, "2024-01-01T00:00:00Z");
        assert!(set(&mut list, Condition::creating().with_message("m"), late));
        assert_eq!(list[0].last_transition_time, "2025-01-01T00:00:00Z");
    }

    #[test]
    fn a_long_message_keeps_its_head_and_its_tail_and_its_time() {
        let (early, late) = (at("2024-01-01T00:00:00Z"), at("2025-01-01T00:00:00Z"));
        let long = || Condition::reconcile_error(format!("first {} last", "x".repeat(2 << 20)));
        let mut list = Vec::new();
        assert!(set(&mut list, long(), early));
        let message = &list[0].message;
        assert!(
            message.len() <= MAX_MESSAGE_BYTES && message.starts_with("first") && message.ends_with("last")
        );
        assert!(!set(&mut list, long(), late), "the same message is the same when it is shortened");
    }

    #[test]
    fn dynamic_objects_are_marked_with_their_generation() {
        let mut object = json!({"metadata": {"generation": 7}, "status": {"conditions": "garbage"}});
        assert!(mark_observed(&mut object, [Condition::available()], at("2024-01-01T00:00:00Z")));
        assert_eq!(
            object["status"]["conditions"],
            json!([{
                "type": "Ready", "status": "True", "reason": "Available",
                "lastTransitionTime": "2024-01-01T00:00:00Z", "observedGeneration": 7,
            }])
        );
        assert!(!mark_observed(&mut object, [Condition::available()], at("2025-01-01T00:00:00Z")));
        assert!(get(&of(&object), "Ready").is_true());
        assert_eq!(get(&of(&object), "Synced").status, "Unknown");
    }
}
