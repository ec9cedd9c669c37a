//! Starting and stopping a controller, written once for all kinds.

use crate::engine::Engine;
use crate::following::{Following, Matters};
use crate::metrics::CountedWatch;
use crate::mirror::{Mirror, Observer, wake_itself};
use crate::pace::Pace;
use crate::queue::Queue;
use crate::sighting::Depth;
use crate::watches::Subscription;
use crate::worker::{Reconciler, Running, Share, start};
use std::sync::Arc;
use transom_object::GroupVersionKind;

/// A controller that is being put together: its queue exists, its reconciler does not run yet.
pub struct ControllerBuilder<'a> {
    engine: &'a Engine,
    name: String,
    queue: Arc<Queue>,
    watches: Vec<(Subscription, Option<CountedWatch>)>,
    divided: bool,
}

/// A running controller: workers, and the watches that wake its keys. It stops when dropped.
pub struct Controller {
    running: Running,
    _watches: Vec<(Subscription, Option<CountedWatch>)>,
}

impl Controller {
    /// The queue of the controller's keys.
    pub fn queue(&self) -> &Arc<Queue> {
        self.running.queue()
    }
}

impl<'a> ControllerBuilder<'a> {
    pub(crate) fn new(engine: &'a Engine, name: String, pace: Pace) -> Self {
        Self { engine, name, queue: Arc::new(Queue::new(pace)), watches: Vec::new(), divided: false }
    }

    /// The queue of the controller's keys, for observers to wake.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// What the controller's keys depend on: changes for which `matters` is true wake them.
    pub fn follow(&self, matters: Matters) -> Arc<Following> {
        let Engine { watches, metrics, sweep_interval, .. } = self.engine;
        Following::start(watches, metrics, &self.name, self.queue.clone(), matters, *sweep_interval)
    }

    /// Watches the controller's own kind: a change of an object wakes its key.
    pub fn watch_own(&mut self, gvk: &GroupVersionKind, depth: Depth) -> Arc<Mirror> {
        self.watch(gvk, depth, wake_itself(self.queue.clone()))
    }

    /// Watches a kind: the observer decides which keys a change wakes.
    pub fn watch(
        &mut self,
        gvk: &GroupVersionKind,
        depth: Depth,
        observer: Arc<dyn Observer>,
    ) -> Arc<Mirror> {
        let subscription = self.engine.watches.subscribe(gvk, depth, observer);
        let mirror = subscription.mirror().clone();
        self.watches.push((subscription, None));
        mirror
    }

    /// Counts the watch that was added last in the metrics, as a watch of this type.
    pub fn counted(&mut self, watch_type: &'static str) {
        if let Some((_, counted)) = self.watches.last_mut() {
            *counted = Some(self.engine.metrics.watching(&self.name, watch_type));
        }
    }

    /// Divides the keys between the processes that share the work, instead of leaving all to the leader.
    pub fn divide(&mut self) {
        self.divided = true;
    }

    /// Starts to reconcile.
    pub fn start(self, reconciler: impl Reconciler) -> Controller {
        let share = Share { ownership: self.engine.ownership.clone(), divided: self.divided };
        let metrics = self.engine.metrics.clone();
        let running = start(self.name, Arc::new(reconciler), self.queue, metrics, share);
        Controller { running, _watches: self.watches }
    }
}
