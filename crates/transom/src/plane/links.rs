//! What two stages share although neither is made from the other. Everything that closes such a cycle is made here.

use std::sync::{Arc, OnceLock};
use transom_apiserver::Check;
use transom_controllers::Protection;
use transom_engine::{Metrics, Readiness};
use transom_metrics::MetricsRegistry;
use transom_runner::Account;

/// Made before all stages. Clones share their content.
#[derive(Clone)]
pub(crate) struct Links {
    /// All metrics of the process. The API server adds its own, and serves all of them at `/metrics`.
    pub(super) registry: MetricsRegistry,
    /// The metrics of controllers, in the registry.
    pub(super) metrics: Arc<Metrics>,
    /// The metrics of functions, in the registry.
    pub(super) account: Account,
    /// Kept up to date by the usage controllers, asked by the API server before it deletes.
    pub(super) protection: Arc<Protection>,
    /// Reached by the controllers, which start after the API server, and served by it at `/readyz`.
    readiness: Arc<OnceLock<Arc<Readiness>>>,
    /// Told of the controllers, and served by the API server for tests.
    #[cfg(debug_assertions)]
    pub(super) idleness: super::idleness::Idleness,
}

impl Default for Links {
    fn default() -> Self {
        let registry = MetricsRegistry::default();
        Self {
            metrics: Arc::new(Metrics::new(&registry)),
            account: Account::new(&registry),
            registry,
            protection: Arc::default(),
            readiness: Arc::default(),
            #[cfg(debug_assertions)]
            idleness: Default::default(),
        }
    }
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
