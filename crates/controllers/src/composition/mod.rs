//! Compositions and their revisions: a Composition that changes gets a revision, and a revision is told whether its
//! pipeline can run.

mod revisions;
mod validity;

pub(crate) use validity::verdict;

use crate::catalog::kinds;
use crate::plane::Plane;
use serde_json::Value;
use std::sync::Arc;
use transom_engine::{Change, Depth, Key, Pace, Queue, Running, Subscription, start, wake_itself};
use transom_object::meta;
use transom_xapi::constants::label;

/// The controllers of Compositions and of their revisions.
pub(crate) struct CompositionControllers {
    _running: Vec<Running>,
    _subscriptions: Vec<Subscription>,
}

impl CompositionControllers {
    pub(crate) fn start(plane: &Arc<Plane>) -> Self {
        let compositions = Arc::new(Queue::new(Pace::default()));
        let revisions = Arc::new(Queue::new(Pace::default()));
        let running = vec![
            start(
                Arc::new(revisions::Compositions { plane: plane.clone() }),
                compositions.clone(),
                plane.metrics.clone(),
            ),
            start(
                Arc::new(validity::Revisions { plane: plane.clone() }),
                revisions.clone(),
                plane.metrics.clone(),
            ),
        ];
        let watches = &plane.watches;
        let subscriptions = vec![
            watches.subscribe(&kinds::composition(), Depth::Header, wake_itself(compositions.clone())),
            watches.subscribe(
                &kinds::revision(),
                Depth::Part("composition", owner),
                wake_owner(compositions),
            ),
            watches.subscribe(&kinds::revision(), Depth::Header, wake_itself(revisions.clone())),
            // The catalogue's own watch, so that it knows by the time that anybody is woken.
            watches.subscribe(
                &kinds::function_revision(),
                Depth::Whole,
                wake_users(plane.clone(), revisions),
            ),
        ];
        Self { _running: running, _subscriptions: subscriptions }
    }
}

type Wake = Arc<dyn transom_engine::Observer>;

/// The Composition that controls a revision.
fn owner(revision: &Value) -> Value {
    meta::controller_of(revision).map_or(Value::Null, |c| c.name.into())
}

/// The Composition that a revision belongs to, the one that it belonged to, and the one that it is named after.
fn wake_owner(queue: Arc<Queue>) -> Wake {
    Arc::new(move |change: &Change<'_>| {
        for revision in [change.before, change.after].into_iter().flatten() {
            let named = revision.labels.get(label::COMPOSITION_NAME).map(String::as_str);
            for composition in [revision.object.as_str(), named].into_iter().flatten() {
                change.wake(&queue, &Key::new("", composition));
            }
        }
    })
}

/// A revision of a function wakes the revisions of Compositions that use the function.
fn wake_users(plane: Arc<Plane>, queue: Arc<Queue>) -> Wake {
    Arc::new(move |change: &Change<'_>| {
        let Some(function) = change.object().and_then(|f| f.labels.get(label::PACKAGE)) else { return };
        for revision in plane.catalog.revisions.all() {
            if revision.spec.composition.function_names().any(|name| name == function) {
                change.wake(&queue, &Key::new("", &*revision.metadata.name));
            }
        }
    })
}
