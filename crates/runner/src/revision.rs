//! Revisions of functions: what runtimes start and stop, and what calls are routed to.

use crate::source::{Resolver, Source};
use std::fmt;
use std::sync::Arc;
use transom_xapi::Function;
use transom_xapi::constants::annotation;
use transom_xapi::function::{FunctionRevision, RevisionTraits};
use transom_xapi::package::{Installation, PullPolicy};
use transom_xapi::runtime_config::DeploymentRuntimeConfigSpec;

/// The identity of a revision.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RevisionId {
    /// The name of the Function.
    pub function: String,
    /// The name of the FunctionRevision. Two revisions of one Function have different names.
    pub revision: String,
}

impl RevisionId {
    /// The only revision of a function that has no FunctionRevision objects.
    pub fn sole(function: impl Into<String>) -> Self {
        Self { function: function.into(), revision: String::new() }
    }

    /// Whether the function has no FunctionRevision objects. It is called for every revision that a step names.
    pub fn is_sole(&self) -> bool {
        self.revision.is_empty()
    }

    /// The identity of a FunctionRevision.
    pub fn of(revision: &FunctionRevision) -> Self {
        Self { function: revision.package().to_owned(), revision: revision.metadata.name.clone() }
    }
}

impl fmt::Display for RevisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.function, self.revision)
    }
}

/// The image that a package is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageImage {
    /// Where it is pulled from: a reference, after ImageConfigs rewrote it.
    pub reference: String,
    /// Its digest, if that is known.
    pub digest: Option<String>,
    /// The names of the Secrets that it may be pulled with.
    pub pull_secrets: Vec<String>,
    /// Whether it must not be pulled: it runs only if it is on this machine.
    pub never_pulled: bool,
}

/// A revision, and everything a runtime needs to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionSpec {
    /// Which revision this is.
    pub id: RevisionId,
    /// Its number: the higher is the newer.
    pub number: i64,
    /// The reference to the package it comes from, for metrics.
    pub package: String,
    /// Where its implementation comes from.
    pub source: Source,
    /// What steps choose it by.
    pub traits: RevisionTraits,
    /// The image of its package. Only a runtime of packages needs it.
    pub image: PackageImage,
    /// How it is to run. Only a runtime of packages needs it.
    pub config: Arc<DeploymentRuntimeConfigSpec>,
}

impl RevisionSpec {
    /// The revision that a FunctionRevision is.
    pub fn of(revision: &FunctionRevision, resolver: &Resolver) -> Self {
        Self {
            id: RevisionId::of(revision),
            number: revision.spec.revision,
            package: revision.spec.image.clone(),
            source: resolver.resolve_revision(revision),
            traits: RevisionTraits::of(revision),
            image: PackageImage {
                reference: match &*revision.status.resolved_image {
                    "" => revision.spec.image.clone(),
                    resolved => resolved.to_owned(),
                },
                digest: revision.metadata.annotation(annotation::IMAGE_DIGEST).map(str::to_owned),
                pull_secrets: names(&revision.spec.installation),
                never_pulled: revision.spec.installation.pull_policy() == PullPolicy::Never,
            },
            config: Arc::default(),
        }
    }

    /// The only revision of a Function outside of a control plane, where there are no FunctionRevisions.
    pub fn sole(function: &Function, resolver: &Resolver) -> Self {
        Self {
            id: RevisionId::sole(&function.metadata.name),
            number: 0,
            package: function.spec.package.clone(),
            source: resolver.resolve(function),
            traits: RevisionTraits::of_function(function),
            image: PackageImage {
                reference: function.spec.package.clone(),
                digest: None,
                pull_secrets: names(&function.spec.installation),
                // The policy is one of control planes: `crossplane render` does not look at it either.
                never_pulled: false,
            },
            config: Arc::default(),
        }
    }
}

/// The Secrets that an image is pulled with.
fn names(installation: &Installation) -> Vec<String> {
    installation.package_pull_secrets.iter().map(|secret| secret.name.clone()).collect()
}
