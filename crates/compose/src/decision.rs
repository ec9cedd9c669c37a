//! What is decided from a pipeline's desired state: what to delete, what to refer to, what to apply, and what to report.
//!
//! A [`Decision`] is independent of the requests that carry it out and of their order; see [`Plan`](crate::Plan).

use crate::condition::{Event, TargetedCondition};
use crate::inputs::Requirements;
use crate::lookup::Lookup;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use transom_function::Struct;

/// The state of the world that a pipeline wants.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// Observed resources that are no longer wanted.
    pub delete: Vec<Deletion>,
    /// The references of the composite resource.
    pub references: References,
    /// Composed resources, ordered by name. They are shared with the plan that applies them.
    pub apply: Vec<Arc<Application>>,
    /// The composite resource with the status that is wanted and the conditions known so far.
    pub status: Value,
    /// The composite resource as the last step wants it. Only its status counts.
    pub composite: Option<Struct>,
    /// Conditions that functions set; [`conclude`](Self::conclude) adds the system's own.
    pub conditions: Vec<TargetedCondition>,
    /// Events, in order.
    pub events: Vec<Event>,
    /// Warnings, which Crossplane does not give, about fields that have no effect and writes that are not possible.
    pub remarks: Vec<Event>,
    /// The composite resource's readiness, when the pipeline has an opinion.
    pub ready: Option<bool>,
    /// What to publish for a legacy composite resource; always empty for others.
    pub connection_details: BTreeMap<String, Vec<u8>>,
    /// How long the responses are valid: the smallest TTL of the pipeline.
    pub ttl: Option<Duration>,
    /// What the steps required, for the next run; see [`Inputs::required_before`](crate::Inputs::required_before).
    pub requirements: Requirements,
    /// What was looked up although the decision does not depend on it: requirements of the last run that a function
    /// does not have any more. A change of anything else that was read is a reason to compose again.
    pub unused_lookups: BTreeSet<Lookup>,
    /// The context that the last step returned.
    pub context: Option<Struct>,
}

/// A composed resource to delete: its ownership labels are removed, then it is deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct Deletion {
    /// Its name in the composition.
    pub name: String,
    /// As observed, without the labels that mark it as composed.
    pub object: Value,
    /// Whether it has such labels, which are removed first.
    pub labelled: bool,
    /// Why it is deleted.
    pub reason: Reason,
}

/// The references to every composed resource that is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct References {
    /// What to apply: the identity of the composite resource and the references, nothing else.
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
    /// The object as it was observed; `None` if it did not exist.
    pub observed: Option<Arc<Value>>,
    /// The owner of the fields that are applied.
    pub field_owner: String,
    /// The fields that were left out because the kind does not declare them; `None` if such fields are an error. The
    /// client-side apply of Crossplane v1 left them out.
    pub undeclared: Option<Vec<String>>,
    /// Whether the pipeline reports it as ready.
    pub ready: bool,
    /// The error that the resource reports of itself, if it exists.
    pub problem: Option<String>,
    /// The origin of the object's name.
    pub named_by: NamedBy,
    /// Why it is applied.
    pub reason: Reason,
}

/// The origin of an object's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// The function that wants it.
    Function,
    /// The engine, from the composite resource's uid and the composed resource's name.
    Engine,
    /// It exists already, and keeps its name.
    Observed,
}

/// Why something is written.
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
