//! What `transom rollout` runs functions with to show a plan: the same as `transom render`.

use crate::containers::ContainerArgs;
use crate::render::runtime::Runtimes;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use transom_console::Failure;
use transom_function::async_trait;
use transom_rollout::{FunctionHost, FunctionHostArgs};
use transom_runner::{Assembly, FunctionRuntime, InlineRunner};

#[derive(Args)]
pub(crate) struct PlanArgs {
    /// Directory for the images of functions that run on this machine for the plan [default: $XDG_CACHE_HOME/transom or
    /// ~/.cache/transom]
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,

    #[command(flatten)]
    containers: ContainerArgs,
}

impl FunctionHostArgs for PlanArgs {
    fn host(&self, assembly: Arc<Assembly>) -> Result<Box<dyn FunctionHost>, Failure> {
        Ok(Box::new(Runtimes::with_packages(&self.containers, self.cache_dir.as_deref(), assembly)?))
    }
}

#[async_trait]
impl FunctionHost for Runtimes {
    fn runtime(&self) -> Arc<dyn FunctionRuntime> {
        self.runtime()
    }

    fn inline(&self) -> Option<Arc<dyn InlineRunner>> {
        self.inline()
    }

    async fn stop(&self) {
        self.stop().await;
    }
}
