//! What triggers a reconcile of a managed resource beside its own changes: other objects, and what its provider watches itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use transom_engine::{Dependency, Following, Key, Queue};

/// Triggers reconciles of one object. Equal if it is of the same object.
#[derive(Clone)]
pub struct Waker {
    controller: Arc<str>,
    key: Key,
    queue: Arc<Queue>,
}

impl Waker {
    /// For an object of a controller.
    pub fn new(controller: &Arc<str>, key: &Key, queue: &Arc<Queue>) -> Self {
        Self { controller: controller.clone(), key: key.clone(), queue: queue.clone() }
    }

    /// Triggers a reconcile.
    pub fn wake(&self) {
        self.queue.wake(&self.key);
    }

    fn identity(&self) -> (&str, &Key) {
        (&self.controller, &self.key)
    }
}

impl PartialEq for Waker {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Waker {}

impl PartialOrd for Waker {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waker {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.identity().cmp(&other.identity())
    }
}

/// What the reconcile of a managed resource follows.
#[derive(Clone, Copy)]
pub(crate) struct Followed<'a> {
    pub(crate) controller: &'a Arc<str>,
    pub(crate) key: &'a Key,
    pub(crate) queue: &'a Arc<Queue>,
    pub(crate) following: &'a Following,
    /// Whether a failure is due to what it follows.
    pub(crate) waits: &'a AtomicBool,
}

impl Followed<'_> {
    pub(crate) fn follow(&self, dependency: Dependency) {
        self.following.add(self.key, dependency);
    }

    pub(crate) fn wait(&self) {
        self.waits.store(true, Ordering::Relaxed);
    }

    pub(crate) fn waker(&self) -> Waker {
        Waker::new(self.controller, self.key, self.queue)
    }
}
