//! The watches of all controllers: one per kind and depth, started with its first subscriber and stopped with its last.

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
    /// No watches yet, of this server.
    pub fn new(cluster: Cluster) -> Self {
        Self { cluster, running: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Identity, Watch>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports to the observer which objects of a kind exist and how they change, until the subscription is dropped.
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

    /// Whether every watch has listed its kind, or found that it cannot.
    pub fn are_filled(&self) -> bool {
        self.lock().values().all(|watch| watch.mirror.is_attempted())
    }

    /// Makes the watches of a group try again at once: the definition of one of its kinds changed.
    pub fn definitions_changed(&self, group: &str) {
        for ((gvk, _), watch) in &*self.lock() {
            if gvk.group == group {
                watch.mirror.retry();
            }
        }
    }

    /// The mirrors of all kinds that are watched.
    pub fn mirrors(&self) -> Vec<Arc<Mirror>> {
        self.lock().values().map(|watch| watch.mirror.clone()).collect()
    }

    /// Ends every watch.
    pub fn stop(&self) {
        for watch in std::mem::take(&mut *self.lock()).into_values() {
            watch.task.abort();
        }
    }
}

/// A subscription to the changes of a kind. It ends when dropped.
pub struct Subscription {
    mirror: Arc<Mirror>,
    id: u64,
    identity: Identity,
    watches: Watches,
}

impl Subscription {
    /// The cache that the watch keeps up to date.
    pub fn mirror(&self) -> &Arc<Mirror> {
        &self.mirror
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut running = self.watches.lock();
        // Under the lock of the registry, so that no subscription is added to a watch that is about to end.
        if self.mirror.unsubscribe(self.id)
            && running.get(&self.identity).is_some_and(|w| Arc::ptr_eq(&w.mirror, &self.mirror))
            && let Some(watch) = running.remove(&self.identity)
        {
            watch.task.abort();
        }
    }
}
