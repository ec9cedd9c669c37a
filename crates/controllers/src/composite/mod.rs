//! Composite resources: one controller per definition, started and stopped with it.
//!
//! ```text
//! read → paused? → deleted? → finalizer, Composition, revision → observe → compose → execute → publish → status
//! ```
//! `compose` decides and `execute` does; `prepare` is what must be settled before there is anything to compose.

mod execute;
mod nesting;
mod pause;
mod prepare;
mod publish;
mod punctual;
mod reconcile;
mod report;
mod rights;
mod status;
mod undeclared;
mod world;

pub(crate) use nesting::Nesting;

use crate::catalog::kinds;
use crate::plane::Plane;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use transom_compose::Requirements;
use transom_engine::{
    Change, Controller, Dependency, Depth, Following, Key, Mirror, Next, Observer, Pace, Queue, Reconciler,
    Result, RunLog,
};
use transom_object::GroupVersionKind;
use transom_xapi::CompositionRevision;
use transom_xapi::composite::{Composite, Schema};
use transom_xapi::constants::condition;
use transom_xapi::definition::Definition;
use transom_xapi::{conditions, selection};
use world::Watching;

/// The controller of one definition's composite resources; it stops when dropped.
pub(crate) struct CompositeController {
    _controller: Controller,
}

/// Reconciles the composite resources of one definition.
struct Composites {
    plane: Arc<Plane>,
    /// `composite/<definition>`.
    name: String,
    definition: Arc<Definition>,
    gvk: GroupVersionKind,
    schema: Schema,
    queue: Arc<Queue>,
    /// What each composes and requires.
    following: Arc<Following>,
    /// What the steps of each required the last time.
    required: Mutex<HashMap<Key, Requirements>>,
}

/// The name of the controller of a definition's composite resources.
pub(crate) fn controller_name(definition: &str) -> String {
    format!("composite/{definition}")
}

impl CompositeController {
    pub(crate) fn start(plane: &Arc<Plane>, definition: Arc<Definition>) -> Self {
        let longest_backoff = Duration::from_secs(30);
        let pace = Pace { longest_backoff, circuit_breaker: true, ..Pace::default() };
        let name = controller_name(&definition.metadata.name);
        let (gvk, schema) = (definition.composite_type(), definition.schema());
        let mut controller = plane.controller(&*name, pace);
        let queue = controller.queue().clone();
        let following = controller.follow(|_| true);
        let own = controller.watch_own(&gvk, Depth::Part("composition", part));
        controller.counted("CompositeResource");
        let wake = wake_followers(queue.clone(), own, gvk.clone(), schema);
        controller.watch(&kinds::revision(), Depth::Whole, Arc::new(wake));
        controller.counted("CompositionRevision");
        let composites = Composites {
            plane: plane.clone(),
            name,
            definition,
            gvk,
            schema,
            queue,
            following,
            required: Mutex::default(),
        };
        Self { _controller: controller.start(composites) }
    }
}

/// What the controller remembers of each composite resource: which revisions concern it.
fn part(xr: &Value) -> Value {
    let modern = xr.pointer("/spec/crossplane").cloned();
    let machinery = modern.or_else(|| xr.get("spec").cloned()).unwrap_or_default();
    let mut kept = json!({});
    for field in ["compositionRef", "compositionUpdatePolicy"] {
        if let Some(value) = machinery.get(field) {
            kept[field] = value.clone();
        }
    }
    kept
}

/// A revision wakes those that follow its Composition, and those that have none yet.
fn wake_followers(
    queue: Arc<Queue>,
    mirror: Arc<Mirror>,
    gvk: GroupVersionKind,
    schema: Schema,
) -> impl Observer {
    move |change: &Change<'_>| {
        let Some(seen) = change.after else { return };
        let Ok(revision) = CompositionRevision::deserialize(&*seen.object) else { return };
        // A verdict that only confirms what composing did not wait for is no news.
        let before = change.before.and_then(|b| CompositionRevision::deserialize(&*b.object).ok());
        if before.is_some_and(|before| confirms(&before, &revision)) {
            return;
        }
        let of = &revision.spec.composition.composite_type_ref;
        if of.api_version != gvk.api_version() || of.kind != gvk.kind {
            return;
        }
        for xr in mirror.all() {
            let kept = &*xr.object;
            let spec = if schema == Schema::Legacy { kept.clone() } else { json!({"crossplane": kept}) };
            let object = json!({"apiVersion": gvk.api_version(), "kind": gvk.kind, "spec": spec});
            let composite = Composite::new(object, schema);
            if composite.composition_ref().is_none() || selection::follows(&composite, &revision) {
                change.wake(&queue, &xr.key);
            }
        }
    }
}

/// Whether a revision is what it was, and valid where nothing was known about that.
fn confirms(before: &CompositionRevision, after: &CompositionRevision) -> bool {
    let valid =
        |r: &CompositionRevision| conditions::get(&r.status.conditions, condition::VALID_PIPELINE).status;
    let unchanged = before.spec == after.spec
        && before.metadata.labels == after.metadata.labels
        && before.metadata.owner_references == after.metadata.owner_references;
    unchanged && (valid(before) == valid(after) || (valid(before) == "Unknown" && valid(after) == "True"))
}

impl Composites {
    fn required(&self) -> MutexGuard<'_, HashMap<Key, Requirements>> {
        self.required.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what steps required, in place of what they required before.
    fn remember(&self, key: &Key, requirements: &Requirements) {
        if requirements.is_empty() {
            self.required().remove(key);
        } else {
            self.required().insert(key.clone(), requirements.clone());
        }
    }

    fn forget(&self, key: &Key) {
        self.following.forget(key);
        self.required().remove(key);
    }
}

impl Watching for Composites {
    fn depend(&self, key: &Key, dependency: Dependency) {
        if self.plane.options.realtime {
            self.following.add(key, dependency);
        }
    }

    fn mirror(&self, gvk: &GroupVersionKind) -> Option<Arc<Mirror>> {
        self.following.mirror(gvk)
    }
}

impl Reconciler for Composites {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        self.run(key, log).await
    }
}

/// Connection details, by key.
use transom_xapi::connection::Details;
