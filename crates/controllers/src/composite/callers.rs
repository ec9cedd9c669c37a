//! Which composite resources are composed again when the revisions of a function that can be called change: those with a
//! step that chooses a revision, and those whose function cannot be called.
//!
//! Revisions are followed where calls are routed and not by a watch: when a watch reports that a revision changed, calls may
//! not be routed to it yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use transom_engine::{Key, Queue};

/// The composite resources of one definition by the functions that they depend on. The empty name stands for all functions.
pub(crate) struct Callers {
    queue: Arc<Queue>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    by_function: BTreeMap<String, BTreeSet<Key>>,
    by_key: BTreeMap<Key, BTreeSet<String>>,
}

impl Callers {
    pub(super) fn new(queue: Arc<Queue>) -> Self {
        Self { queue, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a function that a composite resource depends on. Call it before the function, so that no change is missed.
    pub(super) fn add(&self, key: &Key, function: &str) {
        self.lock().add(key, function);
    }

    /// Replaces the functions that a composite resource depends on.
    pub(super) fn replace(&self, key: &Key, functions: &BTreeSet<String>) {
        let mut state = self.lock();
        if state.by_key.get(key).is_none_or(BTreeSet::is_empty) && functions.is_empty() {
            return;
        }
        state.forget(key);
        functions.iter().for_each(|function| state.add(key, function));
    }

    pub(super) fn forget(&self, key: &Key) {
        self.lock().forget(key);
    }

    fn of(&self, function: &str) -> Vec<Key> {
        let state = self.lock();
        let of = |name: &str| state.by_function.get(name).into_iter().flatten();
        of(function).chain(of("")).cloned().collect()
    }
}

impl State {
    fn add(&mut self, key: &Key, function: &str) {
        self.by_function.entry(function.to_owned()).or_default().insert(key.clone());
        self.by_key.entry(key.clone()).or_default().insert(function.to_owned());
    }

    fn forget(&mut self, key: &Key) {
        for function in self.by_key.remove(key).into_iter().flatten() {
            if let Some(keys) = self.by_function.get_mut(&function) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_function.remove(&function);
                }
            }
        }
    }
}

/// The callers of all definitions.
#[derive(Default)]
pub(crate) struct AllCallers(Mutex<Vec<Weak<Callers>>>);

impl AllCallers {
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Callers>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the callers of a definition, for as long as they exist.
    pub(super) fn add(&self, callers: &Arc<Callers>) {
        let mut all = self.lock();
        all.retain(|callers| callers.strong_count() > 0);
        all.push(Arc::downgrade(callers));
    }

    /// Calls of a function are routed in another way: composes again what depends on that.
    pub(crate) fn wake(&self, function: &str) {
        let all: Vec<Arc<Callers>> = self.lock().iter().filter_map(Weak::upgrade).collect();
        for callers in all {
            callers.of(function).iter().for_each(|key| callers.queue.wake(key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(functions: &[&str]) -> BTreeSet<String> {
        functions.iter().map(|function| (*function).to_owned()).collect()
    }

    #[test]
    fn composite_resources_depend_on_what_they_called_last() {
        let mut state = State::default();
        let (one, two) = (Key::new("", "one"), Key::new("", "two"));
        state.add(&one, "f");
        state.add(&one, "g");
        state.add(&two, "f");
        assert_eq!(state.by_function["f"], [one.clone(), two.clone()].into());
        state.forget(&one);
        assert_eq!(state.by_function.keys().collect::<Vec<_>>(), ["f"]);
        assert_eq!(state.by_key, [(two.clone(), set(&["f"]))].into());
        state.forget(&two);
        assert!(state.by_function.is_empty() && state.by_key.is_empty());
    }
}
