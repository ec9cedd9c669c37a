//! Compositions and their revisions: a Composition that changes gets a revision, and a condition of the revision shows
//! whether its pipeline can run.

mod revisions;
mod validity;

pub(crate) use validity::verdict;

use crate::catalog::kinds;
use crate::plane::Plane;
use serde_json::Value;
use std::sync::Arc;
use transom_engine::{Change, Controller, Depth, Key, Observer, Pace, Queue};
use transom_object::meta;
use transom_xapi::constants::label;

/// Starts the controllers of Compositions and of their revisions.
pub(crate) fn start(plane: &Arc<Plane>) -> [Controller; 2] {
    let mut compositions = plane.controller(revisions::NAME, Pace::default());
    let mut revisions = plane.controller(validity::NAME, Pace::default());
    compositions.watch_own(&kinds::composition(), Depth::Header);
    let wake = wake_owner(compositions.queue().clone());
    compositions.watch(&kinds::revision(), Depth::Part("composition", owner), wake);
    revisions.watch_own(&kinds::revision(), Depth::Header);
    // The watch of the catalogue, so that the catalogue is up to date when a key is woken.
    let wake = wake_users(plane.clone(), revisions.queue().clone());
    revisions.watch(&kinds::function_revision(), Depth::Whole, wake);
    [
        compositions.start(revisions::Compositions { plane: plane.clone() }),
        revisions.start(validity::Revisions { plane: plane.clone() }),
    ]
}

type Wake = Arc<dyn Observer>;

/// The Composition that controls a revision.
fn owner(revision: &Value) -> Value {
    meta::controller_of(revision).map_or(Value::Null, |c| c.name.into())
}

/// A revision wakes the Composition that controls it or did, and the Composition that its label names.
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
            let composition = &revision.spec.composition;
            // Any function may have the image that a step pins.
            let pins = composition.pipeline.iter().any(|step| step.function.is_some());
            if pins || composition.function_names().any(|name| name == function) {
                change.wake(&queue, &Key::new("", &*revision.metadata.name));
            }
        }
    })
}
