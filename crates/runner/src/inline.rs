//! Inline functions of steps. The [`Router`](crate::Router) is given an [`InlineRunner`] that runs them.

use tonic::Status;
use transom_function::{RunFunctionRequest, RunFunctionResponse, async_trait};
use transom_xapi::InlineFunction;

/// One call of an inline function.
#[derive(Clone, Copy, Debug)]
pub struct InlineCall<'a> {
    /// The name of the step.
    pub step: &'a str,
    /// The function.
    pub function: &'a InlineFunction,
}

/// Runs inline functions.
#[async_trait]
pub trait InlineRunner: Send + Sync + 'static {
    /// Calls a function once. The call ends within the function's own timeout, in a response or in a status whose message
    /// says what is wrong and contains no secrets.
    async fn call(
        &self,
        call: InlineCall<'_>,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, Status>;
}
