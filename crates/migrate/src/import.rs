//! Makes an exported control plane on another server: paused, with the identities of that server, and again and again
//! until all of it is there.
//!
//! An object that exists is left as it is. Status is a subresource, so it is written after the object is made; an import that
//! was interrupted between the two is completed by the next one, which finds in the managedFields that the object was made by
//! an import and that its status was not written. Composite resources and claims are paused until [`release`]: nothing is composed
//! anew while parts of them are missing.

use crate::export::identity;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;
use transom_engine::{Cluster, Error, ErrorContext, Result};
use transom_object::meta;

const MANAGER: &str = "transom-import";
/// Of objects that an import made and paused.
const PAUSED_BY_IMPORT: &str = "transom.io/import-paused";
const PAUSED: &str = "crossplane.io/paused";
/// How long the server may take to serve a kind whose definition was imported.
const SERVED_WITHIN: Duration = Duration::from_secs(60);
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Objects that were made.
    pub created: usize,
    /// Objects that were there already.
    pub present: usize,
}

/// Makes all objects that are missing, in their order. Owner references name the uids of this server.
pub async fn import(cluster: &Cluster, objects: &[Value]) -> Result<Imported> {
    let (mut imported, mut uids) = (Imported::default(), BTreeMap::<String, String>::new());
    for object in owners_first(objects) {
        let old = meta::uid(object).to_owned();
        let (stored, is_new) =
            make(cluster, object, &uids).await.context(format!("cannot import {}", identity(object)))?;
        uids.insert(old, meta::uid(&stored).to_owned());
        if is_new { imported.created += 1 } else { imported.present += 1 }
    }
    Ok(imported)
}

/// The same objects, each after those of them that own it.
fn owners_first(objects: &[Value]) -> Vec<&Value> {
    let all: BTreeSet<&str> = objects.iter().map(meta::uid).collect();
    let (mut ordered, mut done, mut left) = (Vec::new(), BTreeSet::new(), objects.iter().collect::<Vec<_>>());
    loop {
        let waits = |object: &Value, done: &BTreeSet<&str>| {
            let owners = meta::owner_references(object);
            owners.iter().any(|owner| all.contains(&*owner.uid) && !done.contains(&*owner.uid))
        };
        let before = left.len();
        for object in std::mem::take(&mut left) {
            if waits(object, &done) {
                left.push(object);
            } else {
                done.insert(meta::uid(object));
                ordered.push(object);
            }
        }
        // Owners in a circle cannot all come first.
        if left.len() == before {
            ordered.append(&mut left);
            return ordered;
        }
    }
}

async fn make(cluster: &Cluster, object: &Value, uids: &BTreeMap<String, String>) -> Result<(Value, bool)> {
    let gvk = meta::gvk(object).ok_or_else(|| Error::permanent("it has no apiVersion and kind"))?;
    let deadline = Instant::now() + SERVED_WITHIN;
    loop {
        let created = match cluster.get(&gvk, meta::namespace(object), meta::name(object)).await {
            Ok(Some(stored)) => {
                if lacks_status(&stored) {
                    restore_status(cluster, object, &stored).await?;
                }
                return Ok((stored, false));
            }
            Ok(None) => cluster.create(&prepared(object, uids), MANAGER).await,
            Err(e) => Err(e),
        };
        match created {
            Ok(stored) => {
                restore_status(cluster, object, &stored).await?;
                return Ok((stored, true));
            }
            Err(e) if e.is_already_exists() => {}
            // Its definition was imported a moment ago.
            Err(e) if (e.is_unknown_kind() || e.is_not_found()) && Instant::now() < deadline => {}
            Err(e) => return Err(e),
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

/// An object as it is made on another server.
fn prepared(object: &Value, uids: &BTreeMap<String, String>) -> Value {
    let mut object = object.clone();
    if is_composed_of(&object) && meta::annotation(&object, PAUSED) != Some("true") {
        meta::set_annotation(&mut object, PAUSED, "true");
        meta::set_annotation(&mut object, PAUSED_BY_IMPORT, "true");
    }
    let Some(metadata) = meta::metadata_mut(&mut object) else { return object };
    metadata.remove("uid");
    if let Some(owners) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) {
        // Owners that were not exported make theirs again: packages establish what they install.
        owners.retain_mut(|owner| {
            let uid = owner["uid"].as_str().and_then(|uid| uids.get(uid));
            uid.is_some_and(|uid| {
                owner["uid"] = uid.clone().into();
                true
            })
        });
    }
    object
}

/// Whether an object is a composite resource or a claim: they refer to a Composition or to what they are composed of.
fn is_composed_of(object: &Value) -> bool {
    let spec = &object["spec"];
    let machinery = ["compositionRef", "resourceRefs", "resourceRef", "compositionRevisionRef"];
    spec.get("crossplane").is_some_and(Value::is_object)
        || machinery.iter().any(|field| spec.get(*field).is_some())
            && !meta::api_version(object).contains("crossplane.io/")
}

/// Whether an import made an object and ended before it restored the status. Controllers report in the status of a paused
/// object that it is paused, so only the status of others is complete once anything else has written it.
fn lacks_status(stored: &Value) -> bool {
    let entries = stored["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
    let by_import = |entry: &&Value| entry["manager"] == MANAGER;
    let of_status = |entry: &&Value| entry["subresource"] == "status";
    let is_made = entries.iter().any(|entry| by_import(&entry) && !of_status(&entry));
    let is_restored = entries.iter().any(|entry| by_import(&entry) && of_status(&entry));
    let is_paused = meta::annotation(stored, PAUSED) == Some("true");
    is_made && !is_restored && (is_paused || !entries.iter().any(|entry| of_status(&entry)))
}

/// Status is a subresource: it is not made with the object.
async fn restore_status(cluster: &Cluster, object: &Value, stored: &Value) -> Result<()> {
    let Some(status) = object.get("status").filter(|status| status.is_object()) else { return Ok(()) };
    // Crossplane's own kinds report what is true on this server.
    if meta::api_version(object).contains("crossplane.io/") && !is_composed_of(object) {
        return Ok(());
    }
    match cluster.merge_patch_status(stored, &json!({"status": status}), MANAGER).await {
        Err(e) if e.is_not_found() => Ok(()),
        written => written.map(drop),
    }
}

/// What differs between the exported specs and those of the server, by object. Nothing, if all is well.
pub async fn verify(cluster: &Cluster, objects: &[Value]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for object in objects {
        let gvk = meta::gvk(object).unwrap_or_default();
        let stored = match cluster.get(&gvk, meta::namespace(object), meta::name(object)).await {
            Err(e) if e.is_unknown_kind() => None,
            stored => stored?,
        };
        let Some(stored) = stored else {
            found.push(format!("{}: is missing", identity(object)));
            continue;
        };
        for field in ["spec", "data", "rules"] {
            if object.get(field) != stored.get(field) && !is_made_by_server(object) {
                found.push(format!("{}: {field} differs", identity(object)));
            }
        }
    }
    Ok(found)
}

/// Namespaces and definitions are completed by the server.
fn is_made_by_server(object: &Value) -> bool {
    ["Namespace", "CustomResourceDefinition"].contains(&meta::kind(object))
}

/// Lets the controllers work on what the import paused. Returns how many objects that were.
pub async fn release(cluster: &Cluster, objects: &[Value]) -> Result<usize> {
    let mut released = 0;
    for object in objects.iter().filter(|object| is_composed_of(object)) {
        let gvk = meta::gvk(object).unwrap_or_default();
        let Some(stored) = cluster.get(&gvk, meta::namespace(object), meta::name(object)).await? else {
            continue;
        };
        if meta::annotation(&stored, PAUSED_BY_IMPORT).is_some() {
            let patch = json!({"metadata": {"annotations": {PAUSED: null, PAUSED_BY_IMPORT: null}}});
            cluster
                .merge_patch(&stored, &patch, MANAGER)
                .await
                .context(format!("cannot release {}", identity(object)))?;
            released += 1;
        }
    }
    Ok(released)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_paused_and_get_the_owners_of_the_new_server() {
        let xr = json!({
            "apiVersion": "example.org/v1", "kind": "App", "metadata": {"name": "a", "uid": "old"},
            "spec": {"crossplane": {"resourceRefs": []}},
        });
        let made = prepared(&xr, &BTreeMap::new());
        assert_eq!((meta::annotation(&made, PAUSED), meta::uid(&made)), (Some("true"), ""));
        let owner =
            |uid: &str| json!({"apiVersion": "example.org/v1", "kind": "App", "name": "a", "uid": uid});
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "m", "ownerReferences": [owner("old"), owner("unknown")]},
        });
        let made = prepared(&map, &BTreeMap::from([("old".to_owned(), "new".to_owned())]));
        assert_eq!(made["metadata"]["ownerReferences"], json!([owner("new")]));
        assert_eq!(meta::annotation(&made, PAUSED), None, "only what has a Composition is paused");
    }

    #[test]
    fn a_status_is_restored_once_and_never_over_that_of_a_controller() {
        let entry =
            |manager: &str, subresource: &str| json!({"manager": manager, "subresource": subresource});
        let lacks = |paused: bool, entries: &[Value]| {
            let mut object = json!({"metadata": {"managedFields": entries}});
            if paused {
                meta::set_annotation(&mut object, PAUSED, "true");
            }
            lacks_status(&object)
        };
        let (made, restored) = (json!({"manager": MANAGER}), entry(MANAGER, "status"));
        let (other, controller) = (entry("kubectl", ""), entry("crossplane", "status"));
        for paused in [false, true] {
            assert!(
                lacks(paused, std::slice::from_ref(&made)) && lacks(paused, &[made.clone(), other.clone()])
            );
            assert!(!lacks(paused, &[made.clone(), restored.clone()]));
            assert!(
                !lacks(paused, std::slice::from_ref(&other)) && !lacks(paused, &[]),
                "not made by an import"
            );
        }
        assert!(!lacks(false, &[made.clone(), controller.clone()]));
        assert!(lacks(true, &[made, controller]), "that it is paused is not its status");
    }

    #[test]
    fn owners_come_before_what_they_own() {
        let object = |uid: &str, owner: &str| {
            let owners = if owner.is_empty() {
                json!([])
            } else {
                json!([{"apiVersion": "v1", "kind": "K", "name": owner, "uid": owner}])
            };
            json!({"metadata": {"name": uid, "uid": uid, "ownerReferences": owners}})
        };
        let objects = [
            object("c", "b"),
            object("b", "a"),
            object("x", "y"),
            object("y", "x"),
            object("a", ""),
            object("d", "gone"),
        ];
        let order: Vec<&str> = owners_first(&objects).into_iter().map(meta::uid).collect();
        assert_eq!(order, ["a", "d", "b", "c", "x", "y"]);
    }

    #[test]
    fn what_a_user_paused_stays_paused() {
        let paused = json!({
            "apiVersion": "example.org/v1", "kind": "App", "metadata": {"name": "a", "annotations": {PAUSED: "true"}},
            "spec": {"compositionRef": {"name": "c"}},
        });
        assert_eq!(meta::annotation(&prepared(&paused, &BTreeMap::new()), PAUSED_BY_IMPORT), None);
        let composition = json!({
            "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositionRevision", "metadata": {"name": "c"},
            "spec": {"compositionRef": {}},
        });
        assert!(!is_composed_of(&composition));
    }
}
