//! Watches of what keys depend on: begun when the first key depends on something of a kind, ended a while after the
//! last one does. What happens to an object wakes exactly those that depend on it.

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

/// How often watches that nobody needs any longer are ended.
const SWEEP: Duration = Duration::from_secs(60);

/// Whether a change matters to those that depend on the object.
pub type Matters = fn(&Change<'_>) -> bool;

type Watched = BTreeMap<GroupVersionKind, (Subscription, CountedWatch)>;

pub struct Following {
    watches: Watches,
    metrics: Arc<Metrics>,
    controller: String,
    queue: Arc<Queue>,
    /// Which changes to what is depended upon matter.
    matters: Matters,
    dependencies: Arc<Dependencies>,
    watched: Mutex<Watched>,
    sweeper: AbortHandle,
}

impl Following {
    /// For a controller whose keys are in this queue.
    pub fn start(
        watches: &Watches,
        metrics: &Arc<Metrics>,
        controller: &str,
        queue: Arc<Queue>,
        matters: Matters,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            watches: watches.clone(),
            metrics: metrics.clone(),
            controller: controller.to_owned(),
            queue,
            matters,
            dependencies: Arc::default(),
            watched: Mutex::default(),
            sweeper: tokio::spawn(sweep(this.clone())).abort_handle(),
        })
    }

    /// The key depends on this too. Says so before it is read or written, so that no change falls in between.
    pub fn add(&self, key: &Key, dependency: Dependency) {
        let gvk = dependency.gvk().clone();
        self.dependencies.add(key, dependency);
        self.watch([&gvk]);
    }

    /// The key depends on these and on nothing else.
    pub fn replace(&self, key: &Key, dependencies: &BTreeSet<Dependency>) {
        self.dependencies.replace(key, dependencies);
        self.watch(dependencies.iter().map(Dependency::gvk));
    }

    pub fn forget(&self, key: &Key) {
        self.dependencies.forget(key);
    }

    /// What a watch shows of a kind, if any key depends on it.
    pub fn mirror(&self, gvk: &GroupVersionKind) -> Option<Arc<Mirror>> {
        self.watched().get(gvk).map(|(subscription, _)| subscription.mirror().clone())
    }

    /// The object that a hash stands for, among those that the key depends on: its kind, namespace and name.
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

/// Wakes those that depend on what changed.
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

    /// Whoever read an object that was gone before the watch knew of it would wait for it to go for ever.
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
                // Later lists are compared with what the mirror showed, from which it was selected.
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
async fn sweep(following: Weak<Following>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(following) = following.upgrade() else { return };
        // Subscriptions end when this is dropped, after the lock was given back.
        let _ended: Vec<_> = {
            let mut watched = following.watched();
            // Asked under the lock, so that nobody comes to need a watch that is about to end.
            let needed: BTreeSet<GroupVersionKind> = following.dependencies.kinds().into_iter().collect();
            let unneeded: Vec<GroupVersionKind> =
                watched.keys().filter(|k| !needed.contains(k)).cloned().collect();
            unneeded.iter().filter_map(|k| watched.remove(k)).collect()
        };
    }
}
