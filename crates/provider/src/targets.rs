//! The managed resources that selectors choose from, by their controllers, and the keys that wait for them.
//!
//! Most selectors select a sibling: an object with the same controller. An index by controller finds it, and wakes those that
//! wait for it, at a cost that does not grow with the number of objects.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_engine::{Change, Depth, Key, Mirror, Observer, Queue, Seen, Subscription, Watches};
use transom_object::{GroupVersionKind, meta};

/// What mirrors of managed resources and of usages keep: the uid of the controller.
pub(crate) const CONTROLLER: Depth = Depth::Part("controller", controller_uid);

fn controller_uid(object: &Value) -> Value {
    meta::controller_of(object).map_or(Value::Null, |controller| controller.uid.into())
}

/// The key of a controller's queue, which waits.
pub(crate) type Waiting = (Arc<str>, Key);

/// An index, and the uid of the controller whose objects are waited for.
type Awaited = (Arc<Index>, String);

/// All kinds that are selected from.
#[derive(Default)]
pub(crate) struct Targets {
    kinds: Mutex<BTreeMap<GroupVersionKind, (Subscription, Arc<Index>)>>,
    /// For which controllers' objects each key waits.
    of: Mutex<HashMap<Waiting, Vec<Awaited>>>,
}

/// The objects of one kind.
#[derive(Default)]
pub(crate) struct Index(Mutex<State>);

#[derive(Default)]
struct State {
    by_controller: HashMap<String, BTreeSet<Key>>,
    waiting: HashMap<String, BTreeMap<Waiting, Arc<Queue>>>,
}

impl Index {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The objects of a namespace that an object controls.
    pub(crate) fn controlled_by(&self, controller: &str, namespace: &str) -> Vec<Key> {
        let state = self.lock();
        let keys = state.by_controller.get(controller).into_iter().flatten();
        keys.filter(|key| &*key.namespace == namespace).cloned().collect()
    }
}

impl Observer for Index {
    fn changed(&self, change: &Change<'_>) {
        let mut state = self.lock();
        let controller = |seen: Option<&Seen>| seen.and_then(|seen| seen.object.as_str().map(str::to_owned));
        let (before, after) = (controller(change.before), controller(change.after));
        if let (Some(uid), Some(seen)) = (&before, change.before)
            && before != after
            && let Some(keys) = state.by_controller.get_mut(uid)
        {
            keys.remove(&seen.key);
            if keys.is_empty() {
                state.by_controller.remove(uid);
            }
        }
        if let (Some(uid), Some(seen)) = (&after, change.after) {
            state.by_controller.entry(uid.clone()).or_default().insert(seen.key.clone());
        }
        for uid in BTreeSet::from([before, after]).into_iter().flatten() {
            for ((_, key), queue) in state.waiting.get(&uid).into_iter().flatten() {
                change.wake(queue, key);
            }
        }
    }
}

impl Targets {
    /// The objects of a kind, which is watched from now on.
    pub(crate) fn kind(&self, watches: &Watches, gvk: &GroupVersionKind) -> (Arc<Mirror>, Arc<Index>) {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let (subscription, index) = kinds.entry(gvk.clone()).or_insert_with(|| {
            let index = Arc::<Index>::default();
            (watches.subscribe(gvk, CONTROLLER, index.clone()), index)
        });
        (subscription.mirror().clone(), index.clone())
    }

    /// Wakes a key when an object changes that this controller controls.
    pub(crate) fn wait(&self, index: &Arc<Index>, controller: &str, waiting: &Waiting, queue: &Arc<Queue>) {
        let entry = index.clone();
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        of.entry(waiting.clone()).or_default().push((entry, controller.to_owned()));
        let mut state = index.lock();
        state.waiting.entry(controller.to_owned()).or_default().insert(waiting.clone(), queue.clone());
    }

    /// A key no longer waits.
    pub(crate) fn forget(&self, waiting: &Waiting) {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, controller) in of.remove(waiting).into_iter().flatten() {
            let mut state = index.lock();
            if let Some(keys) = state.waiting.get_mut(&controller) {
                keys.remove(waiting);
                if keys.is_empty() {
                    state.waiting.remove(&controller);
                }
            }
        }
    }
}
