//! Why a pipeline ended without a decision, and what it left for conditions and events until then. A failure never changes a
//! composed resource.

use crate::condition::{Event, TargetedCondition};
use crate::inputs::Requirements;
use crate::lookup::Lookup;
use crate::observe::ObserveError;
use crate::runner::RunError;
use crate::world::{ForbiddenRead, WorldError};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use transom_function::{NotAnObject, State, Struct};
use transom_object::error_chain::sources;
use transom_xapi::constants::label;

/// A pipeline that ended without a decision. Nothing is changed, except conditions and events. As an error it is its
/// cause.
#[derive(Debug)]
pub struct Failure {
    /// What went wrong.
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
    /// See [`Decision::unused_lookups`](crate::Decision::unused_lookups).
    pub unused_lookups: BTreeSet<Lookup>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.source()
    }
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
            | Cause::Unstable { step, .. }
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

    /// The read that was refused because the control plane has no right to it, if one was.
    pub(crate) fn forbidden_read(&self) -> Option<&ForbiddenRead> {
        sources(self).find_map(|error| match error.downcast_ref::<WorldError>()? {
            WorldError::Forbidden(read) => Some(&**read),
            _ => None,
        })
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
            unused_lookups: BTreeSet::new(),
        }
    }
}

/// What went wrong. Together with its sources, the text is Crossplane's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant says what it is")]
pub enum Cause {
    #[error("cannot unmarshal input for Composition pipeline step {step:?}")]
    Input { step: String, source: NotAnObject },
    #[error("cannot get input of Composition pipeline step {step:?} from {object}")]
    InputRef { step: String, object: String, source: WorldError },
    #[error("cannot get Composition pipeline step {step:?} credential {credential:?} from Secret")]
    Credentials { step: String, credential: String, source: WorldError },
    #[error("cannot fetch bootstrap required resources for requirement {requirement:?}")]
    RequiredResources { step: String, requirement: String, source: WorldError },
    #[error("cannot fetch bootstrap required schema for requirement {requirement:?}")]
    RequiredSchema { step: String, requirement: String, source: WorldError },
    #[error("cannot run Composition pipeline step {step:?}: fetching {what} for {requirement}")]
    Requirement { step: String, what: &'static str, requirement: String, source: WorldError },
    #[error(
        "cannot run Composition pipeline step {step:?}: requirements didn't stabilize after the maximum number of iterations ({limit})"
    )]
    Unstable { step: String, limit: usize },
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
    #[error("cannot run Composition pipeline step {step:?}")]
    Run { step: String, source: RunError },
    #[error("pipeline step {step:?} returned a fatal result: {message}")]
    Fatal { step: String, message: String },

    #[error(
        "cannot find top-level composite resource name label {:?} in composite resource metadata",
        label::COMPOSITE
    )]
    NoNamePrefix,
    #[error("cannot unmarshal desired composed resource {name:?} from RunFunctionResponse: {why}")]
    NotAResource { name: String, why: &'static str },
    #[error("cannot check if composed resource {name:?} is namespaced ({})", named(kind, object))]
    Mapping { name: String, kind: String, object: String, source: WorldError },
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
    #[error(transparent)]
    Observe(#[from] ObserveError),
    #[error("cannot fetch composite resource connection details")]
    Connection(#[source] WorldError),
    #[error(transparent)]
    NotAnObject(#[from] NotAnObject),
    #[error("context deadline exceeded")]
    DeadlineExceeded,
    #[error("no Composition was chosen")]
    NoComposition,
    #[error("{0}")]
    Resources(String),
}

/// An object whose name may not be known yet.
fn named(kind: &str, object: &str) -> String {
    if object.is_empty() { format!("a {kind}") } else { format!("a {kind} named {object}") }
}
