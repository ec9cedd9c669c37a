//! Running functions: something that can be called, wherever it runs.

use crate::runtime::Problem;
use std::sync::Arc;
use tonic::{Code, Status};
use transom_function::{Function, RunFunctionRequest, RunFunctionResponse, answer, async_trait};

/// A function that can be called: in this process, over gRPC, in a container.
///
/// A call ends in a response or in a gRPC status, whatever the function does; limits on its time are the caller's.
#[async_trait]
pub trait Instance: Send + Sync + 'static {
    /// Calls the function once.
    async fn call(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status>;

    /// Checks, without calling the function, that calls would reach it.
    async fn probe(&self) -> Result<(), Problem>;

    /// Where calls go, for metrics: an address, or `in-process`.
    fn target(&self) -> &str;

    /// Where the function runs, for messages: `in this process`, `at localhost:9443`.
    fn location(&self) -> String;

    /// Records how a call ended. Returns whether the function became reachable or unreachable by it.
    fn record(&self, _code: Code) -> bool {
        false
    }
}

/// A function in this process.
pub struct InProcess(pub Arc<dyn Function>);

#[async_trait]
impl Instance for InProcess {
    async fn call(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        answer(&*self.0, request).await
    }

    async fn probe(&self) -> Result<(), Problem> {
        Ok(())
    }

    fn target(&self) -> &str {
        "in-process"
    }

    fn location(&self) -> String {
        "in this process".to_owned()
    }
}
