//! Starting and stopping the programs of Providers: controllers that are clients of the control plane. They are not called.

use crate::revision::PackageImage;
use crate::runtime::Problem;
use std::sync::Arc;
use std::time::Duration;
use transom_function::async_trait;
use transom_xapi::runtime_config::DeploymentRuntimeConfigSpec;

/// A revision of a Provider, and everything a runtime needs to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderSpec {
    /// The name of the Provider.
    pub provider: String,
    /// The name of the ProviderRevision.
    pub revision: String,
    /// The uid of the ProviderRevision.
    pub uid: String,
    /// The image of its package.
    pub image: PackageImage,
    /// How it is to run.
    pub config: Arc<DeploymentRuntimeConfigSpec>,
}

/// The state of a revision of a Provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderState {
    /// It does not run yet, or not at the moment, and may without any change to it.
    Pending(Problem),
    /// It runs. With what users should know about it.
    Running(String),
    /// It cannot be run until it, or this program, is changed.
    Failed(Problem),
}

/// Called with the name of a ProviderRevision.
pub type ProviderChanged = Arc<dyn Fn(&str) + Send + Sync>;

/// Runs revisions of Providers.
#[async_trait]
pub trait ProviderRuntime: Send + Sync + 'static {
    /// Makes the certificates of the revision's webhooks, before its objects are written. Returns the authority that they
    /// are verified by, in PEM; none where Providers do not run.
    async fn certify(&self, provider: &ProviderSpec) -> Result<Option<String>, Problem>;

    /// Runs a revision, if it does not run yet, and returns its state. It is called again whenever the state may have changed.
    async fn ensure(&self, provider: &ProviderSpec) -> ProviderState;

    /// Stops a revision. Unknown ones are ignored.
    async fn release(&self, revision: &str);

    /// What users should know about how a revision ended that was released. A change of it is reported as one of its state.
    fn remark(&self, _revision: &str) -> Option<String> {
        None
    }

    /// Has `changed` called with a revision whose state has changed by itself.
    fn on_change(&self, _changed: ProviderChanged) {}

    /// After which time a revision that was ensured has to be ensured again although nothing of it changes, such as to replace
    /// a certificate before it expires.
    fn due_in(&self, _revision: &str) -> Option<Duration> {
        None
    }
}

/// Runs no Providers, and says why.
pub struct WithoutProviders(pub Problem);

#[async_trait]
impl ProviderRuntime for WithoutProviders {
    async fn certify(&self, _: &ProviderSpec) -> Result<Option<String>, Problem> {
        Ok(None)
    }

    async fn ensure(&self, _: &ProviderSpec) -> ProviderState {
        ProviderState::Failed(self.0.clone())
    }

    async fn release(&self, _: &str) {}
}
