//! What runs functions on the machine of the command, for a plan. The binary provides it: this crate contains no containers.

use async_trait::async_trait;
use std::sync::Arc;
use transom_console::Failure;
use transom_runner::{Assembly, FunctionRuntime, InlineRunner};

/// The flags of how packages and inline functions are run on this machine.
pub trait FunctionHostArgs: clap::Args {
    /// What runs them. What is built in or has an endpoint is left to the runtime of `assembly`.
    fn host(&self, assembly: Arc<Assembly>) -> Result<Box<dyn FunctionHost>, Failure>;
}

/// Runs functions until a plan is made.
#[async_trait]
pub trait FunctionHost: Send + Sync {
    /// What runs the revisions of Functions.
    fn runtime(&self) -> Arc<dyn FunctionRuntime>;

    /// What runs inline functions, if this machine can.
    fn inline(&self) -> Option<Arc<dyn InlineRunner>>;

    /// Stops all that was started, and waits until nothing of it is left.
    async fn stop(&self);
}
