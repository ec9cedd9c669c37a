//! What inline functions need of this process: images, Secrets and directories.

use crate::HostResources;
use crate::images::Images;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use transom_container::{Engine, EngineError, Workspace};
use transom_object::error_chain::chain;
use transom_packages::{Credentials, Reference};
use transom_xfn::{Enforcement, Host, HostError, Image, Programs, WantedImage};

/// What runs the programs of images, once for every call.
///
/// Without an engine they fail with its problem. Namespaces alone may take the place of an OCI runtime that does not work, if
/// `may_fall_back`.
pub fn programs(
    place: HostResources,
    engine: Result<Engine, EngineError>,
    may_fall_back: bool,
    enforcement: Enforcement,
) -> Arc<Programs> {
    // At every start, also at one after which no program is run.
    if let Err(error) = Workspace::clean(&place.dir) {
        tracing::warn!(error = chain(&error), "what a process that ended has left cannot be removed");
    }
    let host = PlaceHost { place, images: Images::new(), workspace: OnceLock::new() };
    Arc::new(Programs::new(Arc::new(host), engine, may_fall_back, enforcement))
}

struct PlaceHost {
    place: HostResources,
    images: Images,
    /// None when this process stops before it has run a program: from then on it runs none.
    workspace: OnceLock<Option<Arc<Workspace>>>,
}

#[async_trait]
impl Host for PlaceHost {
    async fn image(&self, wanted: &WantedImage) -> Result<Image, HostError> {
        let workspace = self.workspace()?;
        let image = self.images.of_function(&workspace, &self.place, wanted).await;
        let image = image.map_err(|problem| HostError::Image(problem.into()))?;
        let config = image.config;
        Ok(Image {
            root: image.root,
            args: config.entrypoint.into_iter().chain(config.cmd).collect(),
            env: config.env,
            cwd: config.working_dir,
        })
    }

    async fn credentials(&self, reference: &str, secrets: &[String]) -> Result<Vec<Credentials>, HostError> {
        let reference = Reference::parse(reference).map_err(|e| HostError::Credentials(e.into()))?;
        let found = self.place.credentials.find(&reference, secrets).await;
        found.map_err(|e| HostError::Credentials(e.into()))
    }

    async fn secret(&self, name: &str) -> Result<BTreeMap<String, Vec<u8>>, HostError> {
        self.place.credentials.secret(name).await.map_err(|e| HostError::Secret(e.into()))
    }

    async fn idle(&self) {
        if let Some(workspace) = self.workspace.get_or_init(|| None) {
            workspace.idle().await;
        }
    }

    fn workspace(&self) -> Result<Arc<Workspace>, HostError> {
        let stopping = || HostError::Workspace("this process is stopping".into());
        if let Some(workspace) = self.workspace.get() {
            return workspace.clone().ok_or_else(stopping);
        }
        let opened = Workspace::open(&self.place.dir).map_err(|error| HostError::Workspace(error.into()))?;
        // Of two that are made at once, one is dropped.
        self.workspace.get_or_init(|| Some(Arc::new(opened))).clone().ok_or_else(stopping)
    }
}
