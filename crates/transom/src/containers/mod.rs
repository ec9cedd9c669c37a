//! Functions that run from their packages, in containers on this machine: for `transom up` and for `transom render`.
//!
//! | module | what it holds |
//! |---|---|
//! | `args` | the flags |
//! | `credentials` | what images are pulled with: Secrets of a plane, or Docker's configuration of a user |
//! | `images` | from a reference to an unpacked image, once by digest |
//! | `revision` | one revision: its image is prepared, its container supervised, its calls counted |
//! | `runtime` | the [`FunctionRuntime`] of all revisions |
//! | `logs` | `transom function logs` |
//!
//! What is built in or has an endpoint is left to [`LocalRuntime`]. Containers themselves are `transom_container`'s.

mod args;
mod credentials;
#[cfg(target_os = "linux")]
mod images;
pub(crate) mod logs;
#[cfg(target_os = "linux")]
mod revision;
#[cfg(target_os = "linux")]
mod runtime;

pub(crate) use args::ContainerArgs;
pub(crate) use credentials::{DockerCredentials, PullCredentials, SecretCredentials};

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use transom_oci::ImageSource;
use transom_runner::{FunctionRuntime, LocalRuntime, Options};

/// Where images come from, and where containers keep their files.
pub(crate) struct Place {
    /// For images, containers and logs.
    pub(crate) dir: PathBuf,
    pub(crate) images: Arc<dyn ImageSource>,
    pub(crate) credentials: Arc<dyn PullCredentials>,
    /// How long a function may take to end when it is asked to.
    pub(crate) grace: Duration,
}

/// What runs functions: in this process, at endpoints, and from their packages if that can be done here.
pub(crate) struct FunctionRuntimes {
    runtime: Arc<dyn FunctionRuntime>,
    #[cfg(target_os = "linux")]
    packages: Option<Arc<runtime::PackageRuntime>>,
}

impl FunctionRuntimes {
    #[cfg(target_os = "linux")]
    pub(crate) fn new(args: &ContainerArgs, place: Place, local: LocalRuntime, options: Options) -> Self {
        match args.engine() {
            Ok(engine) => {
                tracing::debug!(%engine, "runs functions from their packages");
                let packages = Arc::new(runtime::PackageRuntime::new(args, engine, place, local, options));
                Self { runtime: packages.clone(), packages: Some(packages) }
            }
            Err(problem) => Self::local(local.without_packages(problem.to_string())),
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn new(args: &ContainerArgs, _: Place, local: LocalRuntime, _: Options) -> Self {
        let problem = args.engine().err().map(|problem| problem.to_string()).unwrap_or_default();
        Self::local(local.without_packages(problem))
    }

    /// What needs no container alone.
    pub(crate) fn local(local: LocalRuntime) -> Self {
        Self {
            runtime: Arc::new(local),
            #[cfg(target_os = "linux")]
            packages: None,
        }
    }

    pub(crate) fn runtime(&self) -> Arc<dyn FunctionRuntime> {
        self.runtime.clone()
    }

    /// Stops all containers, and waits until nothing of them is left.
    pub(crate) async fn stop(&self) {
        #[cfg(target_os = "linux")]
        if let Some(packages) = &self.packages {
            packages.stop().await;
        }
    }
}
