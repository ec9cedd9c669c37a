//! What is written when a revision establishes its objects, or releases them. Each function takes an object as it is and
//! returns it as it should be written, or `None` when nothing has to be written.
//!
//! An active revision controls its objects; the package owns them too, so that they outlive the revision. Control moves
//! from one revision of a package to the next in one write: there is no moment in which an object has no owner.
//!
//! Unlike the original, which replaces an existing object by the package's, labels, annotations and finalizers that others
//! added stay: controllers keep their finalizers on definitions. Those that an earlier version of the package brought go with
//! it: a roll-back leaves nothing behind. And an object that has all that the package wants is not written again.

mod activation;
mod objects;
mod webhooks;

pub use activation::{active_definitions, runtime_activity};
pub use objects::{managed_definition, objects};
pub use webhooks::{NoServer, WEBHOOK_PORT, WebhookServer, wants_server, with_webhooks};

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use transom_object::{OwnerReference, meta};
use transom_xapi::constants::owner;
use transom_xapi::metadata::{AlreadyControlled, add_owner, controller_reference};
use transom_xapi::package::ObjectReference;

/// An object that owns another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
}

impl Owner {
    /// The owner that an object is.
    pub fn of(object: &Value) -> Self {
        Self {
            api_version: meta::api_version(object).to_owned(),
            kind: meta::kind(object).to_owned(),
            name: meta::name(object).to_owned(),
            uid: meta::uid(object).to_owned(),
        }
    }

    fn as_controller(&self) -> Value {
        controller_reference(&self.api_version, &self.kind, &self.name, &self.uid)
    }

    /// The package holds back its deletion, but does not manage the object.
    fn as_package(&self) -> Value {
        let mut reference = self.as_controller();
        reference["controller"] = false.into();
        reference
    }

    fn as_plain(&self) -> Value {
        json!({"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid})
    }
}

/// The owners of a revision's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owners {
    /// The revision.
    pub revision: Owner,
    /// Its package.
    pub package: Owner,
    /// The UIDs of the package's other revisions, which control passes from.
    pub siblings: Vec<String>,
}

/// Adds the labels and annotations that the package wants on all of its objects; they win over the object's own.
pub fn add_common(
    object: &mut Value,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) {
    for (key, value) in labels {
        meta::set_label(object, key, value);
    }
    for (key, value) in annotations {
        meta::set_annotation(object, key, value);
    }
}

/// The object as an active revision creates it. Owners that the package's author wrote are dropped.
pub fn created(desired: &Value, owners: &Owners) -> Value {
    let mut object = desired.clone();
    let references = json!([owners.revision.as_controller(), owners.package.as_package()]);
    meta::set(&mut object, "ownerReferences", references);
    object
}

/// The existing object as an active revision updates it. Fails when something else than a revision of the package controls
/// it.
pub fn updated(
    current: &Value,
    desired: &Value,
    owners: &Owners,
) -> Result<Option<Value>, AlreadyControlled> {
    let mut object = desired.clone();
    keep_metadata(current, &mut object);
    keep_state(current, &mut object);
    let references = take_control(current, owners)?;
    let is_owned = references_of(current) == references;
    meta::set(&mut object, "ownerReferences", Value::Array(references));
    if is_owned
        && covers(current, &object)
        && MARKS.iter().all(|field| marks(current, field) == marks(&object, field))
    {
        return Ok(None);
    }
    if let Some(status) = current.get("status") {
        object["status"] = status.clone();
    }
    Ok(Some(object))
}

/// The existing object as an inactive revision writes it: the revision and the package are owners, and the current
/// controller stays the controller. An inactive revision creates nothing.
pub fn owned(current: &Value, owners: &Owners) -> Option<Value> {
    let released = released(current, owners);
    let is_owned =
        meta::owner_references(current).iter().any(|reference| reference.uid == owners.package.uid);
    if is_owned {
        return released;
    }
    let mut object = released.unwrap_or_else(|| current.clone());
    add_owner(&mut object, owners.package.as_package());
    Some(object)
}

/// The existing object as a revision that was deactivated writes it: it stays an owner, but controls it no longer.
pub fn released(current: &Value, owners: &Owners) -> Option<Value> {
    let mut references = references_of(current);
    let own = references.iter_mut().find(|r| uid(r) == owners.revision.uid);
    match own {
        Some(own) if own["controller"] == true => own["controller"] = false.into(),
        Some(_) => return None,
        None => references.push(owners.revision.as_plain()),
    }
    let mut object = current.clone();
    meta::set(&mut object, "ownerReferences", Value::Array(references));
    Some(object)
}

fn references_of(object: &Value) -> Vec<Value> {
    let list = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    list.cloned().unwrap_or_default()
}

fn uid(reference: &Value) -> &str {
    reference.get("uid").and_then(Value::as_str).unwrap_or_default()
}

/// The owner references with the revision in control. Entries keep their places.
fn take_control(current: &Value, owners: &Owners) -> Result<Vec<Value>, AlreadyControlled> {
    let ours = |uid: &str| {
        uid == owners.revision.uid || uid == owners.package.uid || owners.siblings.iter().any(|s| s == uid)
    };
    if let Some(other) = meta::controller_of(current).filter(|controller| !ours(&controller.uid)) {
        return Err(already_controlled(current, other));
    }
    let mut object = current.clone();
    let mut references = references_of(current);
    for reference in &mut references {
        if reference["controller"] == true && uid(reference) != owners.revision.uid {
            reference["controller"] = false.into();
        }
    }
    meta::set(&mut object, "ownerReferences", Value::Array(references));
    add_owner(&mut object, owners.package.as_package());
    add_owner(&mut object, owners.revision.as_controller());
    Ok(references_of(&object))
}

fn already_controlled(current: &Value, other: OwnerReference) -> AlreadyControlled {
    AlreadyControlled {
        name: meta::name(current).to_owned(),
        kind: other.kind,
        owner: other.name,
        uid: other.uid,
    }
}

/// What the API server and other controllers put into the metadata stays.
fn keep_metadata(current: &Value, object: &mut Value) {
    let Some(was) = current.get("metadata").and_then(Value::as_object) else { return };
    let Some(metadata) = meta::metadata_mut(object) else { return };
    for (field, value) in was {
        match (field.as_str(), value) {
            // `managedFields` must not be sent back when the rest changes.
            ("managedFields", _) => {}
            ("name", _) if metadata.contains_key(field) => {}
            ("labels" | "annotations", Value::Object(there)) => {
                let others = there.iter().filter(|(key, _)| is_of_others(current, field, key));
                let others: Map<String, Value> =
                    others.map(|(key, value)| (key.clone(), value.clone())).collect();
                if !others.is_empty()
                    && let Value::Object(wanted) = metadata.entry(field.clone()).or_insert_with(|| json!({}))
                {
                    for (key, value) in others {
                        wanted.entry(key).or_insert(value);
                    }
                }
            }
            _ => drop(metadata.insert(field.clone(), value.clone())),
        }
    }
}

/// The fields of the metadata that packages and others share.
const MARKS: [&str; 2] = ["labels", "annotations"];

fn marks<'o>(object: &'o Value, field: &str) -> Option<&'o Map<String, Value>> {
    let marks = object.get("metadata")?.get(field)?.as_object()?;
    Some(marks).filter(|marks| !marks.is_empty())
}

/// Whether a label or annotation is not set by the package: it is the control plane's own, or another client wrote it.
fn is_of_others(current: &Value, field: &str, key: &str) -> bool {
    if key.split_once('/').is_some_and(|(domain, _)| domain.ends_with("crossplane.io")) {
        return true;
    }
    let (field, key) = (format!("f:{field}"), format!("f:{key}"));
    let entries = current.pointer("/metadata/managedFields").and_then(Value::as_array);
    let mut managers = entries.into_iter().flatten().filter_map(|entry| {
        entry.get("fieldsV1")?.get("f:metadata")?.get(&field)?.get(&key)?;
        entry.get("manager")?.as_str()
    });
    match managers.next() {
        Some(owner::DEFAULT) => managers.any(|manager| manager != owner::DEFAULT),
        _ => true,
    }
}

/// Activation policies decide whether a managed resource definition is active: a package can activate one, not deactivate.
fn keep_state(current: &Value, object: &mut Value) {
    let is_active = object.pointer("/spec/state").and_then(Value::as_str) == Some("Active");
    if meta::kind(object) != "ManagedResourceDefinition" || is_active {
        return;
    }
    let state = current.pointer("/spec/state").cloned();
    if let (Some(state), Some(spec)) = (state, object.get_mut("spec").and_then(Value::as_object_mut)) {
        spec.insert("state".to_owned(), state);
    }
}

/// Whether an object has all that is wanted. Fields beyond that are the API server's defaults.
fn covers(current: &Value, wanted: &Value) -> bool {
    match (current, wanted) {
        (Value::Object(current), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| match current.get(key) {
                Some(current) => covers(current, wanted),
                None => wanted.is_null(),
            })
        }
        (Value::Array(current), Value::Array(wanted)) => {
            current.len() == wanted.len() && current.iter().zip(wanted).all(|(c, w)| covers(c, w))
        }
        _ => current == wanted,
    }
}

/// The references to established objects in the order in which a status lists them: descending by kind and name.
pub fn object_references<'o>(objects: impl IntoIterator<Item = &'o Value>) -> Vec<ObjectReference> {
    let reference = |object| {
        let Owner { api_version, kind, name, uid } = Owner::of(object);
        ObjectReference { api_version, kind, name, uid }
    };
    let mut references: Vec<ObjectReference> = objects.into_iter().map(reference).collect();
    references
        .sort_by_cached_key(|r| std::cmp::Reverse(format!("{}, Kind={}/{}", r.api_version, r.kind, r.name)));
    references
}

#[cfg(test)]
mod tests;
