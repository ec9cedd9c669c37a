//! Resources as `transom_openapi` describes them.

use crate::crd::STORE_KEY;
use crate::discovery::verbs;
use crate::resource::Resource;
use crate::server::Inner;
use crate::subresource::Subresource;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use transom_store::Key;

/// Descriptions of some resources.
pub(super) struct Described {
    pub(super) resources: Vec<transom_openapi::Resource>,
    /// Every definition that is served is the one that is stored. It is not for a moment while it is being written.
    pub(super) current: bool,
}

pub(super) fn all(server: &Inner, resources: &[Arc<Resource>]) -> Described {
    let mut described = Described { resources: Vec::with_capacity(resources.len()), current: true };
    for resource in resources {
        let definition = resource.definition.map(|served| {
            let (version, stored) = stored_version(server, resource);
            described.current &= served == stored;
            version
        });
        described.resources.push(describe(resource, definition));
    }
    described
}

fn describe(r: &Resource, definition: Option<Value>) -> transom_openapi::Resource {
    transom_openapi::Resource {
        group: r.group.clone(),
        version: r.version.clone(),
        plural: r.names.plural.clone(),
        kind: r.names.kind.clone(),
        list_kind: r.names.list_kind.clone(),
        namespaced: r.namespaced,
        verbs: verbs(r),
        strategic_merge: r.strategy.patch_schema().is_some(),
        returns_deleted_object: r.strategy.returns_deleted_object(),
        subresources: r.subresources.iter().copied().map(subresource).collect(),
        definition,
    }
}

fn subresource(s: Subresource) -> transom_openapi::Subresource {
    transom_openapi::Subresource { name: s.as_str(), verbs: s.verbs(), own_kind: s.own_kind() }
}

/// The version in the stored definition of a custom kind, null if it is not there, and the hash of the definition's spec.
fn stored_version(server: &Inner, r: &Resource) -> (Value, [u8; 32]) {
    let mut definition = server
        .store
        .get(&Key::new(STORE_KEY, "", &r.store_key))
        .and_then(|e| serde_json::from_slice::<Value>(&e.body).ok())
        .unwrap_or_default();
    let hash = Sha256::digest(definition["spec"].to_string()).into();
    let versions = definition.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    let version = versions.and_then(|all| all.iter_mut().find(|v| v["name"] == r.version.as_str()));
    (version.map(Value::take).unwrap_or_default(), hash)
}
