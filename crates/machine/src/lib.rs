//! Runs packages on this machine, in containers: functions and providers, as `transom_deploy` does on a cluster.
//!
//! | module | what it holds |
//! |---|---|
//! | `credentials` | what images are pulled with: Secrets of a plane, or Docker's configuration of a user |
//! | `images` | from a reference to an unpacked image, once by digest |
//! | `inline` | [`programs`]: what inline functions need of this process |
//! | `program` | one program: its image is prepared, its container supervised |
//! | `config` | what a DeploymentRuntimeConfig changes of it; pure |
//! | `revision` | one revision of a function: its program, whose calls are counted |
//! | `runtime` | [`PackageRuntime`]: the [`FunctionRuntime`](transom_runner::FunctionRuntime) of all revisions |
//! | `providers` | [`ProviderContainers`]: the [`ProviderRuntime`](transom_runner::ProviderRuntime) |
//! | `ends` | what is remarkable about the end of programs that were stopped |
//! | `logs` | [`Printed`]: the files that their output is in |
//!
//! What is built in or has an endpoint is left to [`LocalRuntime`](transom_runner::LocalRuntime). Containers themselves are
//! `transom_container`'s, and need Linux. This crate reads no flags: it is given an engine, limits and a [`HostResources`].
//! It must not know controllers: they ask for revisions through the traits of `transom_runner`.

#![warn(missing_docs)]

#[cfg(target_os = "linux")]
mod config;
mod credentials;
#[cfg(target_os = "linux")]
mod ends;
#[cfg(target_os = "linux")]
mod images;
#[cfg(target_os = "linux")]
mod inline;
mod logs;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod providers;
#[cfg(target_os = "linux")]
mod revision;
#[cfg(target_os = "linux")]
mod runtime;

pub use credentials::{DockerCredentials, PullCredentials, PullCredentialsError, SecretCredentials};
#[cfg(target_os = "linux")]
pub use inline::programs;
pub use logs::Printed;
#[cfg(target_os = "linux")]
pub use providers::{PlaneAccess, Privileged, ProviderContainers};
#[cfg(target_os = "linux")]
pub use runtime::{ContainerOptions, PackageRuntime};

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use transom_oci::ImageSource;

/// Where images come from, and where containers keep their files.
#[derive(Clone)]
pub struct HostResources {
    /// For images, containers and logs.
    pub dir: PathBuf,
    /// Where images are pulled from.
    pub images: Arc<dyn ImageSource>,
    /// What they are pulled with.
    pub credentials: Arc<dyn PullCredentials>,
    /// How long a function may take to end when it is asked to.
    pub grace: Duration,
}
