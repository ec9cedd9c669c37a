//! The providers that come with the binary: `provider-nop` always runs, the others for the Providers that name them.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_controllers::BuiltinProviders;
#[cfg(debug_assertions)]
use transom_engine::Mirror;
use transom_engine::{Clock, Cluster, Metrics, Ownership};
use transom_provider::{Context, RunningProvider};

/// Its kinds are part of every plane, for trying out Compositions.
const ALWAYS: &str = "provider-nop";

/// Running providers, which stop when this is dropped.
pub(crate) struct Providers {
    client: kube::Client,
    clock: Clock,
    metrics: Arc<Metrics>,
    seed: u64,
    ownership: Ownership,
    /// The namespace of the service accounts that the providers act as.
    namespace: String,
    running: Mutex<BTreeMap<String, Running>>,
}

struct Running {
    #[cfg_attr(
        not(debug_assertions),
        expect(dead_code, reason = "only tests look at it; dropping it stops it")
    )]
    provider: RunningProvider,
    /// The revisions of packages that it runs for.
    revisions: BTreeSet<String>,
}

impl Providers {
    pub(crate) fn new(
        client: kube::Client,
        clock: Clock,
        metrics: Arc<Metrics>,
        seed: u64,
        ownership: Ownership,
        namespace: String,
    ) -> Self {
        Self { client, clock, metrics, seed, ownership, namespace, running: Mutex::default() }
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Installs the kinds of the provider that always runs, and starts it.
    pub(crate) async fn start_always(&self) -> Result<(), transom_engine::Error> {
        if let Some(provider) = transom_providers::find(ALWAYS) {
            provider.install(&Cluster::new(self.client.clone())).await?;
        }
        self.start(ALWAYS, "");
        Ok(())
    }

    /// What the watches of all providers have reported.
    #[cfg(debug_assertions)]
    pub(crate) fn mirrors(&self) -> Vec<Arc<Mirror>> {
        self.running().values().flat_map(|running| running.provider.mirrors()).collect()
    }

    /// Whether all events of all providers are written.
    #[cfg(debug_assertions)]
    pub(crate) fn is_idle(&self) -> bool {
        self.running().values().all(|running| running.provider.is_idle())
    }
}

impl BuiltinProviders for Providers {
    fn has(&self, name: &str) -> bool {
        transom_providers::names().any(|known| known == name)
    }

    fn package(&self, name: &str) -> Option<String> {
        let provider = transom_providers::find(name)?;
        let meta = json!({
            "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": name},
            "spec": {"capabilities": ["safe-start"]},
        });
        let crds: &[Value] = if name == ALWAYS { &[] } else { provider.crds() };
        let documents: Vec<String> = [&meta].into_iter().chain(crds).map(Value::to_string).collect();
        Some(documents.join("\n---\n"))
    }

    fn start(&self, name: &str, revision: &str) {
        let mut running = self.running();
        if let Some(running) = running.get_mut(name) {
            running.revisions.insert(revision.to_owned());
            return;
        }
        let Some(provider) = transom_providers::find(name) else { return };
        // Who may write Objects must not have the rights of the controllers.
        let account = format!("system:serviceaccount:{}:{name}", self.namespace);
        let provider = provider.acting_as(account).start(Context {
            client: self.client.clone(),
            clock: self.clock,
            metrics: self.metrics.clone(),
            seed: self.seed,
            ownership: self.ownership.clone(),
        });
        let revisions = BTreeSet::from([revision.to_owned()]);
        running.insert(name.to_owned(), Running { provider, revisions });
    }

    fn stop(&self, name: &str, revision: &str) {
        let mut running = self.running();
        if let Some(of) = running.get_mut(name) {
            of.revisions.remove(revision);
            if of.revisions.is_empty() {
                running.remove(name);
            }
        }
    }
}
