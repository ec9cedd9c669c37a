//! Which keys depend on which objects, so that a change wakes exactly those.
//!
//! A dependency is an object by name, or all objects of a kind with some labels. The cost of a lookup grows with what it
//! finds: names are hashed, and equal selectors of several keys are kept once.

use super::mirror::Change;
use super::queue::Key;
use super::seen_versions::ObjectHash;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use transom_object::GroupVersionKind;

/// What a key depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dependency {
    /// One object, which need not exist.
    Named {
        /// Its kind.
        gvk: GroupVersionKind,
        /// Its namespace; empty for a cluster-scoped object.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Every object with these labels.
    Selected {
        /// Their kind.
        gvk: GroupVersionKind,
        /// Their namespace; none for all namespaces.
        namespace: Option<String>,
        /// The labels that they all have.
        labels: BTreeMap<String, String>,
    },
}

impl Dependency {
    /// The kind.
    pub fn gvk(&self) -> &GroupVersionKind {
        match self {
            Self::Named { gvk, .. } | Self::Selected { gvk, .. } => gvk,
        }
    }
}

type Selector = (Option<String>, BTreeMap<String, String>);

#[derive(Default)]
struct State {
    of: HashMap<Key, BTreeSet<Dependency>>,
    named: HashMap<ObjectHash, BTreeSet<Key>>,
    selected: HashMap<GroupVersionKind, BTreeMap<Selector, BTreeSet<Key>>>,
    kinds: BTreeMap<GroupVersionKind, usize>,
}

/// The dependencies of all keys of a controller.
#[derive(Default)]
pub(crate) struct Dependencies(Mutex<State>);

impl Dependencies {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a dependency of a key. Call this before the object is read or written, so that no change is missed.
    pub(crate) fn add(&self, key: &Key, dependency: Dependency) {
        self.lock().add(key, dependency);
    }

    /// Replaces all dependencies of a key.
    pub(crate) fn replace(&self, key: &Key, dependencies: &BTreeSet<Dependency>) {
        let mut state = self.lock();
        let before = state.of.get(key).cloned().unwrap_or_default();
        for gone in before.difference(dependencies) {
            state.remove(key, gone);
        }
        for new in dependencies.difference(&before) {
            state.add(key, new.clone());
        }
    }

    /// Removes all dependencies of a key.
    pub(crate) fn forget(&self, key: &Key) {
        self.replace(key, &BTreeSet::new());
        self.lock().of.remove(key);
    }

    /// The dependencies of a key.
    pub(crate) fn of(&self, key: &Key) -> BTreeSet<Dependency> {
        self.lock().of.get(key).cloned().unwrap_or_default()
    }

    /// The keys that depend on objects of a kind, with these dependencies.
    pub(crate) fn on(&self, gvk: &GroupVersionKind) -> Vec<(Key, Dependency)> {
        let state = self.lock();
        let all = state.of.iter().flat_map(|(key, own)| own.iter().map(move |dependency| (key, dependency)));
        let on_it = all.filter(|(_, dependency)| dependency.gvk() == gvk);
        on_it.map(|(key, dependency)| (key.clone(), dependency.clone())).collect()
    }

    /// The kinds that any key depends on.
    pub(crate) fn kinds(&self) -> Vec<GroupVersionKind> {
        self.lock().kinds.keys().cloned().collect()
    }

    /// The keys that a change wakes: they name the object, or select it as it is or as it was.
    pub(crate) fn affected(&self, change: &Change<'_>) -> Vec<Key> {
        let Some(object) = change.object() else { return Vec::new() };
        let (namespace, name) = (&*object.key.namespace, &*object.key.name);
        let state = self.lock();
        let mut keys: BTreeSet<Key> =
            state.named.get(&ObjectHash::new(change.gvk, namespace, name)).cloned().unwrap_or_default();
        for ((within, labels), selecting) in state.selected.get(change.gvk).into_iter().flatten() {
            let has = |l: &BTreeMap<String, String>| labels.iter().all(|(k, v)| l.get(k) == Some(v));
            let here = within.as_deref().is_none_or(|w| w == namespace);
            if here && [change.before, change.after].into_iter().flatten().any(|seen| has(&seen.labels)) {
                keys.extend(selecting.iter().cloned());
            }
        }
        keys.into_iter().collect()
    }
}

impl State {
    fn add(&mut self, key: &Key, dependency: Dependency) {
        if !self.of.entry(key.clone()).or_default().insert(dependency.clone()) {
            return;
        }
        *self.kinds.entry(dependency.gvk().clone()).or_default() += 1;
        let keys = match dependency {
            Dependency::Named { gvk, namespace, name } => {
                self.named.entry(ObjectHash::new(&gvk, &namespace, &name)).or_default()
            }
            Dependency::Selected { gvk, namespace, labels } => {
                self.selected.entry(gvk).or_default().entry((namespace, labels)).or_default()
            }
        };
        keys.insert(key.clone());
    }

    fn remove(&mut self, key: &Key, dependency: &Dependency) {
        if let Some(own) = self.of.get_mut(key) {
            own.remove(dependency);
        }
        match dependency {
            Dependency::Named { gvk, namespace, name } => {
                let object = ObjectHash::new(gvk, namespace, name);
                if let Some(keys) = self.named.get_mut(&object) {
                    keys.remove(key);
                    if keys.is_empty() {
                        self.named.remove(&object);
                    }
                }
            }
            Dependency::Selected { gvk, namespace, labels } => {
                if let Some(selectors) = self.selected.get_mut(gvk) {
                    let selector = (namespace.clone(), labels.clone());
                    if let Some(keys) = selectors.get_mut(&selector) {
                        keys.remove(key);
                        if keys.is_empty() {
                            selectors.remove(&selector);
                        }
                    }
                    if selectors.is_empty() {
                        self.selected.remove(gvk);
                    }
                }
            }
        }
        if let Some(count) = self.kinds.get_mut(dependency.gvk()) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.kinds.remove(dependency.gvk());
            }
        }
    }
}

#[cfg(test)]
#[path = "dependencies_tests.rs"]
mod tests;
