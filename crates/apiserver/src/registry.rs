//! Which resources are served now.
//!
//! Readers take an immutable snapshot; writers swap in a new one. A change of a CustomResourceDefinition is
//! installed before its commit is published, so that a client that sees `Established` can use the resource.

use crate::resource::{Access, Resource};
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;
use transom_object::GroupVersionResource;
use transom_object::ids::compare_versions;

/// A consistent view of everything served.
#[derive(Clone, Default)]
pub(crate) struct Served {
    resources: BTreeMap<GroupVersionResource, Arc<Resource>>,
    /// For each stored kind the version that reads the store most directly.
    by_store_key: BTreeMap<Arc<str>, Arc<Resource>>,
    /// Changes with every change; caches of discovery and OpenAPI key on it.
    pub generation: u64,
}

#[derive(Default)]
pub(crate) struct Registry {
    served: ArcSwap<Served>,
    writing: Mutex<()>,
    /// Notifies open watches that their resource may have changed.
    signal: Arc<Signal>,
}

/// The newest generation, and the tasks that wait for one. Wakes them in the order in which they began to wait, which
/// a channel of tokio's does not: a simulation could not be replayed.
#[derive(Default)]
struct Signal {
    generation: AtomicU64,
    woken: Notify,
}

/// Waits for what is served to change.
pub(crate) struct Changes {
    signal: Arc<Signal>,
    seen: u64,
}

impl Changes {
    /// Returns when anything changed since it last did. Cancel safe.
    pub(crate) async fn changed(&mut self) {
        loop {
            let mut woken = pin!(self.signal.woken.notified());
            woken.as_mut().enable();
            let newest = self.signal.generation.load(Ordering::Acquire);
            if newest != self.seen {
                self.seen = newest;
                return;
            }
            woken.await;
        }
    }
}

impl Registry {
    pub(crate) fn new(builtin: Vec<Resource>) -> Self {
        let registry = Self::default();
        registry.change(|served| {
            for r in builtin {
                served.insert(Arc::new(r));
            }
        });
        registry
    }

    pub(crate) fn changes(&self) -> Changes {
        Changes { signal: self.signal.clone(), seen: self.signal.generation.load(Ordering::Acquire) }
    }

    pub(crate) fn served(&self) -> Arc<Served> {
        self.served.load_full()
    }

    pub(crate) fn find(&self, gvr: &GroupVersionResource) -> Option<Arc<Resource>> {
        self.served.load().resources.get(gvr).cloned()
    }

    pub(crate) fn by_store_key(&self, key: &str) -> Option<Arc<Resource>> {
        self.served.load().by_store_key.get(key).cloned()
    }

    /// Replaces every served version of `group`/`plural`.
    pub(crate) fn replace(&self, group: &str, plural: &str, with: Vec<Arc<Resource>>) {
        self.change(|served| {
            served.resources.retain(|gvr, _| gvr.group != group || gvr.resource != plural);
            for r in with {
                served.insert(r);
            }
        });
    }

    fn change(&self, edit: impl FnOnce(&mut Served)) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Served::clone(&self.served.load());
        edit(&mut next);
        next.index();
        next.generation += 1;
        let generation = next.generation;
        self.served.store(Arc::new(next));
        self.signal.generation.store(generation, Ordering::Release);
        self.signal.woken.notify_waiters();
    }
}

impl Served {
    fn insert(&mut self, r: Arc<Resource>) {
        let gvr = r.group_version().with_resource(&*r.names.plural);
        self.resources.insert(gvr, r);
    }

    pub(crate) fn find(&self, gvr: &GroupVersionResource) -> Option<&Arc<Resource>> {
        self.resources.get(gvr)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    /// Groups in discovery order (by name, the core group first), each with its versions, preferred first.
    pub(crate) fn groups(&self) -> Vec<(String, Vec<String>)> {
        let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for gvr in self.resources.keys() {
            let versions = groups.entry(&gvr.group).or_default();
            if !versions.contains(&gvr.version.as_str()) {
                versions.push(&gvr.version);
            }
        }
        groups
            .into_iter()
            .map(|(group, mut versions)| {
                versions.sort_by(|a, b| compare_versions(a, b));
                (group.to_owned(), versions.into_iter().map(str::to_owned).collect())
            })
            .collect()
    }

    pub(crate) fn in_version(&self, group: &str, version: &str) -> Vec<&Arc<Resource>> {
        self.resources.values().filter(|r| r.group == group && r.version == version).collect()
    }

    /// The resource of a kind at a version, as owner references and reviews name it.
    pub(crate) fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.resources.values().find(|r| r.group == group && r.version == version && r.names.kind == kind)
    }

    /// One resource for each stored kind, whatever its versions.
    pub(crate) fn stored_kinds(&self) -> Vec<Arc<Resource>> {
        self.by_store_key.values().cloned().collect()
    }

    fn index(&mut self) {
        self.by_store_key.clear();
        for r in self.resources.values().filter(|r| r.access == Access::Full) {
            let slot = self.by_store_key.entry(r.store_key.clone()).or_insert_with(|| r.clone());
            if r.verbatim_after < slot.verbatim_after {
                *slot = r.clone();
            }
        }
    }
}
