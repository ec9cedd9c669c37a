//! CustomResourceDefinitions: from a definition to served resources. What a definition must be, and its status, are
//! decided by `transom_crd`.
//!
//! The status of a definition is decided as it is written: names accepted or refused, `Established`, stored versions. The
//! registry serves it from just before the write is visible, so there is nothing to wait for.

mod build;

use crate::resource::Resource;
use crate::server::Inner;
use serde_json::Value;
use std::sync::Arc;
use transom_crd::{TakenNames, has_condition};
use transom_store::Key;

pub(crate) const STORE_KEY: &str = "customresourcedefinitions.apiextensions.k8s.io";

pub(crate) fn is_definition(resource: &Resource) -> bool {
    &*resource.store_key == STORE_KEY
}

/// Serves what a definition describes, from now on. `revision` is the store's: what is older may have been
/// stored under another schema.
pub(crate) fn install(server: &Inner, definition: &Value, revision: u64) {
    let (group, plural) = group_and_plural(definition);
    let resources = if has_condition(definition, "Established") {
        build::resources(definition, revision, &previous(server, definition))
    } else {
        Vec::new()
    };
    server.registry.replace(group, plural, resources);
}

/// Serves every stored definition; at start.
pub(crate) fn install_all(server: &Inner) {
    for entry in server.store.snapshot(STORE_KEY).objects.values() {
        match serde_json::from_slice::<Value>(&entry.body) {
            Ok(definition) => install(server, &definition, entry.revision),
            Err(e) => {
                tracing::error!(name = %entry.header.name, error = %e, "a stored definition cannot be decoded and is not served");
            }
        }
    }
}

/// Some time after a definition changed, when no write under its old schema can still be on its way: what is
/// written from here on is served as it is stored.
pub(crate) async fn serve_verbatim(server: &Inner, name: &str) {
    let _definitions = server.definitions.clone().lock_owned().await;
    let Some(entry) = server.store.get(&Key::new(STORE_KEY, "", name)) else { return };
    if let Ok(definition) = serde_json::from_slice::<Value>(&entry.body)
        && has_condition(&definition, "Established")
    {
        let (group, plural) = group_and_plural(&definition);
        server.registry.replace(group, plural, build::resources(&definition, server.store.revision(), &[]));
    }
}

/// After a commit that failed: back to what is stored.
pub(crate) fn reinstall(server: &Inner, key: &Key) {
    match server.store.get(key) {
        Some(entry) => {
            if let Ok(definition) = serde_json::from_slice::<Value>(&entry.body) {
                install(server, &definition, server.store.revision());
            }
        }
        None => uninstall(server, &key.object.name),
    }
}

pub(crate) fn uninstall(server: &Inner, name: &str) {
    if let Some((plural, group)) = name.split_once('.') {
        server.registry.replace(group, plural, Vec::new());
    }
}

/// What is served of this definition now.
fn previous(server: &Inner, definition: &Value) -> Vec<Arc<Resource>> {
    let (group, plural) = group_and_plural(definition);
    server.registry.served().all().filter(|r| r.group == group && r.names.plural == plural).cloned().collect()
}

fn group_and_plural(definition: &Value) -> (&str, &str) {
    let spec = &definition["spec"];
    (spec["group"].as_str().unwrap_or_default(), spec["names"]["plural"].as_str().unwrap_or_default())
}

/// The names that other definitions of this one's group have. They stay the same while the lock on definitions is held.
pub(crate) fn taken_names(server: &Inner, definition: &Value) -> TakenNames {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    let mut taken = TakenNames::default();
    for entry in server.store.snapshot(STORE_KEY).objects.values() {
        let of_group = entry.header.name.split_once('.').is_some_and(|(_, g)| g == group);
        if of_group && entry.header.name != name {
            taken.add(&entry.body);
        }
    }
    taken
}
