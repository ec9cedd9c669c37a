//! Running functions: something that can be called, wherever it runs.

use crate::runtime::Problem;
use std::sync::Arc;
use tonic::{Code, Status};
use transom_function::{Function, RunFunctionRequest, RunFunctionResponse, answer, async_trait};

/// A function that can be called: in this process, over gRPC, in a container.
///
/// Every call ends in a response or in a gRPC status; the caller limits its time.
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

    /// What users should know about the function, as the message of a condition: how it runs, and what it equals. Empty
    /// when there is nothing to say.
    fn note(&self) -> String {
        String::new()
    }

    /// Records how a call ended. Returns whether the function became reachable or unreachable by it.
    fn record(&self, _code: Code) -> bool {
        false
    }
}

/// A function in this process.
pub struct InProcess {
    function: Arc<dyn Function>,
    equals: Option<String>,
}

impl InProcess {
    /// Calls a function in this process.
    pub fn new(function: Arc<dyn Function>) -> Self {
        Self { function, equals: None }
    }

    /// Names the function and the version that the function equals.
    #[must_use]
    pub fn equal_to(mut self, original: Option<String>) -> Self {
        self.equals = original;
        self
    }
}

#[async_trait]
impl Instance for InProcess {
    async fn call(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        answer(&*self.function, request).await
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

    fn note(&self) -> String {
        match &self.equals {
            Some(original) => format!("runs in this process; equals {original}"),
            None => "runs in this process".to_owned(),
        }
    }
}
