//! A served resource: one version of one kind, how its objects are stored, read and represented.

use crate::strategy::Strategy;
use crate::subresource::Subresource;
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_admission::webhook::ClientConfig;
use transom_object::{GroupKind, GroupResource, GroupVersion, GroupVersionKind, Status};
use transom_schema::Schema;
use transom_store::{Durability, Entry, Key};

/// The plural, and the store's name, of namespaces.
pub(crate) const NAMESPACES: &str = "namespaces";

/// What a resource is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    pub plural: String,
    pub singular: String,
    pub kind: String,
    pub list_kind: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
}

/// Where a scale subresource reads and writes, as paths of field names from the object's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    pub spec_replicas: Vec<String>,
    pub status_replicas: Vec<String>,
    pub label_selector: Option<Vec<String>>,
}

/// Which requests a resource answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// All verbs.
    Full,
    /// Answered on create and never stored: reviews.
    CreateOnly,
}

pub(crate) struct Resource {
    pub group: String,
    pub version: String,
    pub names: Names,
    pub namespaced: bool,
    pub access: Access,
    /// In the order in which discovery lists them.
    pub subresources: Vec<Subresource>,
    /// Given where `scale` is one of the subresources.
    pub scale: Option<ScalePaths>,
    /// The store's name for the objects of every version of this kind.
    pub store_key: Arc<str>,
    /// Entries written after this revision are stored exactly as this version serves them.
    pub verbatim_after: u64,
    /// Custom kinds: a hash of the definition's spec, and the revision since which objects are stored under it.
    pub definition: Option<[u8; 32]>,
    pub definition_since: u64,
    /// The schema of each served version, by apiVersion.
    pub schemas: Arc<BTreeMap<String, Arc<Schema>>>,
    pub strategy: Box<dyn Strategy>,
    pub durability: Durability,
    /// Its definition is being deleted: no new objects.
    pub terminating: bool,
    /// The webhook that converts between the versions of a custom kind.
    pub conversion: Option<ClientConfig>,
    /// A warning sent with every request to a deprecated version.
    pub deprecation: Option<String>,
}

impl Resource {
    pub(crate) fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::new(&*self.group, &*self.version, &*self.names.kind)
    }

    pub(crate) fn group_version(&self) -> GroupVersion {
        GroupVersion::new(&*self.group, &*self.version)
    }

    pub(crate) fn api_version(&self) -> String {
        self.group_version().to_string()
    }

    pub(crate) fn group_resource(&self) -> GroupResource {
        GroupResource::new(&*self.group, &*self.names.plural)
    }

    /// As errors about an object's fields name its kind: by the group its objects belong to, which for events is
    /// the core group in both of their APIs.
    pub(crate) fn group_kind(&self) -> GroupKind {
        let group = if &*self.store_key == "events" { "" } else { &*self.group };
        GroupKind::new(group, &*self.names.kind)
    }

    /// Whether an endpoint of its objects is served.
    pub(crate) fn has(&self, subresource: Subresource) -> bool {
        subresource == Subresource::Main || self.subresources.contains(&subresource)
    }

    /// Whether its objects are the namespaces themselves.
    pub(crate) fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.names.plural == NAMESPACES
    }

    pub(crate) fn key(&self, namespace: &str, name: &str) -> Key {
        Key::new(self.store_key.clone(), if self.namespaced { namespace } else { "" }, name)
    }

    /// An entry as this version serves it, without decoding when it is stored that way.
    pub(crate) fn serve(&self, entry: &Entry) -> Result<Bytes, Status> {
        if entry.revision > self.verbatim_after {
            return Ok(entry.body.clone());
        }
        self.decode(entry).map(|v| Bytes::from(transom_object::json::encode(&v)))
    }

    /// An entry as this version serves it, decoded.
    pub(crate) fn decode(&self, entry: &Entry) -> Result<Value, Status> {
        let mut value: Value = serde_json::from_slice(&entry.body).map_err(|e| {
            Status::internal(format!(
                "{} {:?} cannot be decoded: {e}",
                self.group_resource(),
                entry.header.name
            ))
        })?;
        if entry.revision <= self.verbatim_after {
            self.strategy.read(&mut value).map_err(|why| {
                Status::internal(format!(
                    "{} {:?} cannot be decoded: {why}",
                    self.group_resource(),
                    entry.header.name
                ))
            })?;
        }
        Ok(value)
    }

    /// The verbs discovery lists for the resource itself.
    pub(crate) fn verbs(&self) -> &'static [&'static str] {
        match self.access {
            Access::CreateOnly => &["create"],
            // Upstream's own order for custom kinds.
            Access::Full if self.definition.is_some() => {
                &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
            }
            Access::Full => {
                &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
            }
        }
    }
}
