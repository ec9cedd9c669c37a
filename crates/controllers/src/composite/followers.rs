//! Which composite resources a new revision of a Composition concerns.

use super::Queue;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_engine::{Change, Key, Listing, Observer, wake_itself};
use transom_object::GroupVersionKind;
use transom_xapi::composition::NameReference;
use transom_xapi::conditions;
use transom_xapi::constants::{condition, label};
use transom_xapi::{CompositionRevision, composite::UpdatePolicy};

const COMPOSITION_REF: &str = "compositionRef";
const UPDATE_POLICY: &str = "compositionUpdatePolicy";
const REVISION_SELECTOR: &str = "compositionRevisionSelector";

/// The composite resources of a definition by the Composition whose new revisions they use, or `None` if they have no
/// Composition yet. Composite resources that keep their revision are not in it.
#[derive(Default)]
pub(super) struct Followers(Mutex<BTreeMap<Option<String>, BTreeSet<Key>>>);

/// What is kept of each composite resource.
pub(super) fn part(xr: &Value) -> Value {
    let modern = xr.pointer("/spec/crossplane").cloned();
    let machinery = modern.or_else(|| xr.get("spec").cloned()).unwrap_or_default();
    let mut kept = json!({});
    for field in [COMPOSITION_REF, UPDATE_POLICY, REVISION_SELECTOR] {
        if let Some(value) = machinery.get(field) {
            kept[field] = value.clone();
        }
    }
    kept
}

/// The Composition whose new revisions a composite resource uses; `None` if it keeps its revision. One with a selector may be
/// waiting for the first revision that has the labels.
fn followed(part: &Value) -> Option<Option<String>> {
    let reference = part.get(COMPOSITION_REF).and_then(|r| NameReference::deserialize(r).ok());
    let policy = part.get(UPDATE_POLICY).and_then(Value::as_str).and_then(UpdatePolicy::parse);
    match reference {
        None => Some(None),
        Some(_) if policy == Some(UpdatePolicy::Manual) && part.get(REVISION_SELECTOR).is_none() => None,
        Some(NameReference { name }) => Some(Some(name)),
    }
}

impl Followers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Option<String>, BTreeSet<Key>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: &Change<'_>) {
        let mut all = self.lock();
        if let Some((before, composition)) = change.before.and_then(|b| Some((b, followed(&b.object)?)))
            && let Some(keys) = all.get_mut(&composition)
        {
            keys.remove(&before.key);
            if keys.is_empty() {
                all.remove(&composition);
            }
        }
        if let Some((after, composition)) = change.after.and_then(|a| Some((a, followed(&a.object)?))) {
            all.entry(composition).or_default().insert(after.key.clone());
        }
    }

    /// Those that use new revisions of a Composition, and those that have none yet.
    fn of(&self, composition: Option<&str>) -> Vec<Key> {
        let all = self.lock();
        let of_none = all.get(&None).into_iter().flatten();
        let followers = composition.and_then(|name| all.get(&Some(name.to_owned())));
        of_none.chain(followers.into_iter().flatten()).cloned().collect()
    }
}

/// Wakes the composite resources of a definition when they change, and keeps their followers up to date.
pub(super) struct OwnChanges {
    followers: Arc<Followers>,
    waking: Arc<dyn Observer>,
}

impl OwnChanges {
    pub(super) fn new(followers: Arc<Followers>, queue: Arc<Queue>) -> Self {
        Self { followers, waking: wake_itself(queue) }
    }
}

impl Observer for OwnChanges {
    fn changed(&self, change: &Change<'_>) {
        self.followers.update(change);
        self.waking.changed(change);
    }

    fn listed(&self, listing: &Listing<'_>) {
        self.waking.listed(listing);
    }
}

/// Wakes the composite resources of a type that a revision concerns.
pub(super) fn wake_followers(
    followers: Arc<Followers>,
    queue: Arc<Queue>,
    gvk: GroupVersionKind,
) -> impl Observer {
    move |change: &Change<'_>| {
        let Some(seen) = change.after else { return };
        let Ok(revision) = CompositionRevision::deserialize(&*seen.object) else { return };
        // A verdict that only confirms what composing did not wait for changes nothing.
        let before = change.before.and_then(|b| CompositionRevision::deserialize(&*b.object).ok());
        if before.is_some_and(|before| confirms(&before, &revision)) {
            return;
        }
        let of = &revision.spec.composition.composite_type_ref;
        if of.api_version != gvk.api_version() || of.kind != gvk.kind {
            return;
        }
        for key in followers.of(revision.metadata.label(label::COMPOSITION_NAME)) {
            change.wake(&queue, &key);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_revisions_concern_those_that_follow_and_those_without_a_composition() {
        let of = |machinery: Value| followed(&part(&json!({"spec": {"crossplane": machinery}})));
        let reference = json!({"name": "c"});
        assert_eq!(of(json!({})), Some(None));
        assert_eq!(of(json!({"compositionUpdatePolicy": "Manual"})), Some(None));
        assert_eq!(of(json!({"compositionRef": reference})), Some(Some("c".to_owned())));
        let manual = json!({"compositionRef": reference, "compositionUpdatePolicy": "Manual"});
        assert_eq!(of(manual.clone()), None);
        assert_eq!(followed(&part(&json!({"spec": manual}))), None, "in the legacy layout, too");
        let mut selecting = manual;
        selecting["compositionRevisionSelector"] = json!({"matchLabels": {"a": "b"}});
        assert_eq!(of(selecting), Some(Some("c".to_owned())));
    }
}
