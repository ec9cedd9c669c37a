//! The Compositions and revisions to choose from.

use std::sync::Arc;
use transom_xapi::{Composition, CompositionRevision, Condition};

/// What is installed, parsed once and kept in memory by the implementor.
pub trait Catalog: Send + Sync {
    /// Every Composition.
    fn compositions(&self) -> Vec<Arc<Composition>>;

    /// The Composition of a name.
    fn composition(&self, name: &str) -> Option<Arc<Composition>>;

    /// The CompositionRevision of a name.
    fn revision(&self, name: &str) -> Option<Arc<CompositionRevision>>;

    /// The revisions whose label names this Composition.
    fn revisions_of(&self, composition: &str) -> Vec<Arc<CompositionRevision>>;

    /// Whether the installed functions can run in the pipeline of a revision: the condition `ValidPipeline` that its
    /// status is going to have.
    fn valid_pipeline(&self, revision: &CompositionRevision) -> Condition;
}
