//! Composite resources: dynamic objects with a known place for what belongs to Crossplane.
//!
//! A legacy composite resource keeps Crossplane's fields right in its spec, a modern one in `spec.crossplane`. What is
//! malformed reads as absent: a field of the wrong type has no value.

use crate::composition::{LabelMatch, NameReference, SecretReference};
use crate::conditions;
use crate::metadata::TypedReference;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Where a composite resource keeps Crossplane's fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Scope `Namespaced` or `Cluster`.
    #[default]
    Modern,
    /// Scope `LegacyCluster`: every composite resource before version 2.
    Legacy,
}

impl Layout {
    /// The fields that belong to Crossplane.
    pub fn machinery(self, xr: &Value) -> Option<&Map<String, Value>> {
        let spec = xr.get("spec")?;
        match self {
            Self::Legacy => spec.as_object(),
            Self::Modern => spec.get("crossplane")?.as_object(),
        }
    }

    /// The fields that belong to Crossplane, made if they are not there. `None` when a part of the path is not an object.
    pub fn machinery_mut(self, xr: &mut Value) -> Option<&mut Map<String, Value>> {
        let spec = entry(xr.as_object_mut()?, "spec")?;
        match self {
            Self::Legacy => Some(spec),
            Self::Modern => entry(spec, "crossplane"),
        }
    }
}

pub(crate) fn entry<'a>(map: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    map.entry(key).or_insert_with(|| Map::new().into()).as_object_mut()
}

/// When a composite resource takes up a new revision of its Composition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdatePolicy {
    /// At once.
    Automatic,
    /// When its reference to the revision is changed.
    Manual,
}

impl UpdatePolicy {
    /// The policy of a name.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "Automatic" => Some(Self::Automatic),
            "Manual" => Some(Self::Manual),
            _ => None,
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Automatic => "Automatic",
            Self::Manual => "Manual",
        }
    }
}

/// A system condition cannot be a condition of a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot set system condition {0} as a claim condition")]
pub struct SystemCondition(pub String);

/// A composite resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Composite {
    /// The whole object.
    pub object: Value,
    /// Where it keeps Crossplane's fields.
    pub layout: Layout,
}

impl Composite {
    /// A composite resource with this layout.
    pub fn new(object: Value, layout: Layout) -> Self {
        Self { object, layout }
    }

    fn read<T: DeserializeOwned>(&self, field: &str) -> Option<T> {
        T::deserialize(self.layout.machinery(&self.object)?.get(field)?).ok()
    }

    /// Only legacy composite resources have this field.
    fn read_legacy<T: DeserializeOwned>(&self, field: &str) -> Option<T> {
        (self.layout == Layout::Legacy).then(|| self.read(field)).flatten()
    }

    fn write(&mut self, field: &str, value: Value) {
        if let Some(machinery) = self.layout.machinery_mut(&mut self.object) {
            machinery.insert(field.to_owned(), value);
        }
    }

    /// The Composition it uses.
    pub fn composition_ref(&self) -> Option<NameReference> {
        self.read("compositionRef")
    }

    /// Sets the Composition it uses.
    pub fn set_composition_ref(&mut self, name: &str) {
        self.write("compositionRef", json!({"name": name}));
    }

    /// The labels by which its Composition is chosen.
    pub fn composition_selector(&self) -> Option<LabelMatch> {
        self.read("compositionSelector")
    }

    /// The revision it uses.
    pub fn composition_revision_ref(&self) -> Option<NameReference> {
        self.read("compositionRevisionRef")
    }

    /// Sets the revision it uses.
    pub fn set_composition_revision_ref(&mut self, name: &str) {
        self.write("compositionRevisionRef", json!({"name": name}));
    }

    /// The labels by which its revision is chosen.
    pub fn composition_revision_selector(&self) -> Option<LabelMatch> {
        self.read("compositionRevisionSelector")
    }

    /// Sets the labels by which its revision is chosen.
    pub fn set_composition_revision_selector(&mut self, selector: &LabelMatch) {
        self.write("compositionRevisionSelector", json!(selector));
    }

    /// When it takes up new revisions.
    pub fn composition_update_policy(&self) -> Option<UpdatePolicy> {
        UpdatePolicy::parse(self.read::<String>("compositionUpdatePolicy")?.as_str())
    }

    /// Sets when it takes up new revisions.
    pub fn set_composition_update_policy(&mut self, policy: UpdatePolicy) {
        self.write("compositionUpdatePolicy", policy.as_str().into());
    }

    /// The composed resources, in the order in which they are noted.
    pub fn resource_refs(&self) -> Vec<TypedReference> {
        self.read("resourceRefs").unwrap_or_default()
    }

    /// References that name nothing are left out.
    pub fn set_resource_refs(&mut self, references: &[TypedReference]) {
        let nothing = TypedReference::default();
        self.write("resourceRefs", references.iter().filter(|r| **r != nothing).map(|r| json!(r)).collect());
    }

    /// The claim the composite resource is bound to.
    pub fn claim_ref(&self) -> Option<TypedReference> {
        self.read_legacy("claimRef")
    }

    /// Binds it to a claim.
    pub fn set_claim_ref(&mut self, claim: &TypedReference) {
        if self.layout == Layout::Legacy {
            self.write("claimRef", json!(claim));
        }
    }

    /// Where the connection details go.
    pub fn connection_secret_ref(&self) -> Option<SecretReference> {
        self.read_legacy("writeConnectionSecretToRef")
    }

    /// Sets where the connection details go.
    pub fn set_connection_secret_ref(&mut self, secret: &SecretReference) {
        if self.layout == Layout::Legacy {
            self.write("writeConnectionSecretToRef", json!(secret));
        }
    }

    /// When the connection details were last published.
    pub fn last_published_time(&self) -> Option<&str> {
        (self.layout == Layout::Legacy).then(|| last_published_time(&self.object)).flatten()
    }

    /// Sets when the connection details were last published.
    pub fn set_last_published_time(&mut self, time: &str) {
        if self.layout == Layout::Legacy {
            set_last_published_time(&mut self.object, time);
        }
    }

    /// The token of the last request to reconcile that was handled.
    pub fn last_handled_reconcile_at(&self) -> &str {
        self.object.pointer("/status/lastHandledReconcileAt").and_then(Value::as_str).unwrap_or_default()
    }

    /// Sets the token of the last request to reconcile that was handled.
    pub fn set_last_handled_reconcile_at(&mut self, token: &str) {
        if let Some(status) = self.object.as_object_mut().and_then(|o| entry(o, "status")) {
            status.insert("lastHandledReconcileAt".to_owned(), token.into());
        }
    }

    /// The types of conditions that the claim gets.
    pub fn claim_condition_types(&self) -> Vec<String> {
        if self.layout == Layout::Modern {
            return Vec::new();
        }
        let list = self.object.pointer("/status/claimConditionTypes");
        list.and_then(|list| Vec::deserialize(list).ok()).unwrap_or_default()
    }

    /// Adds to the types of conditions that the claim gets; none is ever removed.
    pub fn add_claim_condition_types(&mut self, types: &[&str]) -> Result<(), SystemCondition> {
        if self.layout == Layout::Modern {
            return Ok(());
        }
        let mut all = self.claim_condition_types();
        for new in types {
            if conditions::is_core_system(new) {
                return Err(SystemCondition((*new).to_owned()));
            }
            if !all.iter().any(|t| t == new) {
                all.push((*new).to_owned());
            }
        }
        if let Some(status) = self.object.as_object_mut().and_then(|o| entry(o, "status")) {
            status.insert("claimConditionTypes".to_owned(), all.into());
        }
        Ok(())
    }
}

pub(crate) fn last_published_time(object: &Value) -> Option<&str> {
    object.pointer("/status/connectionDetails/lastPublishedTime").and_then(Value::as_str)
}

pub(crate) fn set_last_published_time(object: &mut Value, time: &str) {
    let status = object.as_object_mut().and_then(|o| entry(o, "status"));
    if let Some(details) = status.and_then(|s| entry(s, "connectionDetails")) {
        details.insert("lastPublishedTime".to_owned(), time.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_schema_has_its_own_place() {
        let mut modern = Composite::new(json!({}), Layout::Modern);
        modern.set_composition_ref("c");
        modern.set_claim_ref(&TypedReference::default());
        modern.set_connection_secret_ref(&SecretReference::default());
        assert_eq!(modern.object, json!({"spec": {"crossplane": {"compositionRef": {"name": "c"}}}}));
        let mut legacy = Composite::new(json!({}), Layout::Legacy);
        legacy.set_composition_ref("c");
        legacy.set_composition_update_policy(UpdatePolicy::Manual);
        assert_eq!(
            legacy.object,
            json!({"spec": {"compositionRef": {"name": "c"}, "compositionUpdatePolicy": "Manual"}})
        );
        assert_eq!(legacy.composition_update_policy(), Some(UpdatePolicy::Manual));
    }

    #[test]
    fn malformed_fields_read_as_absent_and_are_not_overwritten_on_the_way() {
        let mut xr = Composite::new(json!({"spec": {"crossplane": 1}, "status": []}), Layout::Modern);
        assert_eq!(xr.composition_ref(), None);
        xr.set_composition_ref("c");
        xr.set_last_handled_reconcile_at("t");
        assert_eq!(xr.object, json!({"spec": {"crossplane": 1}, "status": []}));
        assert!(Composite::new(json!("x"), Layout::Legacy).resource_refs().is_empty());
    }
}
