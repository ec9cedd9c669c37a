//! What two stages share although neither is made from the other. Everything that closes such a cycle is made here.

use super::controllers::Purpose;
use std::sync::{Arc, OnceLock};
use transom_apiserver::Check;
use transom_controllers::{ConversionEndpoint, Protection};
use transom_engine::{Metrics, Ownership, Readiness};
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
    /// Kept up to date by what runs providers, asked by the API server before it refuses their requests.
    #[cfg(target_os = "linux")]
    pub(super) privileged: transom_machine::Privileged,
    /// What the controllers are started for.
    pub(super) purpose: Purpose,
    /// Which objects the controllers of this process reconcile. All, unless an election says otherwise.
    pub(super) ownership: Ownership,
    /// What converts versions by rules: in this process at once, on a cluster when webhooks are served.
    pub(super) conversion: ConversionEndpoint,
    /// Reached by the controllers, which start after the API server, and served by it at `/readyz`.
    readiness: Arc<OnceLock<Arc<Readiness>>>,
    /// Reads the state of the controllers; served by the API server for tests.
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
            #[cfg(target_os = "linux")]
            privileged: Default::default(),
            purpose: Purpose::Plane,
            ownership: Ownership::whole(),
            conversion: super::conversions::endpoint(),
            readiness: Arc::default(),
            #[cfg(debug_assertions)]
            idleness: Default::default(),
        }
    }
}

impl Links {
    /// For controllers that are started for something else than the API server in this process.
    pub(super) fn of(purpose: Purpose, ownership: Ownership) -> Self {
        Self { purpose, ownership, conversion: ConversionEndpoint::default(), ..Self::default() }
    }

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
