//! Revisions of functions: what runtimes start and stop, and what calls are routed to.

use crate::source::{Resolver, Source};
use std::fmt;
use transom_xapi::Function;
use transom_xapi::function::{FunctionRevision, RevisionTraits};

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

    /// Whether the function has no FunctionRevision objects. It answers whatever revision a step wants.
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
        }
    }
}
