//! How the engine calls functions.

use std::fmt;
use transom_function::{RunFunctionRequest, RunFunctionResponse, async_trait};

/// Calls functions by name: in this process, over the network, in a container.
#[async_trait]
pub trait FunctionRunner: Send + Sync {
    /// Calls the function of a step once.
    async fn run(
        &self,
        step: StepRef<'_>,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError>;
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
    /// The Function it calls.
    pub function: &'a str,
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
