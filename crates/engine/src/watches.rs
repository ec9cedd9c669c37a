//! The watches of all controllers: one per kind, started with its first subscriber and stopped with its last.

use super::mirror::{Mirror, Observer};
use super::sighting::Depth;
use crate::cluster::Cluster;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;
use transom_object::GroupVersionKind;

type Identity = (GroupVersionKind, &'static str);

struct Watch {
    mirror: Arc<Mirror>,
    task: AbortHandle,
}

/// All watches. Cheap to clone.
#[derive(Clone)]
pub struct Watches {
    cluster: Cluster,
    running: Arc<Mutex<BTreeMap<Identity, Watch>>>,
}

impl Watches {
    pub fn new(cluster: Cluster) -> Self {
        Self { cluster, running: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Identity, Watch>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the observer what exists of a kind and what happens to it, as long as the subscription is kept.
    pub fn subscribe(
        &self,
        gvk: &GroupVersionKind,
        depth: Depth,
        observer: Arc<dyn Observer>,
    ) -> Subscription {
        let identity = (gvk.clone(), depth.name());
        let mut running = self.lock();
        let watch = running.entry(identity.clone()).or_insert_with(|| self.start(gvk, depth));
        let mirror = watch.mirror.clone();
        let id = mirror.observe(observer);
        Subscription { mirror, id, identity, watches: self.clone() }
    }

    fn start(&self, gvk: &GroupVersionKind, depth: Depth) -> Watch {
        let mirror = Arc::new(Mirror::new(gvk.clone(), depth));
        let task = tokio::spawn({
            let (mirror, cluster) = (mirror.clone(), self.cluster.clone());
            async move { mirror.follow(&cluster).await }
        });
        Watch { mirror, task: task.abort_handle() }
    }

    /// Whether every mirror shows what exists, or found that nothing of its kind can be shown.
    pub fn are_filled(&self) -> bool {
        self.lock().values().all(|watch| watch.mirror.is_settled())
    }

    /// A definition in this group changed: what waits for one of its kinds tries again.
    pub fn definitions_changed(&self, group: &str) {
        for ((gvk, _), watch) in &*self.lock() {
            if gvk.group == group {
                watch.mirror.retry();
            }
        }
    }

    /// The kinds that are watched.
    pub fn kinds(&self) -> Vec<GroupVersionKind> {
        let mut kinds: Vec<GroupVersionKind> = self.lock().keys().map(|(gvk, _)| gvk.clone()).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    /// Ends every watch.
    pub fn stop(&self) {
        for watch in std::mem::take(&mut *self.lock()).into_values() {
            watch.task.abort();
        }
    }
}

/// Interest in a kind; ends when dropped.
pub struct Subscription {
    mirror: Arc<Mirror>,
    id: u64,
    identity: Identity,
    watches: Watches,
}

impl Subscription {
    pub fn mirror(&self) -> &Arc<Mirror> {
        &self.mirror
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut running = self.watches.lock();
        // Asked under the registry's lock, so that nobody subscribes to a watch that is about to end.
        if self.mirror.ignore(self.id)
            && running.get(&self.identity).is_some_and(|w| Arc::ptr_eq(&w.mirror, &self.mirror))
            && let Some(watch) = running.remove(&self.identity)
        {
            watch.task.abort();
        }
    }
}
