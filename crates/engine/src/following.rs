//! Watches of what keys depend on. The watch of a kind starts when the first key depends on an object of the kind, and
//! ends some time after no key does. A change of an object wakes exactly the keys that depend on it.

use super::dependencies::{Dependencies, Dependency};
use super::mirror::{Change, Listing, Mirror, Observer};
use super::queue::{Key, Queue};
use super::seen_versions::{ChangeNotice, ObjectHash, Via};
use super::sighting::Depth;
use super::watches::{Subscription, Watches};
use crate::metrics::{CountedWatch, Metrics};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::task::AbortHandle;
use transom_object::GroupVersionKind;

/// How often watches that no key needs any longer are ended, unless the engine is given another interval.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Whether a change of an object matters to the keys that depend on it.
pub type Matters = fn(&Change<'_>) -> bool;

type Watched = BTreeMap<GroupVersionKind, (Subscription, CountedWatch)>;

/// What the keys of one controller depend on.
pub struct Following {
    watches: Watches,
    metrics: Arc<Metrics>,
    controller: String,
    queue: Arc<Queue>,
    /// Which changes matter.
    matters: Matters,
    dependencies: Arc<Dependencies>,
    watched: Mutex<Watched>,
    sweeper: AbortHandle,
}

impl Following {
    /// For a controller whose keys are in this queue.
    pub(crate) fn start(
        watches: &Watches,
        metrics: &Arc<Metrics>,
        controller: &str,
        queue: Arc<Queue>,
        matters: Matters,
        sweep_interval: Duration,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            watches: watches.clone(),
            metrics: metrics.clone(),
            controller: controller.to_owned(),
            queue,
            matters,
            dependencies: Arc::default(),
            watched: Mutex::default(),
            sweeper: tokio::spawn(sweep(this.clone(), sweep_interval)).abort_handle(),
        })
    }

    /// Adds a dependency of a key. Call this before the object is read or written, so that no change is missed.
    pub fn add(&self, key: &Key, dependency: Dependency) {
        let gvk = dependency.gvk().clone();
        self.dependencies.add(key, dependency);
        self.watch([&gvk]);
    }

    /// Replaces all dependencies of a key.
    pub fn replace(&self, key: &Key, dependencies: &BTreeSet<Dependency>) {
        self.dependencies.replace(key, dependencies);
        self.watch(dependencies.iter().map(Dependency::gvk));
    }

    /// Removes all dependencies of a key.
    pub fn forget(&self, key: &Key) {
        self.dependencies.forget(key);
    }

    /// The mirror of a kind, if any key depends on an object of it.
    pub fn mirror(&self, gvk: &GroupVersionKind) -> Option<Arc<Mirror>> {
        self.watched().get(gvk).map(|(subscription, _)| subscription.mirror().clone())
    }

    /// The kind and key of the object with this hash, if the key depends on it.
    pub fn find(&self, key: &Key, object: ObjectHash) -> Option<(String, Key)> {
        self.dependencies.of(key).into_iter().find_map(|dependency| match dependency {
            Dependency::Named { gvk, namespace, name } => (ObjectHash::new(&gvk, &namespace, &name)
                == object)
                .then(|| (gvk.kind, Key::new(&*namespace, &*name))),
            Dependency::Selected { gvk, namespace, labels } => {
                let selected = self.mirror(&gvk)?.select(namespace.as_deref(), &labels);
                let is_it = |key: &Key| ObjectHash::new(&gvk, &key.namespace, &key.name) == object;
                selected.keys.into_iter().find(is_it).map(|key| (gvk.kind, key))
            }
        })
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch<'a>(&self, kinds: impl IntoIterator<Item = &'a GroupVersionKind>) {
        let mut watched = self.watched();
        for gvk in kinds {
            if !watched.contains_key(gvk) {
                watched.insert(gvk.clone(), self.subscribe(gvk));
            }
        }
    }

    fn subscribe(&self, gvk: &GroupVersionKind) -> (Subscription, CountedWatch) {
        let (dependencies, queue) = (self.dependencies.clone(), self.queue.clone());
        let waking = Waking { dependencies, queue, matters: self.matters };
        let subscription = self.watches.subscribe(gvk, Depth::Header, Arc::new(waking));
        (subscription, self.metrics.watching(&self.controller, "Dependency"))
    }
}

/// Wakes the keys that depend on the object that changed.
struct Waking {
    dependencies: Arc<Dependencies>,
    queue: Arc<Queue>,
    matters: Matters,
}

impl Observer for Waking {
    fn changed(&self, change: &Change<'_>) {
        if (self.matters)(change) {
            self.dependencies.affected(change).iter().for_each(|key| change.wake(&self.queue, key));
        }
    }

    /// A run may have read an object that was deleted before the watch listed its kind: no change reports that deletion,
    /// so the absence of the object in the list does.
    fn listed(&self, listing: &Listing<'_>) {
        for (key, dependency) in self.dependencies.on(listing.gvk) {
            match dependency {
                Dependency::Named { gvk, namespace, name } => {
                    if !listing.objects.contains_key(&Key::new(&*namespace, &*name)) {
                        let object = ObjectHash::new(&gvk, &namespace, &name);
                        let version = listing.version;
                        self.queue.wake_by(&key, ChangeNotice { object, version, via: Via::Absence });
                    }
                }
                // Of later lists the differences to the mirror are reported, and the mirror is what was selected from.
                Dependency::Selected { .. } if listing.first => self.queue.wake(&key),
                Dependency::Selected { .. } => {}
            }
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.sweeper.abort();
    }
}

/// Ends watches of kinds that no key depends on any longer.
async fn sweep(following: Weak<Following>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        let Some(following) = following.upgrade() else { return };
        // Dropped after the lock is released: dropping a subscription takes other locks.
        let _ended: Vec<_> = {
            let mut watched = following.watched();
            // Under the lock, so that no key starts to need a watch that is about to end.
            let needed: BTreeSet<GroupVersionKind> = following.dependencies.kinds().into_iter().collect();
            let unneeded: Vec<GroupVersionKind> =
                watched.keys().filter(|k| !needed.contains(k)).cloned().collect();
            unneeded.iter().filter_map(|k| watched.remove(k)).collect()
        };
    }
}
