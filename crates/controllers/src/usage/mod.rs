//! Usages: while something uses an object, the object cannot be deleted.
//!
//! The controller marks what is used with a label; [`Protection`] is asked before anything with that label is deleted
//! and refuses as long as a usage says so. Three kinds of usages share one procedure.

mod protection;
mod reconcile;

pub use protection::Protection;

use crate::plane::Plane;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio::task::AbortHandle;
use transom_engine::{
    Depth, Following, Key, Next, Pace, Queue, Reconciler, Result, RunLog, Running, Subscription, start,
    wake_itself,
};
use transom_object::GroupVersionKind;
use transom_xapi::constants::{group, kind};

/// The kinds of usages.
pub(crate) fn kinds() -> [GroupVersionKind; 3] {
    [
        GroupVersionKind::new(group::PROTECTION, "v1beta1", kind::USAGE),
        GroupVersionKind::new(group::PROTECTION, "v1beta1", kind::CLUSTER_USAGE),
        GroupVersionKind::new(group::APIEXTENSIONS, "v1beta1", kind::USAGE),
    ]
}

/// The controllers of usages.
pub(crate) struct UsageControllers {
    _running: Vec<Running>,
    _subscriptions: Vec<Subscription>,
    attempts: AbortHandle,
}

impl Drop for UsageControllers {
    fn drop(&mut self) {
        self.attempts.abort();
    }
}

struct Usages {
    plane: Arc<Plane>,
    protection: Arc<Protection>,
    name: String,
    gvk: GroupVersionKind,
    /// What is used, and what uses it.
    following: Arc<Following>,
}

impl UsageControllers {
    pub(crate) fn start(plane: &Arc<Plane>, protection: &Arc<Protection>) -> Self {
        let (mut running, mut subscriptions) = (Vec::new(), Vec::new());
        for gvk in kinds() {
            let queue = Arc::new(Queue::new(Pace::default()));
            subscriptions.push(plane.watches.subscribe(&gvk, Depth::Whole, protection.cache()));
            subscriptions.push(plane.watches.subscribe(&gvk, Depth::Header, wake_itself(queue.clone())));
            let name = format!("usage/{}.{}", gvk.kind.to_lowercase(), gvk.group);
            let (watches, metrics) = (&plane.watches, &plane.metrics);
            let following =
                Following::start(watches, metrics, &name, queue.clone(), |change| change.is_of_identity());
            let (plane, protection, metrics) = (plane.clone(), protection.clone(), metrics.clone());
            let usages = Usages { plane, protection, name, gvk, following };
            running.push(start(Arc::new(usages), queue, metrics));
        }
        let attempts = protection::record(plane.cluster.clone(), protection).abort_handle();
        Self { _running: running, _subscriptions: subscriptions, attempts }
    }
}

impl Reconciler for Usages {
    fn name(&self) -> &str {
        &self.name
    }

    fn reconcile<'a>(&'a self, key: &'a Key, log: &'a RunLog) -> BoxFuture<'a, Result<Next>> {
        Box::pin(self.run(key, log))
    }
}
