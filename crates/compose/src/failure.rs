//! Why there is no decision.

use crate::condition::{Event, TargetedCondition};
use crate::inputs::Requirements;
use crate::lookup::Lookup;
use crate::observe::ObserveError;
use crate::runner::RunError;
use crate::world::WorldError;
use serde_json::Value;
use std::collections::BTreeSet;
use transom_function::{State, Struct};
use transom_xapi::constants::label;

/// A pipeline that ended without a decision. Nothing is changed, except conditions and events.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct Failure {
    /// What went wrong.
    #[source]
    pub cause: Cause,
    /// Events of the results up to the failure.
    pub events: Vec<Event>,
    /// Conditions up to the failure, those of the failing response included.
    pub conditions: Vec<TargetedCondition>,
    /// What was wanted when it failed.
    pub desired: Option<State>,
    /// The context when it failed.
    pub context: Option<Struct>,
    /// What the steps required so far.
    pub requirements: Requirements,
    /// See [`Decision::in_vain`](crate::Decision::in_vain).
    pub in_vain: BTreeSet<Lookup>,
}

impl Failure {
    /// The step that failed, if one did.
    pub fn step(&self) -> Option<&str> {
        match &self.cause {
            Cause::Input { step, .. }
            | Cause::Credentials { step, .. }
            | Cause::RequiredResources { step, .. }
            | Cause::RequiredSchema { step, .. }
            | Cause::Requirement { step, .. }
            | Cause::NotAllowed { step, .. }
            | Cause::ExtraResourcesOff { step, .. }
            | Cause::BadPattern { step, .. }
            | Cause::InputRef { step, .. }
            | Cause::Unsettled { step, .. }
            | Cause::Run { step, .. }
            | Cause::ResourceName { step, .. }
            | Cause::Fatal { step, .. } => Some(step),
            _ => None,
        }
    }

    /// Whether a function returned a fatal result, rather than anything else going wrong.
    pub fn is_fatal_result(&self) -> bool {
        matches!(self.cause, Cause::Fatal { .. })
    }
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Self {
        Self {
            cause,
            events: Vec::new(),
            conditions: Vec::new(),
            desired: None,
            context: None,
            requirements: Requirements::new(),
            in_vain: BTreeSet::new(),
        }
    }
}

/// What went wrong, with Crossplane's wording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant says what it is")]
pub enum Cause {
    #[error("cannot unmarshal input for Composition pipeline step {step:?}: {why}")]
    Input { step: String, why: String },
    #[error("cannot get input of Composition pipeline step {step:?} from {object}: {why}")]
    InputRef { step: String, object: String, why: WorldError },
    #[error("cannot get Composition pipeline step {step:?} credential {credential:?} from Secret: {why}")]
    Credentials { step: String, credential: String, why: WorldError },
    #[error("cannot fetch bootstrap required resources for requirement {requirement:?}: {why}")]
    RequiredResources { step: String, requirement: String, why: WorldError },
    #[error("cannot fetch bootstrap required schema for requirement {requirement:?}: {why}")]
    RequiredSchema { step: String, requirement: String, why: WorldError },
    #[error("cannot run Composition pipeline step {step:?}: fetching {what} for {requirement}: {why}")]
    Requirement { step: String, what: &'static str, requirement: String, why: WorldError },
    #[error(
        "cannot run Composition pipeline step {step:?}: requirements didn't stabilize after the maximum number of iterations ({limit})"
    )]
    Unsettled { step: String, limit: usize },
    #[error(
        "cannot run Composition pipeline step {step:?}: its allowedExtraResources do not allow what {requirement} requires: {selector}"
    )]
    NotAllowed { step: String, requirement: String, selector: String },
    #[error(
        "cannot run Composition pipeline step {step:?}: its function requires resources as {requirement:?}, and extra resources are turned off: only the Composition can give it any, in the step's requirements"
    )]
    ExtraResourcesOff { step: String, requirement: String },
    #[error(
        "cannot run Composition pipeline step {step:?}: {field} is malformed: {pattern:?} is not a regular expression: {why}"
    )]
    BadPattern { step: String, field: String, pattern: String, why: String },
    #[error("cannot run Composition pipeline step {step:?}: {why}")]
    Run { step: String, why: RunError },
    #[error("pipeline step {step:?} returned a fatal result: {message}")]
    Fatal { step: String, message: String },

    #[error(
        "cannot find top-level composite resource name label {:?} in composite resource metadata",
        label::COMPOSITE
    )]
    NoNamePrefix,
    #[error("cannot unmarshal desired composed resource {name:?} from RunFunctionResponse: {why}")]
    NotAResource { name: String, why: &'static str },
    #[error("cannot check if composed resource {name:?} is namespaced ({}): {why}", named(kind, object))]
    Mapping { name: String, kind: String, object: String, why: WorldError },
    #[error(
        "cannot apply cluster scoped composed resource {name:?} ({}) for a namespaced composite resource.",
        named(kind, object)
    )]
    ClusterScoped { name: String, kind: String, object: String },
    #[error(
        "cannot apply composed resource {name:?}: {kind} is namespaced: set metadata.namespace in the template of resource {name:?}"
    )]
    NoNamespace { name: String, kind: String },
    #[error("pipeline step {step:?} (function {function:?}) returned a composed resource {why}")]
    ResourceName { step: String, function: String, why: String },
    #[error("composed resources {first:?} and {second:?} have the same name: both are {kind} {object:?}")]
    SameObject { first: String, second: String, kind: String, object: String },
    #[error("cannot render metadata for composed resource {name:?}: {why}")]
    Metadata { name: String, why: String, composed: Box<Value> },
    #[error(
        "cannot apply composed resource {name:?} because it has an invalid name {object:?}. Must be a valid RFC 1123 subdomain name."
    )]
    InvalidName { name: String, object: String },
    #[error(
        "cannot garbage collect composed resources that are no longer desired: refusing to delete composed resource {name:?} that is controlled by {kind} {owner:?}"
    )]
    Controlled { name: String, kind: String, owner: String },
    #[error(
        "spec.publishConnectionDetailsWithStoreConfigRef of the Composition names {0:?}, but external secret stores are not supported: use writeConnectionSecretsToNamespace"
    )]
    Store(String),
    #[error("{0}")]
    Observe(ObserveError),
    #[error("cannot fetch composite resource connection details: {0}")]
    Connection(WorldError),
    #[error("{0}")]
    Resources(String),
}

/// An object whose name may not be known yet.
fn named(kind: &str, object: &str) -> String {
    if object.is_empty() { format!("a {kind}") } else { format!("a {kind} named {object}") }
}
