//! Providers that come with the binary: a Provider whose package has the name of one needs no registry.
//!
//! Its revisions are named as those of images are, by a digest: of the text of the reference. Its content is that of a package:
//! the CRDs of its managed resources become ManagedResourceDefinitions, which policies activate.

use super::Shared;
use transom_engine::{Error, Result};
use transom_packages::Digest;
use transom_packages::stream::{self, Package as Content};
use transom_runner::FORCED_RUNTIME_ANNOTATION;
use transom_xapi::Metadata;
use transom_xapi::function::repository_name;

/// The providers that come with the binary.
pub trait BuiltinProviders: Send + Sync {
    /// Whether a provider comes with the binary.
    fn has(&self, name: &str) -> bool;

    /// The stream of the package of a provider; none if no such provider comes with the binary.
    fn package(&self, name: &str) -> Option<String>;

    /// Runs a provider for a revision of its package, unless it runs already.
    fn start(&self, name: &str, revision: &str);

    /// A revision no longer needs a provider. It stops when no revision does.
    fn stop(&self, name: &str, revision: &str);
}

/// No provider comes with the binary.
pub struct NoProviders;

impl BuiltinProviders for NoProviders {
    fn has(&self, _: &str) -> bool {
        false
    }

    fn package(&self, _: &str) -> Option<String> {
        None
    }

    fn start(&self, _: &str, _: &str) {}

    fn stop(&self, _: &str, _: &str) {}
}

impl Shared {
    /// The name of the provider that comes with the binary and that a package stands for. An annotation asks for what is in
    /// the package instead.
    pub(super) fn builtin_provider<'a>(&self, metadata: &Metadata, package: &'a str) -> Option<&'a str> {
        let is_forced = metadata.annotation(FORCED_RUNTIME_ANNOTATION) == Some("Package");
        let name = repository_name(package);
        (!is_forced && self.builtin_providers.has(name)).then_some(name)
    }

    /// The digest that names the revision of a provider that comes with the binary.
    pub(super) fn builtin_provider_digest(&self, metadata: &Metadata, package: &str) -> Option<Digest> {
        self.builtin_provider(metadata, package).map(|_| Digest::of(package.as_bytes()))
    }

    /// The content of the package of a provider that comes with the binary.
    pub(super) fn builtin_provider_content(&self, name: &str) -> Result<Content> {
        let text = self.builtin_providers.package(name).unwrap_or_default();
        stream::parse(text.as_bytes()).map_err(Error::permanent)
    }
}
