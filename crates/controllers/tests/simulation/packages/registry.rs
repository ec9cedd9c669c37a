//! The registry of the simulation.

use super::catalogue::{self, IMAGES, Image};
use crate::simulation::functions;
use crate::simulation::wire::{RegistryMood, Wire};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use transom_function::async_trait;
use transom_packages::{Credentials, Digest, Fetched, Reference, Registry, RegistryError, RegistryErrorKind};

/// Longer than any client waits.
const FOREVER: Duration = Duration::from_secs(3600);

/// All images of the catalogue, and a tag that moves. What was there once stays at its digest.
pub(crate) struct SimulatedRegistry {
    wire: Arc<Wire>,
    /// Where the tag is that moves.
    edge: AtomicU64,
}

impl SimulatedRegistry {
    pub(crate) fn new(wire: Arc<Wire>) -> Self {
        Self { wire, edge: AtomicU64::new(0) }
    }

    pub(crate) fn move_edge(&self, to: u64) {
        self.edge.store(to, Ordering::SeqCst);
    }

    async fn ask(&self, what: &str) -> Result<(), RegistryError> {
        let (takes, mood) = self.wire.ask();
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
        match mood {
            RegistryMood::Well => Ok(()),
            RegistryMood::Hanging => {
                tokio::time::sleep(FOREVER).await;
                Ok(())
            }
            RegistryMood::Unavailable => {
                Err(error(RegistryErrorKind::Unavailable, format!("{what}: unavailable, says chance")))
            }
            RegistryMood::Forgetful => {
                Err(error(RegistryErrorKind::NotFound, format!("{what}: not found, says chance")))
            }
        }
    }

    /// Digest and content of an image: of a Configuration, or of the simulated function.
    fn find(&self, reference: &Reference) -> Option<(Digest, String)> {
        functions::image(reference)
            .or_else(|| self.image(reference).map(|image| (image.digest(), image.stream())))
    }

    fn image(&self, reference: &Reference) -> Option<Image> {
        let name = reference.source().strip_prefix(catalogue::REGISTRY)?.strip_prefix('/')?.to_owned();
        match &reference.digest {
            Some(digest) => IMAGES.into_iter().find(|image| image.name == name && image.digest() == *digest),
            None => catalogue::at(&name, reference.tag.as_deref()?, self.edge.load(Ordering::SeqCst)),
        }
    }
}

fn error(kind: RegistryErrorKind, message: String) -> RegistryError {
    RegistryError { kind, message, retry_after: None }
}

fn not_found(reference: &Reference) -> RegistryError {
    error(RegistryErrorKind::NotFound, format!("{reference}: not found"))
}

#[async_trait]
impl Registry for SimulatedRegistry {
    async fn resolve(&self, reference: &Reference, _: &[Credentials]) -> Result<Digest, RegistryError> {
        self.ask(&reference.to_string()).await?;
        self.find(reference).map(|(digest, _)| digest).ok_or_else(|| not_found(reference))
    }

    async fn fetch(&self, reference: &Reference, _: &[Credentials]) -> Result<Fetched, RegistryError> {
        self.ask(&reference.to_string()).await?;
        let (digest, content) = self.find(reference).ok_or_else(|| not_found(reference))?;
        Ok(Fetched { digest, content: content.into_bytes().into() })
    }

    async fn tags(&self, reference: &Reference, _: &[Credentials]) -> Result<Vec<String>, RegistryError> {
        self.ask(&reference.source()).await?;
        let source = reference.source();
        let name = source.rsplit('/').next().unwrap_or_default();
        let tags = catalogue::tags(name);
        if tags.is_empty() {
            Err(not_found(reference))
        } else {
            Ok(tags.into_iter().map(str::to_owned).collect())
        }
    }
}
