//! How an object chooses its revision: the fields of a composite resource or claim that a rollout writes. Pure.

use serde_json::{Map, Value, json};
use transom_xapi::composite::Layout;

const POLICY: &str = "compositionUpdatePolicy";
const REVISION: &str = "compositionRevisionRef";
pub(crate) const MANUAL: &str = "Manual";

/// The fields by which an object chooses its revision. A selector of revisions is not among them: a rollout leaves it alone,
/// and does not move an object to a revision that its selector does not allow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// `compositionUpdatePolicy`.
    pub(crate) policy: Option<String>,
    /// The name in `compositionRevisionRef`.
    pub(crate) revision: Option<String>,
}

impl Choice {
    /// What an object with this layout has. Claims keep these fields where legacy composite resources do.
    pub(crate) fn of(object: &Value, layout: Layout) -> Self {
        let fields = layout.machinery(object);
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        Self {
            policy: text(fields.and_then(|fields| fields.get(POLICY))),
            revision: text(fields.and_then(|fields| fields.get(REVISION)?.get("name"))),
        }
    }

    /// Stays at a revision.
    pub(crate) fn pinned(revision: &str) -> Self {
        Self { policy: Some(MANUAL.to_owned()), revision: Some(revision.to_owned()) }
    }

    pub(crate) fn is_manual(&self) -> bool {
        self.policy.as_deref() == Some(MANUAL)
    }

    /// Whether both mean the same. Without the policy `Manual` the control plane writes the revision by itself.
    pub(crate) fn means(&self, other: &Self) -> bool {
        self.policy == other.policy && (!self.is_manual() || self.revision == other.revision)
    }

    /// A merge patch that makes an object choose like this.
    pub(crate) fn patch(&self, layout: Layout) -> Value {
        let revision = self.revision.as_ref().map(|name| json!({"name": name}));
        self.fields(layout, [(POLICY, json!(self.policy)), (REVISION, json!(revision))])
    }

    /// A merge patch of the policy alone.
    pub(crate) fn policy_patch(&self, layout: Layout) -> Value {
        self.fields(layout, [(POLICY, json!(self.policy))])
    }

    fn fields<const N: usize>(&self, layout: Layout, fields: [(&str, Value); N]) -> Value {
        let fields: Map<String, Value> =
            fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
        match layout {
            Layout::Legacy => json!({"spec": fields}),
            Layout::Modern => json!({"spec": {"crossplane": fields}}),
        }
    }

    /// Gives an object this choice in memory.
    pub(crate) fn apply(&self, object: &mut Value, layout: Layout) {
        let Some(fields) = layout.machinery_mut(object) else { return };
        match &self.policy {
            Some(policy) => drop(fields.insert(POLICY.to_owned(), json!(policy))),
            None => drop(fields.remove(POLICY)),
        }
        match &self.revision {
            Some(name) => drop(fields.insert(REVISION.to_owned(), json!({"name": name}))),
            None => drop(fields.remove(REVISION)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(policy: Option<&str>, revision: Option<&str>) -> Choice {
        Choice { policy: policy.map(str::to_owned), revision: revision.map(str::to_owned) }
    }

    #[test]
    fn a_choice_is_read_and_patched_in_both_layouts() {
        for (layout, object) in [
            (Layout::Legacy, json!({"spec": {"compositionRevisionRef": {"name": "a"}, "x": 1}})),
            (
                Layout::Modern,
                json!({"spec": {"crossplane": {"compositionRevisionRef": {"name": "a"}}, "x": 1}}),
            ),
        ] {
            let mut object = object;
            let before = object.clone();
            assert_eq!(Choice::of(&object, layout), choice(None, Some("a")));
            Choice::pinned("b").apply(&mut object, layout);
            assert_eq!(Choice::of(&object, layout), choice(Some("Manual"), Some("b")));
            Choice::of(&before, layout).apply(&mut object, layout);
            assert_eq!(object, before, "nothing is left of it");
        }
        assert_eq!(Choice::of(&json!({}), Layout::Modern), Choice::default());
    }

    #[test]
    fn a_patch_removes_what_was_not_there() {
        assert_eq!(
            choice(None, Some("a")).patch(Layout::Modern),
            json!({"spec": {"crossplane": {"compositionUpdatePolicy": null, "compositionRevisionRef": {"name": "a"}}}})
        );
        assert_eq!(
            Choice::default().patch(Layout::Legacy),
            json!({"spec": {"compositionUpdatePolicy": null, "compositionRevisionRef": null}})
        );
    }

    #[test]
    fn the_revision_counts_only_if_it_is_the_users() {
        assert!(choice(None, Some("a")).means(&choice(None, Some("b"))));
        assert!(choice(Some("Automatic"), None).means(&choice(Some("Automatic"), Some("b"))));
        assert!(!choice(Some("Manual"), Some("a")).means(&choice(Some("Manual"), Some("b"))));
        assert!(!choice(None, Some("a")).means(&choice(Some("Manual"), Some("a"))));
    }
}
