//! Aggregated ClusterRoles: their rules follow those of the roles that their selectors select.

use super::owners::resource_of;
use super::{Work, identity, ignore_superseded};
use crate::change::{ApplyPatch, Patch};
use crate::rbac::is_cluster_role;
use crate::request::WriteOptions;
use crate::server::Inner;
use crate::subresource::Subresource;
use crate::write;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_object::Status;
use transom_object::labels::Labels;
use transom_rbac::aggregation::Selectors;
use transom_store::{Event, Key};

const MANAGER: &str = "clusterrole-aggregation-controller";

/// The selectors of the aggregated roles, by name.
#[derive(Default)]
pub(super) struct AggregatedRoles(BTreeMap<Arc<str>, Selectors>);

impl AggregatedRoles {
    /// The aggregated roles that a change concerns: the role itself, and those that select it before or after.
    pub(super) fn note(&mut self, event: &Event, mut add: impl FnMut(Work)) {
        if !is_cluster_role(&event.key) {
            return;
        }
        let name = &event.key.object.name;
        let value = event.new.as_ref().and_then(|entry| serde_json::from_slice::<Value>(&entry.body).ok());
        match value.as_ref().and_then(Selectors::of) {
            Some(selectors) => {
                self.0.insert(name.clone(), selectors);
                add(Work::Aggregate(name.clone()));
            }
            None => drop(self.0.remove(name)),
        }
        for (other, selectors) in &self.0 {
            let selects = |entry: &Arc<transom_store::Entry>| selectors.select(&entry.header.labels);
            if other != name && (event.old.iter().any(selects) || event.new.iter().any(selects)) {
                add(Work::Aggregate(other.clone()));
            }
        }
    }
}

/// Writes the rules that an aggregated role should have, if it has others.
pub(super) async fn aggregate(server: &Arc<Inner>, name: &str) -> Result<(), Status> {
    let key = Key::new("clusterroles.rbac.authorization.k8s.io", "", name);
    let (Some(resource), Some(entry)) = (resource_of(server, &key), server.store.get(&key)) else {
        return Ok(());
    };
    let role: Value = serde_json::from_slice(&entry.body).unwrap_or_default();
    let Some(selectors) = Selectors::of(&role) else { return Ok(()) };
    let snapshot = server.store.snapshot(&key.resource);
    let roles: Vec<(&str, &Labels)> =
        snapshot.objects.values().map(|entry| (entry.header.name.as_str(), &entry.header.labels)).collect();
    let rules = selectors.collect(name, &roles, |other| {
        let entry = server.store.get(&Key::new(&*key.resource, "", other));
        let role =
            entry.and_then(|entry| serde_json::from_slice::<Value>(&entry.body).ok()).unwrap_or_default();
        role["rules"].as_array().cloned().unwrap_or_default()
    });
    if role["rules"].as_array().map_or(&[][..], Vec::as_slice) == rules {
        return Ok(());
    }
    let config = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules,
    });
    let mut options = WriteOptions::of_manager(MANAGER);
    options.force = Some(true);
    let request = write::Update {
        namespace: "",
        name,
        subresource: Subresource::Main,
        options: &options,
        owns_fields: false,
        create_missing: false,
        require_version: false,
        pins_version: false,
        by: identity::aggregation(),
    };
    let patch = Patch::Apply { config, duplicates: Vec::new() };
    let mut change = ApplyPatch {
        resource: &resource,
        subresource: Subresource::Main,
        name,
        patch: &patch,
        options: &options,
        unknown: Vec::new(),
    };
    ignore_superseded(write::update(server, &resource, &request, &mut change).await.map(drop))
}
