//! Whether a provider is needed yet: one that can start without its managed resources is not run before the first of them
//! is active.

use super::{KeptRevision, mark_generation};
use crate::catalog::kinds;
use crate::managed;
use crate::plane::Plane;
use serde_json::Value;
use std::sync::Arc;
use transom_engine::{Change, ControllerBuilder, Key, Mirror};
use transom_packages::PackageKind;
use transom_packages::establish::runtime_activity;
use transom_xapi::conditions;
use transom_xapi::constants::{condition, kind, reason};
use transom_xapi::package::ObjectReference;

/// The definitions of managed resources, for a kind of package that has some.
pub(super) struct Activation(Option<Arc<Mirror>>);

impl Activation {
    /// Watches the definitions: one that becomes active wakes the revision that controls it, unless the runtime of that is
    /// active already.
    pub(super) fn watch(
        controller: &mut ControllerBuilder<'_>,
        of: PackageKind,
        revisions: Arc<Mirror>,
    ) -> Self {
        if of != PackageKind::Provider {
            return Self(None);
        }
        let queue = controller.queue().clone();
        let wake = move |change: &Change<'_>| {
            let active =
                |definition: &&_| managed::is_of_activation(change) && managed::is_active(definition);
            let revision = change.after.filter(active).and_then(managed::controlling_revision);
            let Some(key) = revision.map(|name| Key::new("", name)) else { return };
            let runs = revisions.get(&key).is_some_and(|seen| KeptRevision(&seen.object).runs());
            if !runs {
                change.wake(&queue, &key);
            }
        };
        Self(Some(controller.watch(&kinds::managed_definition(), managed::ACTIVATION, Arc::new(wake))))
    }

    /// Whether each of the definitions among these objects is active, as the watch shows them.
    pub(super) fn seen(&self, objects: &[ObjectReference]) -> Vec<bool> {
        let Some(mirror) = &self.0 else { return Vec::new() };
        let definitions = objects.iter().filter(|object| object.kind == kind::MRD);
        let is_active = |object: &ObjectReference| {
            let seen = mirror.get(&Key::new("", object.name.as_str()));
            seen.is_some_and(|seen| managed::is_active(&seen))
        };
        definitions.map(is_active).collect()
    }

    /// Records on a revision whether its runtime is needed.
    pub(super) fn mark(&self, plane: &Plane, revision: &mut Value, active: impl IntoIterator<Item = bool>) {
        if self.0.is_some() {
            let capabilities = transom_object::json::strings(&revision["status"]["capabilities"]);
            let was = conditions::get(&conditions::of(revision), condition::RUNTIME_ACTIVE);
            mark_generation(plane, revision, vec![runtime_activity(&capabilities, &was, active)]);
        }
    }
}

/// Whether the runtime of a provider's revision is not needed yet.
pub(super) fn is_awaited(revision: &Value) -> bool {
    let activity = conditions::get(&conditions::of(revision), condition::RUNTIME_ACTIVE);
    activity.reason == reason::AWAITING_ACTIVATION
}
