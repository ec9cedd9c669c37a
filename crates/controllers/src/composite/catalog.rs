//! What is installed, as `transom_compose` chooses from it.

use crate::catalog::Catalog;
use crate::composition::verdict;
use std::sync::Arc;
use transom_xapi::{Composition, CompositionRevision, Condition};

impl transom_compose::Catalog for Catalog {
    fn compositions(&self) -> Vec<Arc<Composition>> {
        self.compositions.all()
    }

    fn composition(&self, name: &str) -> Option<Arc<Composition>> {
        self.compositions.get(name)
    }

    fn revision(&self, name: &str) -> Option<Arc<CompositionRevision>> {
        self.revisions.get(name)
    }

    fn revisions_of(&self, composition: &str) -> Vec<Arc<CompositionRevision>> {
        self.revisions.of(composition)
    }

    fn valid_pipeline(&self, revision: &CompositionRevision) -> Condition {
        verdict(self, revision)
    }
}
