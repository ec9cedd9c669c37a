//! Claims: one controller per definition that offers one.
//!
//! The claim is written before the composite resource that it brings about, so that a crash in between leaks nothing.

mod reconcile;

use crate::engine::{Change, Depth, Key, Next, Pace, Pass, Queue, Reconciler, Running, Subscription, start};
use crate::error::Result;
use crate::metrics::CountedWatch;
use crate::plane::Plane;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use transom_object::GroupVersionKind;
use transom_xapi::definition::Definition;

/// The controller of one definition's claims; it stops when dropped.
pub(crate) struct ClaimController {
    _running: Running,
    _subscriptions: [(Subscription, CountedWatch); 2],
    pub(crate) gvk: GroupVersionKind,
}

/// Reconciles the claims of one definition.
struct Claims {
    plane: Arc<Plane>,
    /// `claim/<definition>`.
    name: String,
    definition: String,
    gvk: GroupVersionKind,
    composite: GroupVersionKind,
}

impl ClaimController {
    pub(crate) fn start(plane: &Arc<Plane>, definition: &Definition) -> Self {
        let queue = Arc::new(Queue::new(Pace::default()));
        let gvk = definition.claim_type().unwrap_or_default();
        let claims = Claims {
            plane: plane.clone(),
            name: format!("claim/{}", definition.metadata.name),
            definition: definition.metadata.name.clone(),
            gvk: gvk.clone(),
            composite: definition.composite_type(),
        };
        let own = queue.clone();
        let own = move |change: &Change<'_>| {
            if let Some(object) = change.object() {
                change.wake(&own, &object.key);
            }
        };
        let bound = queue.clone();
        let bound = move |change: &Change<'_>| {
            // The claim that it is bound to, and the one that it was bound to.
            for seen in [change.before, change.after].into_iter().flatten() {
                if let Some(claim) = claim_key(&seen.object) {
                    change.wake(&bound, &claim);
                }
            }
        };
        let own = plane.watches.subscribe(&gvk, Depth::Header, Arc::new(own));
        let part = Depth::Part("claim", claim_ref);
        let bound = plane.watches.subscribe(&claims.composite, part, Arc::new(bound));
        let counted = |kind| plane.metrics.watching(&claims.name, kind);
        let subscriptions = [(own, counted("Claim")), (bound, counted("CompositeResource"))];
        let running = start(Arc::new(claims), queue, plane.metrics.clone());
        Self { _running: running, _subscriptions: subscriptions, gvk }
    }
}

fn claim_ref(xr: &Value) -> Value {
    xr.pointer("/spec/claimRef").cloned().unwrap_or_default()
}

fn claim_key(reference: &Value) -> Option<Key> {
    let text = |field: &str| reference.get(field).and_then(Value::as_str);
    Some(Key::new(text("namespace")?, text("name")?))
}

impl Reconciler for Claims {
    fn name(&self) -> &str {
        &self.name
    }

    fn reconcile<'a>(&'a self, key: &'a Key, pass: &'a Pass) -> BoxFuture<'a, Result<Next>> {
        Box::pin(self.run(key, pass))
    }
}
