//! The few metadata facts that indexes, selectors and garbage collection need without decoding an object.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Decoded once when an object is written or loaded, then shared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// `metadata.name`
    pub name: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// `metadata.ownerReferences`
    pub owners: Vec<OwnerReference>,
    /// `metadata.finalizers`
    pub finalizers: Vec<String>,
    /// Whether it has a `deletionTimestamp`.
    pub deleting: bool,
}

/// An entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// Group and version of the owner.
    pub api_version: String,
    /// The owner's kind.
    pub kind: String,
    /// The owner's name, in the same namespace or without one.
    pub name: String,
    /// The owner's UID: another object of the same name is not the owner.
    pub uid: String,
    /// Whether the owner manages the object.
    pub controller: Option<bool>,
    /// Whether a foreground deletion of the owner waits for the object.
    pub block_owner_deletion: Option<bool>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    uid: Cow<'a, str>,
    labels: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
    finalizers: Option<Vec<String>>,
    deletion_timestamp: Option<Cow<'a, str>>,
}

impl Header {
    /// Reads the header out of an encoded object, skipping everything else.
    pub fn parse(body: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice::<Envelope<'_>>(body).map(|envelope| envelope.metadata.into())
    }

    /// The header of an object whose metadata is at hand.
    pub fn of(metadata: &Map<String, Value>) -> serde_json::Result<Self> {
        Metadata::deserialize(metadata).map(Self::from)
    }
}

impl From<Metadata<'_>> for Header {
    fn from(m: Metadata<'_>) -> Self {
        Self {
            name: m.name.into_owned(),
            namespace: m.namespace.into_owned(),
            uid: m.uid.into_owned(),
            labels: m.labels.unwrap_or_default(),
            owners: m.owner_references.unwrap_or_default(),
            finalizers: m.finalizers.unwrap_or_default(),
            deleting: m.deletion_timestamp.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_only_metadata() {
        let body = br#"{"spec":{"a":[1]},"metadata":{"name":"n","uid":"u","labels":{"a":"b"},"deletionTimestamp":"x"}}"#;
        let h = Header::parse(body).unwrap();
        assert_eq!((h.name.as_str(), h.uid.as_str(), h.deleting), ("n", "u", true));
        assert_eq!(h.labels["a"], "b");
        let value: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(Header::of(value["metadata"].as_object().unwrap()).unwrap(), h);
    }
}
