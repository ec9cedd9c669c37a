//! The metadata of a typed object, as far as controllers read it, and in `notes` what Crossplane records in the metadata of any
//! object: pauses, poll intervals, requests to reconcile, finalizers, and the progress of a creation.

mod notes;

pub use notes::{
    CREATE_FAILED, CREATE_PENDING, CREATE_SUCCEEDED, add_finalizer, add_labels, annotations,
    create_incomplete, created_within, has_finalizer, is_paused, noted_time, poll_interval, poll_interval_or,
    reconcile_request, remove_annotations, remove_finalizer, remove_labels, set_noted_time, was_created,
};

use crate::composition::{nullable, omit};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use transom_object::labels::Labels;
use transom_object::{OwnerReference, meta};

/// What the controllers read of `metadata`. Absent and empty maps are distinguished, because the hash of a Composition
/// does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of Kubernetes")]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
    /// The uid of the owner that may not change it.
    pub uid: String,
    pub resource_version: String,
    pub generation: i64,
    pub labels: Option<BTreeMap<String, String>>,
    pub annotations: Option<BTreeMap<String, String>>,
    #[serde(deserialize_with = "nullable")]
    pub owner_references: Vec<OwnerReference>,
    #[serde(deserialize_with = "nullable")]
    pub finalizers: Vec<String>,
    pub deletion_timestamp: Option<String>,
}

impl Metadata {
    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// The labels as a selector wants them.
    pub fn label_map(&self) -> Labels {
        self.labels.clone().unwrap_or_default()
    }

    /// Whether the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The owner that manages the object.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|r| r.controller == Some(true))
    }

    /// Whether the object with this uid manages this one.
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller().is_some_and(|c| c.uid == uid)
    }
}

/// A reference to an object by type and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of Kubernetes")]
pub struct TypedReference {
    #[serde(skip_serializing_if = "omit::text")]
    pub api_version: String,
    #[serde(skip_serializing_if = "omit::text")]
    pub kind: String,
    #[serde(skip_serializing_if = "omit::text")]
    pub name: String,
    #[serde(skip_serializing_if = "omit::text")]
    pub namespace: String,
}

impl TypedReference {
    /// The reference to an object.
    pub fn to(object: &Value) -> Self {
        Self {
            api_version: meta::api_version(object).to_owned(),
            kind: meta::kind(object).to_owned(),
            name: meta::name(object).to_owned(),
            namespace: meta::namespace(object).to_owned(),
        }
    }
}

/// An entry of `ownerReferences` by which the owner manages the object and holds back its own deletion.
pub fn controller_reference(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// [`controller_reference`] to an object that is at hand.
pub fn controller_reference_to(owner: &Value) -> Value {
    controller_reference(meta::api_version(owner), meta::kind(owner), meta::name(owner), meta::uid(owner))
}

/// Adds an entry of `ownerReferences`, replacing the one with the same uid.
pub fn add_owner(object: &mut Value, reference: Value) {
    let Some(metadata) = meta::metadata_mut(object) else { return };
    let list = metadata.entry("ownerReferences").or_insert_with(|| Value::Array(Vec::new()));
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    let Some(list) = list.as_array_mut() else { return };
    match list.iter_mut().find(|r| r.get("uid") == reference.get("uid")) {
        Some(old) => *old = reference,
        None => list.push(reference),
    }
}

/// Another object is the controller already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} is already controlled by {kind} {owner} (UID {uid})")]
pub struct AlreadyControlled {
    /// The name of the object.
    pub name: String,
    /// The kind of its controller.
    pub kind: String,
    /// The name of its controller.
    pub owner: String,
    /// The uid of its controller.
    pub uid: String,
}

/// [`add_owner`] for the owner that manages the object; there can be only one.
pub fn add_controller(object: &mut Value, reference: Value) -> Result<(), AlreadyControlled> {
    let uid = reference.get("uid").and_then(Value::as_str).unwrap_or_default();
    if let Some(other) = meta::controller_of(object).filter(|c| c.uid != uid) {
        let name = meta::name(object).to_owned();
        return Err(AlreadyControlled { name, kind: other.kind, owner: other.name, uid: other.uid });
    }
    add_owner(object, reference);
    Ok(())
}

/// Whether one and the same object manages both.
pub fn have_same_controller(a: &Value, b: &Value) -> bool {
    meta::controller_of(a).zip(meta::controller_of(b)).is_some_and(|(a, b)| a.uid == b.uid)
}

/// An object that exists and has another controller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("existing object is not controlled by UID {}", transom_object::quote::quote(uid))]
pub struct NotControllable {
    /// The uid of the owner that may not change it.
    pub uid: String,
}

/// Whether the owner with this uid controls the object, or may begin to because it has no controller.
pub fn must_be_controllable_by(object: &Value, uid: &str) -> Result<(), NotControllable> {
    match meta::controller_of(object) {
        Some(controller) if controller.uid != uid => Err(NotControllable { uid: uid.to_owned() }),
        _ => Ok(()),
    }
}
