//! Claims: one controller per definition that offers a claim.
//!
//! The claim is written before its composite resource is created, so that a crash in between leaks nothing.

mod reconcile;
mod secret;

use crate::catalog::kinds;
use crate::plane::Plane;
use serde_json::Value;
use std::sync::Arc;
use transom_engine::{Change, Controller, Dependency, Depth, Following, Key, Observer, Pace, Queue};
use transom_object::GroupVersionKind;
use transom_xapi::definition::Definition;

/// The controller of one definition's claims; it stops when dropped.
pub(crate) struct ClaimController {
    _controller: Controller,
    serves: Offer,
}

/// What a definition specifies about its claims.
#[derive(Clone, PartialEq, Eq)]
struct Offer {
    gvk: GroupVersionKind,
    composite: GroupVersionKind,
    /// Whether the definition enforces a Composition.
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
    /// The Secrets of each claim: the one that it asks for, and the one that is copied.
    secrets: Arc<Following>,
}

impl ClaimController {
    pub(crate) fn start(plane: &Arc<Plane>, definition: &Definition) -> Self {
        let offer = Offer::of(definition);
        let name = format!("claim/{}", definition.metadata.name);
        let mut controller = plane.controller(&*name, Pace::default());
        controller.divide();
        let secrets = controller.follow(|_| true);
        controller.watch_own(&offer.gvk, Depth::Header);
        controller.counted("Claim");
        let wake = wake_bound(controller.queue().clone());
        controller.watch(&offer.composite, Depth::Part("claim", claim_ref), wake);
        controller.counted("CompositeResource");
        let claims = Claims { plane: plane.clone(), name, offer: offer.clone(), secrets };
        Self { _controller: controller.start(claims), serves: offer }
    }

    /// Whether the definition changed in a way that requires a restart.
    pub(crate) fn is_stale(&self, definition: &Definition) -> bool {
        self.serves != Offer::of(definition)
    }
}

impl Claims {
    /// Makes changes of these Secrets, and of no others, wake the claim. New connection details do not change the
    /// composite resource that publishes them, and a copy that was deleted must be made again.
    fn track_secrets(&self, key: &Key, secrets: impl IntoIterator<Item = (String, String)>) {
        if !self.plane.options.realtime {
            return;
        }
        let named = |(namespace, name)| Dependency::Named { gvk: kinds::secret(), namespace, name };
        self.secrets.replace(key, &secrets.into_iter().map(named).collect());
    }
}

/// A composite resource wakes the claim that it is bound to, and the claim that it was bound to.
fn wake_bound(queue: Arc<Queue>) -> Arc<dyn Observer> {
    Arc::new(move |change: &Change<'_>| {
        for seen in [change.before, change.after].into_iter().flatten() {
            if let Some(claim) = claim_key(&seen.object) {
                change.wake(&queue, &claim);
            }
        }
    })
}

fn claim_ref(xr: &Value) -> Value {
    xr.pointer("/spec/claimRef").cloned().unwrap_or_default()
}

fn claim_key(reference: &Value) -> Option<Key> {
    let text = |field: &str| reference.get(field).and_then(Value::as_str);
    Some(Key::new(text("namespace")?, text("name")?))
}
