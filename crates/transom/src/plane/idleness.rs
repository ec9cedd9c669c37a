//! Reports to tests when a plane has nothing left to do. Release builds do not contain this module.
//!
//! | path | is `ok` when |
//! |---|---|
//! | `/readyz/idle` | the watches of the controllers have reported everything that is stored, no key runs or is ready to run, all events are written, and the server has no upkeep to do: nothing happens until a client or a timer causes it |
//! | `/readyz/no-retries` | the same, and no key waits for another attempt |
//!
//! Both are exact, for one revision of the store: there is nothing to wait for a second time.

use super::providers::Providers;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use transom_apiserver::{Probe, Server};
use transom_controllers::Controllers;
use transom_engine::{Cluster, Kind, Mirror};
use transom_store::Store;

/// What the probes look at, from when the controllers have started.
#[derive(Clone, Default)]
pub(super) struct Idleness(Arc<OnceLock<Observed>>);

struct Observed {
    store: Store,
    server: Server,
    cluster: Cluster,
    /// They stop when their owner drops them.
    controllers: Weak<Controllers>,
    /// The watches of what makes the roles of definitions, which is not one of them.
    roles: Vec<Arc<Mirror>>,
    providers: Weak<Providers>,
}

impl Idleness {
    /// The controllers have started, on this server over this store.
    pub(super) fn observe(
        &self,
        store: Store,
        server: Server,
        client: kube::Client,
        controllers: &Arc<Controllers>,
        roles: Vec<Arc<Mirror>>,
        providers: &Arc<Providers>,
    ) {
        let (cluster, controllers) = (Cluster::new(client), Arc::downgrade(controllers));
        let providers = Arc::downgrade(providers);
        // Controllers are started once.
        let _ = self.0.set(Observed { store, server, cluster, controllers, roles, providers });
    }

    /// The probes, by the last segment of their path.
    pub(super) fn probes(&self) -> Vec<(&'static str, Probe)> {
        vec![("idle", self.probe(false)), ("no-retries", self.probe(true))]
    }

    fn probe(&self, without_retries: bool) -> Probe {
        let observed = self.0.clone();
        Box::new(move || {
            let observed = observed.clone();
            Box::pin(async move {
                match observed.get() {
                    Some(observed) => observed.is_idle(without_retries).await,
                    None => false,
                }
            })
        })
    }
}

impl Observed {
    async fn is_idle(&self, without_retries: bool) -> bool {
        let Some(controllers) = self.controllers.upgrade() else { return false };
        let Some(providers) = self.providers.upgrade() else { return false };
        let Some(revision) = self.server.upkeep_idle_at() else { return false };
        // A change becomes a key in the same moment in which a mirror has it, so the queues are looked at last. A run
        // that ended in between without leaving a key has written nothing, or the revision is another one.
        controllers.readiness().is_reached()
            && self.are_current(&controllers.mirrors()).await
            && self.are_current(&self.roles).await
            && self.are_current(&providers.mirrors()).await
            && controllers.is_idle()
            && providers.is_idle()
            && !(without_retries && controllers.awaits_retry())
            && self.server.upkeep_idle_at() == Some(revision)
    }

    /// Whether the watches have reported everything that is stored.
    async fn are_current(&self, mirrors: &[Arc<Mirror>]) -> bool {
        for mirror in mirrors {
            let stored: BTreeMap<(Arc<str>, Arc<str>), u64> = match self.cluster.kind(mirror.gvk()).await {
                Ok(kind) => {
                    let objects = self.store.snapshot(&resource(&kind)).objects;
                    let place = |(key, entry): (&transom_store::ObjectKey, &Arc<transom_store::Entry>)| {
                        ((key.namespace.clone(), key.name.clone()), entry.revision)
                    };
                    objects.iter().map(place).collect()
                }
                // A kind that is not served has no objects.
                Err(_) => BTreeMap::new(),
            };
            let reported = mirror.all();
            let is_stored = |seen: &Arc<transom_engine::Seen>| {
                let place = (seen.key.namespace.clone(), seen.key.name.clone());
                stored.get(&place) == Some(&seen.version)
            };
            if reported.len() != stored.len() || !reported.iter().all(is_stored) {
                return false;
            }
        }
        true
    }
}

/// The name under which the server stores a kind.
fn resource(kind: &Kind) -> String {
    match kind.gvk.group.as_str() {
        "" => kind.plural.clone(),
        group => format!("{}.{group}", kind.plural),
    }
}
