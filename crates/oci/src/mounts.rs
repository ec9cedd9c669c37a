//! Folders and files mounted in place of registries. A reference below a mounted prefix is read from the folder or file;
//! no request is sent to a registry for it.
//!
//! A mount with a prefix has the references below that prefix, regardless of the registries that its packages are from:
//! with `mirror.example.org` as its prefix, `mirror.example.org/acme/platform:v1` is `acme/platform:v1` of any registry,
//! and `mirror.example.org/xpkg.example.org/acme/platform:v1` is that of `xpkg.example.org`. ImageConfigs that rewrite
//! to the prefix then lead to the mount.

use crate::failure::not_found;
use crate::image::Descriptor;
use crate::layer::LayerLimits;
use crate::layout::LocalRegistry;
use crate::package;
use crate::remote::RemoteRegistry;
use crate::source::{Blob, ImageSource, RawManifest, tagged_referrers};
use async_trait::async_trait;
use std::collections::BTreeSet;
use std::sync::Arc;
use transom_packages::{Credentials, Digest, Fetched, Reference, Registry, RegistryError, RegistryErrorKind};

/// Folders and files mounted in place of registries, and the registries for all other references.
#[derive(Default)]
pub struct Mounts {
    mounts: Vec<Mount>,
    remote: Option<Arc<RemoteRegistry>>,
}

struct Mount {
    /// Without a prefix, all references are read from the mount.
    prefix: Option<String>,
    local: Arc<LocalRegistry>,
    /// The registries that its packages are from.
    registries: BTreeSet<String>,
}

impl Mounts {
    /// Nothing but folders and files.
    pub fn new() -> Self {
        Self::default()
    }

    /// References without a mount are read from registries.
    #[must_use]
    pub fn over(mut self, remote: Arc<RemoteRegistry>) -> Self {
        self.remote = Some(remote);
        self
    }

    /// Mounts a folder or file for the references below a prefix (`REGISTRY` or `REGISTRY/PATH`), or for all.
    pub fn add(&mut self, prefix: Option<&str>, local: Arc<LocalRegistry>) {
        let known = local.packages().into_iter().filter_map(|package| package.reference);
        let registries = known.map(|reference| reference.registry).collect();
        let prefix = prefix.map(|prefix| prefix.trim_end_matches('/').to_owned());
        self.mounts.push(Mount { prefix, local, registries });
    }

    /// The mounts of a reference: those with the longest prefix, else those for all references.
    fn mounts_of(&self, reference: &Reference) -> Vec<&Mount> {
        let source = reference.source();
        let longest = self.mounts.iter().filter_map(|mount| mount.covers(&source)).max();
        self.mounts.iter().filter(|mount| longest.is_some() && mount.covers(&source) == longest).collect()
    }

    /// The registries, if a reference has no mount.
    fn remote_for(&self, reference: &Reference) -> Option<&RemoteRegistry> {
        let is_mounted = !self.mounts_of(reference).is_empty();
        self.remote.as_deref().filter(|_| !is_mounted)
    }
}

impl Mount {
    /// How long the prefix is, if the source is below it.
    fn covers(&self, source: &str) -> Option<usize> {
        let Some(prefix) = &self.prefix else { return Some(0) };
        let rest = source.strip_prefix(prefix.as_str())?;
        (rest.is_empty() || rest.starts_with('/')).then_some(prefix.len())
    }

    /// What a reference may be called here: by its own name, and without the prefix.
    fn names(&self, reference: &Reference) -> Vec<Reference> {
        let mut names = vec![reference.clone()];
        let source = reference.source();
        let rest = self.prefix.as_deref().and_then(|prefix| source.strip_prefix(prefix));
        let Some(rest) = rest.map(|rest| rest.trim_start_matches('/')).filter(|rest| !rest.is_empty()) else {
            return names;
        };
        let known = self.registries.iter().map(|registry| format!("{registry}/{rest}"));
        for source in std::iter::once(rest.to_owned()).chain(known) {
            if let Ok(other) = Reference::parse_source(&source) {
                let (tag, digest) = (reference.tag.clone(), reference.digest.clone());
                names.push(Reference { tag, digest, ..other });
            }
        }
        names
    }
}

fn is_not_found(error: &RegistryError) -> bool {
    error.kind == RegistryErrorKind::NotFound
}

fn nowhere(reference: &Reference) -> RegistryError {
    not_found(
        reference,
        "it is in none of the folders and files given by --packages or --package-source, and registries are not used",
    )
}

#[async_trait]
impl ImageSource for Mounts {
    async fn manifest(
        &self,
        reference: &Reference,
        with: &[Credentials],
    ) -> Result<RawManifest, RegistryError> {
        if let Some(remote) = self.remote_for(reference) {
            return remote.manifest(reference, with).await;
        }
        let mut first = None;
        for mount in self.mounts_of(reference) {
            for name in mount.names(reference) {
                match mount.local.manifest(&name, with).await {
                    Err(error) if is_not_found(&error) => {
                        first.get_or_insert(error);
                    }
                    result => return result,
                }
            }
        }
        Err(first.unwrap_or_else(|| nowhere(reference)))
    }

    async fn blob(
        &self,
        reference: &Reference,
        descriptor: &Descriptor,
        with: &[Credentials],
    ) -> Result<Blob, RegistryError> {
        if let Some(remote) = self.remote_for(reference) {
            return remote.blob(reference, descriptor, with).await;
        }
        let mut first = None;
        for mount in self.mounts_of(reference) {
            match mount.local.blob(reference, descriptor, with).await {
                Err(error) if is_not_found(&error) => {
                    first.get_or_insert(error);
                }
                result => return result,
            }
        }
        Err(first.unwrap_or_else(|| nowhere(reference)))
    }

    async fn referrers(
        &self,
        reference: &Reference,
        digest: &Digest,
        with: &[Credentials],
    ) -> Result<Vec<Descriptor>, RegistryError> {
        match self.remote_for(reference) {
            Some(remote) => remote.referrers(reference, digest, with).await,
            None => tagged_referrers(self, reference, digest, with).await,
        }
    }

    fn is_local(&self, reference: &Reference) -> bool {
        self.remote_for(reference).is_none()
    }
}

#[async_trait]
impl Registry for Mounts {
    async fn resolve(&self, reference: &Reference, with: &[Credentials]) -> Result<Digest, RegistryError> {
        if let Some(remote) = self.remote_for(reference) {
            return remote.resolve(reference, with).await;
        }
        match &reference.digest {
            Some(digest) => Ok(digest.clone()),
            None => Ok(self.manifest(reference, with).await?.digest),
        }
    }

    async fn fetch(&self, reference: &Reference, with: &[Credentials]) -> Result<Fetched, RegistryError> {
        match self.remote_for(reference) {
            Some(remote) => remote.fetch(reference, with).await,
            None => package::fetch(self, reference, with, LayerLimits::default()).await,
        }
    }

    async fn at_hand(&self, reference: &Reference) -> Result<Option<Fetched>, RegistryError> {
        if let Some(remote) = self.remote_for(reference) {
            return remote.at_hand(reference).await;
        }
        match package::fetch(self, reference, &[], LayerLimits::default()).await {
            Ok(fetched) => Ok(Some(fetched)),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// With several places, the tags of all of them.
    async fn tags(&self, reference: &Reference, with: &[Credentials]) -> Result<Vec<String>, RegistryError> {
        if let Some(remote) = self.remote_for(reference) {
            return remote.tags(reference, with).await;
        }
        let (mut tags, mut first) = (BTreeSet::new(), None);
        for mount in self.mounts_of(reference) {
            for name in mount.names(reference) {
                match mount.local.tags(&name, with).await {
                    Ok(found) => tags.extend(found),
                    Err(error) if is_not_found(&error) => {
                        first.get_or_insert(error);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        match tags.is_empty() {
            false => Ok(tags.into_iter().collect()),
            true => Err(first.unwrap_or_else(|| nowhere(reference))),
        }
    }
}
