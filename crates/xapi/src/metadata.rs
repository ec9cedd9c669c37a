//! The metadata of a typed object.

use crate::composition::{nullable, omit};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use transom_object::OwnerReference;
use transom_object::labels::Labels;

/// What the controllers read of `metadata`. Absent and empty maps are told apart, because the hash of a Composition
/// does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
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
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.as_ref()?.get(key).map(String::as_str)
    }

    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// The labels as a selector wants them.
    pub fn label_map(&self) -> Labels {
        self.labels.clone().unwrap_or_default()
    }

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
pub struct TypedReference {
    pub api_version: String,
    pub kind: String,
    #[serde(skip_serializing_if = "omit::text")]
    pub name: String,
    #[serde(skip_serializing_if = "omit::text")]
    pub namespace: String,
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
