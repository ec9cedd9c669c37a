//! What two stages share although neither is made from the other. Everything that closes such a cycle is made here.

use std::sync::{Arc, OnceLock};
use transom_apiserver::Check;
use transom_controllers::Protection;
use transom_engine::{Metrics, Readiness};

/// Made before all stages. Clones share their content.
#[derive(Clone, Default)]
pub(crate) struct Links {
    /// Counted by controllers and functions, served by the API server at `/metrics`.
    pub(super) metrics: Arc<Metrics>,
    /// Kept up to date by the usage controllers, asked by the API server before it deletes.
    pub(super) protection: Arc<Protection>,
    /// Reached by the controllers, which start after the API server, and served by it at `/readyz`.
    readiness: Arc<OnceLock<Arc<Readiness>>>,
}

impl Links {
    /// The check of `/readyz` that fails until the controllers have started and know all objects.
    pub(super) fn controllers_ready(&self) -> (&'static str, Check) {
        let readiness = self.readiness.clone();
        ("controllers", Box::new(move || readiness.get().is_some_and(|readiness| readiness.is_reached())))
    }

    /// The controllers have started.
    pub(super) fn set_readiness(&self, readiness: Arc<Readiness>) {
        // Controllers are started once.
        let _ = self.readiness.set(readiness);
    }
}
