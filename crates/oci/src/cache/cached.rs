//! A registry behind the cache on disk. Concurrent fetches of one digest are one fetch, and the pull policy decides whether the
//! registry is asked.

use super::Cache;
use crate::failure::not_found;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use transom_packages::{Credentials, Digest, Fetched, Reference, Registry, RegistryError, RegistryErrorKind};

/// When a package is fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PullPolicy {
    /// Unless it is in the cache.
    #[default]
    IfNotPresent,
    /// Always: the cache is not read.
    Always,
    /// Never: only the cache is read.
    Never,
}

/// A registry behind the cache. Concurrent fetches of one digest are one fetch.
pub struct Cached<R: ?Sized> {
    cache: Arc<Cache>,
    flights: Mutex<BTreeMap<Digest, Flight>>,
    registry: Arc<R>,
}

/// A fetch under way: who holds the lock fetches; who waits for it finds the result there. If the holder is dropped,
/// the next one fetches.
type Flight = Arc<tokio::sync::Mutex<Option<Result<Fetched, RegistryError>>>>;

impl<R: Registry + ?Sized> Cached<R> {
    /// Puts a registry behind a cache.
    pub fn new(registry: Arc<R>, cache: Arc<Cache>) -> Self {
        Self { cache, flights: Mutex::default(), registry }
    }

    /// The cache.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The package at a reference. A tag is resolved first, and what was resolved is what is fetched.
    pub async fn fetch_with(
        &self,
        reference: &Reference,
        policy: PullPolicy,
        with: &[Credentials],
    ) -> Result<Fetched, RegistryError> {
        let digest = match &reference.digest {
            Some(digest) => digest.clone(),
            None => self.registry.resolve(reference, with).await?,
        };
        if policy != PullPolicy::Always
            && let Some(content) = self.cache.get(&digest).await?
        {
            return Ok(Fetched { digest, content });
        }
        if policy == PullPolicy::Never {
            let problem = format!(
                "{digest} is not in the package cache, and packagePullPolicy is Never; use IfNotPresent"
            );
            return Err(not_found(reference, problem));
        }
        self.fetch_once(&reference.at(digest.clone()), &digest, with).await
    }

    async fn fetch_once(
        &self,
        pinned: &Reference,
        digest: &Digest,
        with: &[Credentials],
    ) -> Result<Fetched, RegistryError> {
        let flight = self.join(digest);
        let mut result = flight.lock().await;
        // Other credentials may be accepted where those of the first were not.
        let shared = result
            .as_ref()
            .filter(|result| !matches!(result, Err(error) if error.kind == RegistryErrorKind::Unauthorized));
        if let Some(result) = shared {
            return result.clone();
        }
        let fetched = self.fetch_and_keep(pinned, digest, with).await;
        *result = Some(fetched.clone());
        self.leave(digest, &flight);
        fetched
    }

    async fn fetch_and_keep(
        &self,
        pinned: &Reference,
        digest: &Digest,
        with: &[Credentials],
    ) -> Result<Fetched, RegistryError> {
        let fetched = self.registry.fetch(pinned, with).await?;
        if fetched.digest != *digest {
            let problem = format!("{} was fetched instead", fetched.digest);
            return Err(crate::failure::invalid(pinned, problem));
        }
        // A package that cannot be kept can still be used.
        if let Err(error) = self.cache.put(digest, fetched.content.clone()).await {
            tracing::warn!(%error, package = %pinned, "a package cannot be cached");
        }
        Ok(fetched)
    }

    fn join(&self, digest: &Digest) -> Flight {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        // A flight that was dropped on its way has no other owner.
        flights.retain(|other, flight| other == digest || Arc::strong_count(flight) > 1);
        Arc::clone(flights.entry(digest.clone()).or_default())
    }

    /// Who comes later fetches again: a result is for those that waited for it.
    fn leave(&self, digest: &Digest, flight: &Flight) {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        if flights.get(digest).is_some_and(|current| Arc::ptr_eq(current, flight)) {
            flights.remove(digest);
        }
    }
}

#[async_trait]
impl<R: Registry + ?Sized> Registry for Cached<R> {
    async fn resolve(&self, reference: &Reference, with: &[Credentials]) -> Result<Digest, RegistryError> {
        self.registry.resolve(reference, with).await
    }

    async fn fetch(&self, reference: &Reference, with: &[Credentials]) -> Result<Fetched, RegistryError> {
        self.fetch_with(reference, PullPolicy::IfNotPresent, with).await
    }

    async fn at_hand(&self, reference: &Reference) -> Result<Option<Fetched>, RegistryError> {
        let Some(digest) = &reference.digest else { return Ok(None) };
        match self.cache.get(digest).await? {
            Some(content) => Ok(Some(Fetched { digest: digest.clone(), content })),
            None => self.registry.at_hand(reference).await,
        }
    }

    async fn tags(&self, reference: &Reference, with: &[Credentials]) -> Result<Vec<String>, RegistryError> {
        self.registry.tags(reference, with).await
    }
}
