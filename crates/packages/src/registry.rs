//! What a source of packages can do. Implemented by registries, layouts, directories and bundles, and by tests.

use crate::digest::Digest;
use crate::reference::Reference;
use async_trait::async_trait;
use bytes::Bytes;
use std::fmt;
use std::time::Duration;

/// A source of packages.
#[async_trait]
pub trait Registry: Send + Sync + 'static {
    /// The digest that a reference leads to now. A reference with a digest is not looked up.
    async fn resolve(&self, reference: &Reference, with: &[Credentials]) -> Result<Digest, RegistryError>;

    /// The content of the package at a reference with a digest, verified against that digest.
    async fn fetch(&self, reference: &Reference, with: &[Credentials]) -> Result<Fetched, RegistryError>;

    /// The content of the package at a reference with a digest if it is at hand, verified against that digest. No
    /// request is sent.
    async fn at_hand(&self, _reference: &Reference) -> Result<Option<Fetched>, RegistryError> {
        Ok(None)
    }

    /// All tags of the reference's repository.
    async fn tags(&self, reference: &Reference, with: &[Credentials]) -> Result<Vec<String>, RegistryError>;
}

/// What was fetched.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The digest of the manifest or index that the reference names.
    pub digest: Digest,
    /// The content of `package.yaml`.
    pub content: Content,
}

/// The bytes of `package.yaml`.
pub type Content = Bytes;

/// A user and password, or a token, for one registry.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The registry's host, with its port if it has one.
    pub registry: String,
    /// The user.
    pub username: String,
    /// The password.
    pub password: String,
    /// An identity token, which is exchanged for access instead of user and password.
    pub identity_token: Option<String>,
}

/// Passwords never reach a log.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("registry", &self.registry).finish_non_exhaustive()
    }
}

/// The platform that an image runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// The operating system, such as `linux`.
    pub os: String,
    /// The architecture, such as `amd64`.
    pub architecture: String,
}

/// Why a registry did not return what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RegistryError {
    /// For programs.
    pub kind: RegistryErrorKind,
    /// For users: the reference or layer, what is wrong, and where possible what to do about it. No credentials.
    pub message: String,
    /// The time in the header `Retry-After`.
    pub retry_after: Option<Duration>,
}

/// The machine-readable reason why a request to a registry failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistryErrorKind {
    /// There is no such repository, tag or digest.
    NotFound,
    /// The credentials are missing or not accepted.
    Unauthorized,
    /// The registry cannot be reached, does not respond in time, or is overloaded: another attempt may succeed.
    Unavailable,
    /// The certificate of the registry is not trusted: another attempt does not change that.
    Untrusted,
    /// The content is not what it must be: a wrong digest or length, a malformed manifest, a package without
    /// `package.yaml`, or more than is allowed.
    Invalid,
}
