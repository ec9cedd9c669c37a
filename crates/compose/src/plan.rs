//! What is decided: writes in the order in which they must be made, each with its reason.
//!
//! Crash safety depends on the order of the fields of [`Plan`]: what is no longer wanted is deleted while it is still
//! referenced, references are persisted before what they refer to is created, and the status comes last. Whoever
//! executes a plan decides nothing, except that it stops at the first error.

use crate::condition::{Event, TargetedCondition};
use crate::inputs::Requirements;
use crate::lookup::Lookup;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;
use transom_function::Struct;

/// The writes that make the world as the pipeline wants it.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// First: observed resources that are no longer wanted.
    pub delete: Vec<Deletion>,
    /// Second: the references, applied to the composite resource.
    pub references: References,
    /// Third: composed resources, to be applied by [`field_owner`](Self::field_owner). Ordered by name.
    pub apply: Vec<Application>,
    /// The owner of the fields of composed resources.
    pub field_owner: String,
    /// Whether fields that the kind of a composed resource does not declare are left out, instead of refused: so it was
    /// with the client-side apply of Crossplane v1.
    pub prunes_undeclared: bool,
    /// Fourth: the composite resource with the status that is wanted and the conditions known so far, applied to its
    /// status. The uid in it is a precondition.
    pub status: Value,
    /// The composite resource as the last step wants it. Only its status counts.
    pub composite: Option<Struct>,
    /// Conditions that functions set; [`conclude`](Self::conclude) adds the system's own.
    pub conditions: Vec<TargetedCondition>,
    /// Events, in order.
    pub events: Vec<Event>,
    /// Warnings about what has no effect or cannot be done, which Crossplane does not give.
    pub remarks: Vec<Event>,
    /// The composite resource's readiness, when the pipeline has an opinion.
    pub ready: Option<bool>,
    /// What to publish for a legacy composite resource; always empty for others.
    pub connection_details: BTreeMap<String, Vec<u8>>,
    /// How long the answers hold: the smallest of the pipeline.
    pub ttl: Option<Duration>,
    /// What the steps required, for the next run; see [`Inputs::required_before`](crate::Inputs::required_before).
    pub requirements: Requirements,
    /// What was looked up although the plan does not depend on it: requirements of the last run that a function does
    /// not have any more. Whatever else was read is a reason to compose anew when it changes.
    pub in_vain: BTreeSet<Lookup>,
    /// The context the last step left.
    pub context: Option<Struct>,
}

/// A composed resource to delete: its ownership labels are removed, then it is deleted in the foreground, with its uid
/// as a precondition. Not finding it is success.
#[derive(Clone, Debug, PartialEq)]
pub struct Deletion {
    /// Its name in the composition.
    pub name: String,
    /// As observed, without the labels that say that a composite resource owns it.
    pub object: Value,
    /// Whether it has such labels, which are to be removed first.
    pub labelled: bool,
    pub reason: Reason,
}

/// The references to every composed resource that is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct References {
    /// The composite resource with nothing but its identity and the references: what to apply.
    pub object: Value,
    /// Whether they differ from those the composite resource has.
    pub changed: bool,
}

/// A composed resource to apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    /// Its name in the composition.
    pub name: String,
    /// Exactly what to apply.
    pub object: Value,
    /// Whether the pipeline says it is ready.
    pub ready: bool,
    /// The error that the resource reports of itself, if it exists.
    pub problem: Option<String>,
    /// Who chose the object's name.
    pub named_by: NamedBy,
    pub reason: Reason,
}

/// Who chose an object's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// The function that wants it.
    Function,
    /// The engine, from the composite resource's uid and the composed resource's name.
    Engine,
    /// It exists already, and keeps its name.
    Observed,
}

/// Why a write is in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Wanted, and not there.
    Missing,
    /// Wanted, and there: it is brought to what is wanted, if it differs.
    Wanted,
    /// There, and no step wants it any longer.
    Unwanted,
    /// There, and wanted as an object of another kind.
    Replaced,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "it is wanted and does not exist",
            Self::Wanted => "it is wanted and exists",
            Self::Unwanted => "it exists and is no longer wanted",
            Self::Replaced => "it exists and is wanted as another kind",
        })
    }
}
