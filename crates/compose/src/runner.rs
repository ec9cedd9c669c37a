//! How the engine calls functions: a trait, so that it must not know whether a function is in this process, in a container or
//! elsewhere.

use std::fmt;
use std::sync::Arc;
use transom_function::{RunFunctionRequest, RunFunctionResponse, async_trait};
use transom_xapi::InlineFunction;
use transom_xapi::function::WantedRevision;

/// Calls functions by name: in this process, over the network, in a container.
#[async_trait]
pub trait FunctionRunner: Send + Sync {
    /// Calls the function of a step once.
    async fn run(&self, step: StepRef<'_>, request: RunFunctionRequest) -> Result<Answer, RunError>;
}

/// The response of a function.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The response.
    pub response: RunFunctionResponse,
    /// The FunctionRevision that was called; `None` for a function that has no revisions.
    pub revision: Option<Arc<str>>,
}

impl From<RunFunctionResponse> for Answer {
    fn from(response: RunFunctionResponse) -> Self {
        Self { response, revision: None }
    }
}

/// Which step of which pipeline calls, for messages, metrics and inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRef<'a> {
    /// The step's name in its Composition.
    pub name: &'a str,
    /// Its index in the pipeline, from zero.
    pub index: usize,
    /// How often the step called before, in this run of the pipeline.
    pub iteration: usize,
    /// The Function it calls, or the image that it pins.
    pub function: &'a str,
    /// Which revision of the function it wants.
    pub revision: WantedRevision<'a>,
    /// The function, if the step describes it itself: there is no Function object then.
    pub inline: Option<&'a InlineFunction>,
}

impl<'a> StepRef<'a> {
    /// A step that wants any revision of a function, for callers that run no pipeline.
    pub fn calling(function: &'a str) -> Self {
        Self { name: "", index: 0, iteration: 0, function, revision: WantedRevision::Newest, inline: None }
    }
}

/// The codes that a call that fails can end with, which gRPC defines. Displayed by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "gRPC documents its codes")]
pub enum GrpcCode {
    Cancelled,
    Unknown,
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    OutOfRange,
    Unimplemented,
    Internal,
    Unavailable,
    DataLoss,
    Unauthenticated,
}

impl RunError {
    /// Whether there was no function to call, which another set of revisions may change.
    pub fn is_about_revisions(&self) -> bool {
        matches!(self, Self::Unknown { .. } | Self::NoRevision { .. })
    }
}

impl fmt::Display for GrpcCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// No function of that name can be called.
    #[error("there is no function {function:?}: {reason}")]
    Unknown {
        /// Its name.
        function: String,
        /// Why.
        reason: String,
    },
    /// The function has no active revision that the step wants.
    #[error("{wanted}: {reason}")]
    NoRevision {
        /// What is not there: the function, and what the step wants of it.
        wanted: String,
        /// Why, and what to do about it.
        reason: String,
    },
    /// The response is the answer to another request.
    #[error(
        "function {function:?} answered another request: the tag of its response is {tag:?}, not that of the request"
    )]
    OtherTag {
        /// Its name.
        function: String,
        /// The tag of the response.
        tag: String,
    },
    /// The call took longer than it may.
    #[error("function {function:?} did not answer within {} s", .after.as_secs_f64())]
    Deadline {
        /// Its name.
        function: String,
        /// How long it was given.
        after: std::time::Duration,
    },
    /// The call failed: no server at the address, a broken connection, a response that is malformed or too large, a
    /// panic of the function.
    #[error("cannot run function {function:?}: {code}: {message}")]
    Failed {
        /// Its name.
        function: String,
        /// The gRPC code of the call.
        code: GrpcCode,
        /// What went wrong.
        message: String,
    },
}
