//! Revisions of functions: what runtimes start and stop, and what calls are routed to.

use crate::source::{Resolver, Source};
use sha2::{Digest, Sha256};
use std::fmt;
use transom_xapi::Function;

/// How many characters of its digest the name of a derived revision has, as the names of package revisions do.
const DIGEST_CHARACTERS: usize = 12;

/// The identity of a revision.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RevisionId {
    /// The name of the Function.
    pub function: String,
    /// The name of the revision. Two revisions of one Function have different names.
    pub revision: String,
}

impl RevisionId {
    /// The only revision of a function that has no Function object.
    pub fn sole(function: impl Into<String>) -> Self {
        Self { function: function.into(), revision: String::new() }
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
    /// The reference to the package it comes from, for metrics.
    pub package: String,
    /// Where its implementation comes from.
    pub source: Source,
}

impl RevisionSpec {
    /// The revision of a Function that has no FunctionRevision objects. Its name is derived from the Function's package
    /// and source, so a change of either is another revision.
    pub fn of(function: &Function, resolver: &Resolver) -> Self {
        let (name, package) = (&function.metadata.name, function.spec.package.clone());
        let source = resolver.resolve(function);
        let digest = format!("{:x}", Sha256::digest(format!("{package}\n{source:?}")));
        let revision = format!("{name}-{}", &digest[..DIGEST_CHARACTERS]);
        Self { id: RevisionId { function: name.clone(), revision }, package, source }
    }
}
