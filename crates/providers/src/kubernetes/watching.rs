//! Watches in the clusters of Objects: what changes there triggers a reconcile of those that are interested in it. One watch for
//! each kind of each cluster, which ends with the last interest in it.

use super::target::Target;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_engine::{Change, Depth, Observer, Subscription};
use transom_object::GroupVersionKind;
use transom_provider::Waker;

/// A kind of a cluster.
type Watched = (u64, GroupVersionKind);

/// What one object of the control plane is interested in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interest {
    /// The kind.
    pub(super) gvk: GroupVersionKind,
    /// In one namespace; none for all.
    pub(super) namespace: Option<String>,
    /// One object, whose every change matters; without it, what comes and goes, and changes of labels.
    pub(super) name: Option<String>,
}

impl Interest {
    fn concerns(&self, change: &Change<'_>) -> bool {
        let Some(object) = change.object() else { return false };
        let here = self.namespace.as_deref().is_none_or(|namespace| namespace == &*object.key.namespace);
        here && match &self.name {
            Some(name) => **name == *object.key.name,
            None => change.is_of_identity(),
        }
    }
}

/// Who is interested in objects of one kind.
#[derive(Default)]
struct Interested(Mutex<BTreeMap<Waker, Interest>>);

impl Interested {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Waker, Interest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Interested {
    fn changed(&self, change: &Change<'_>) {
        for (waker, interest) in &*self.lock() {
            if interest.concerns(change) {
                waker.wake();
            }
        }
    }
}

#[derive(Default)]
struct State {
    of: BTreeMap<Waker, Watched>,
    kinds: HashMap<Watched, (Subscription, Arc<Interested>)>,
}

/// All watches.
#[derive(Default)]
pub(super) struct Watching(Mutex<State>);

impl Watching {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces what an object is interested in. Call this before what it is interested in is read.
    pub(super) fn watch(&self, waker: &Waker, target: &Target, interest: Interest) {
        let watched = (target.id, interest.gvk.clone());
        // Dropped after the lock is released: dropping a subscription takes other locks.
        let _ended = {
            let mut state = self.lock();
            let before = state.of.insert(waker.clone(), watched.clone());
            let (_, interested) = state.kinds.entry(watched.clone()).or_insert_with(|| {
                let interested = Arc::<Interested>::default();
                (target.watches.subscribe(&watched.1, Depth::Header, interested.clone()), interested)
            });
            interested.lock().insert(waker.clone(), interest);
            before.filter(|before| *before != watched).and_then(|before| state.end(waker, &before))
        };
    }

    /// An object is no longer interested in anything.
    pub(super) fn forget(&self, waker: &Waker) {
        let _ended = {
            let mut state = self.lock();
            let before = state.of.remove(waker);
            before.and_then(|before| state.end(waker, &before))
        };
    }
}

impl State {
    /// Ends an interest, and returns the watch that no other interest needs.
    fn end(&mut self, waker: &Waker, watched: &Watched) -> Option<Subscription> {
        let (_, interested) = self.kinds.get(watched)?;
        let is_last = {
            let mut interested = interested.lock();
            interested.remove(waker);
            interested.is_empty()
        };
        if is_last { self.kinds.remove(watched).map(|(subscription, _)| subscription) } else { None }
    }
}
