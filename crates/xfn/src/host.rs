//! What this crate needs of the process that it runs in: images, Secrets and directories.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use transom_container::Workspace;
use transom_function::async_trait;
use transom_packages::Credentials;
use transom_xapi::package::PullPolicy;

/// An image that is to be run.
#[derive(Clone, Debug)]
pub struct WantedImage {
    /// Its reference.
    pub reference: String,
    /// When it is pulled.
    pub policy: PullPolicy,
    /// What it is pulled with.
    pub credentials: Vec<Credentials>,
}

/// An image that is unpacked on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Its root file system.
    pub root: PathBuf,
    /// Its program with all arguments.
    pub args: Vec<String>,
    /// Variables, as `NAME=VALUE`.
    pub env: Vec<String>,
    /// The directory that the program starts in; `/` if it is empty.
    pub cwd: String,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What a function needs and the process that it runs in does not have. Texts and sources contain no secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The image cannot be pulled or unpacked.
    #[error(transparent)]
    Image(BoxError),
    /// The credentials for an image cannot be found.
    #[error(transparent)]
    Credentials(BoxError),
    /// A Secret cannot be read.
    #[error(transparent)]
    Secret(BoxError),
    /// The directories of containers cannot be made.
    #[error(transparent)]
    Workspace(BoxError),
}

/// The process that functions run in.
#[async_trait]
pub trait Host: Send + Sync + 'static {
    /// Pulls and unpacks an image, unless it is here.
    async fn image(&self, wanted: &WantedImage) -> Result<Image, HostError>;

    /// What an image is pulled with, given the names of Secrets.
    async fn credentials(&self, reference: &str, secrets: &[String]) -> Result<Vec<Credentials>, HostError>;

    /// The data of a Secret.
    async fn secret(&self, name: &str) -> Result<BTreeMap<String, Vec<u8>>, HostError>;

    /// Waits until nothing of any container is left. To be called when no function is called any more.
    async fn idle(&self);

    /// The directories of containers.
    fn workspace(&self) -> Result<Arc<Workspace>, HostError>;
}
