//! Claims: one controller per definition that offers one.
//!
//! The claim is written before the composite resource that it brings about, so that a crash in between leaks nothing.

mod reconcile;

use crate::catalog::kinds;
use crate::plane::Plane;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use transom_engine::{
    Change, CountedWatch, Dependency, Depth, Following, Key, Next, Pace, Queue, Reconciler, Result, RunLog,
    Running, Subscription, start, wake_itself,
};
use transom_object::GroupVersionKind;
use transom_xapi::definition::Definition;

/// The controller of one definition's claims; it stops when dropped.
pub(crate) struct ClaimController {
    _running: Running,
    _subscriptions: [(Subscription, CountedWatch); 2],
    serves: Offer,
}

/// What a definition says of its claims.
#[derive(Clone, PartialEq, Eq)]
struct Offer {
    gvk: GroupVersionKind,
    composite: GroupVersionKind,
    /// The definition insists on a Composition.
    enforced: bool,
}

impl Offer {
    fn of(definition: &Definition) -> Self {
        Self {
            gvk: definition.claim_type().unwrap_or_default(),
            composite: definition.composite_type(),
            enforced: definition.spec.enforced_composition_ref.is_some(),
        }
    }
}

/// Reconciles the claims of one definition.
struct Claims {
    plane: Arc<Plane>,
    /// `claim/<definition>`.
    name: String,
    offer: Offer,
    /// Which secrets each claim is concerned with: the one it asks for, and the one that is copied.
    secrets: Arc<Following>,
}

impl ClaimController {
    pub(crate) fn start(plane: &Arc<Plane>, definition: &Definition) -> Self {
        let queue = Arc::new(Queue::new(Pace::default()));
        let offer = Offer::of(definition);
        let name = format!("claim/{}", definition.metadata.name);
        let secrets = Following::start(&plane.watches, &plane.metrics, &name, queue.clone(), |_| true);
        let claims = Claims { plane: plane.clone(), name, offer: offer.clone(), secrets };
        let bound = queue.clone();
        let bound = move |change: &Change<'_>| {
            // The claim that it is bound to, and the one that it was bound to.
            for seen in [change.before, change.after].into_iter().flatten() {
                if let Some(claim) = claim_key(&seen.object) {
                    change.wake(&bound, &claim);
                }
            }
        };
        let own = plane.watches.subscribe(&offer.gvk, Depth::Header, wake_itself(queue.clone()));
        let part = Depth::Part("claim", claim_ref);
        let bound = plane.watches.subscribe(&offer.composite, part, Arc::new(bound));
        let counted = |kind| plane.metrics.watching(&claims.name, kind);
        let subscriptions = [(own, counted("Claim")), (bound, counted("CompositeResource"))];
        let running = start(Arc::new(claims), queue, plane.metrics.clone());
        Self { _running: running, _subscriptions: subscriptions, serves: offer }
    }

    /// Whether the definition has changed in what the controller depends on.
    pub(crate) fn is_stale(&self, definition: &Definition) -> bool {
        self.serves != Offer::of(definition)
    }
}

impl Claims {
    /// A claim is concerned with these secrets and no others. They are watched because a composite resource that
    /// publishes new details may otherwise look as it did before, and because a copy that is gone must come back.
    fn concern(&self, key: &Key, secrets: impl IntoIterator<Item = (String, String)>) {
        if !self.plane.options.realtime {
            return;
        }
        let named = |(namespace, name)| Dependency::Named { gvk: kinds::secret(), namespace, name };
        self.secrets.replace(key, &secrets.into_iter().map(named).collect());
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

    fn reconcile<'a>(&'a self, key: &'a Key, log: &'a RunLog) -> BoxFuture<'a, Result<Next>> {
        Box::pin(self.run(key, log))
    }
}
