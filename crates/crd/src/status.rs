//! The status of a definition: accepted names, conditions, stored versions.

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use transom_object::json::strings;

/// The finalizer that keeps a definition until its instances are removed.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Whether the status condition of a type is `True`.
pub fn has_condition(value: &Value, ty: &str) -> bool {
    value["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|c| c["type"] == ty && c["status"] == "True")
}

/// Writes the status that a definition has once this version of it is stored. `taken` must be true until it is.
pub fn accept_names(taken: &TakenNames, new: &mut Value, old: Option<&Value>, now: &str) {
    let (accepted, names_condition) = accept(new, taken, now);
    new["status"]["acceptedNames"] = accepted;
    let all_accepted = names_condition["status"] == "True";
    set_condition(new, names_condition);
    let was_established = old.is_some_and(|o| has_condition(o, "Established"));
    if all_accepted || was_established {
        set_condition(
            new,
            condition(
                "Established",
                "True",
                "InitialNamesAccepted",
                "the initial names have been accepted",
                now,
            ),
        );
    } else {
        set_condition(
            new,
            condition("Established", "False", "NotAccepted", "not all names are accepted", now),
        );
    }
}

/// The storage version joins the list of versions that objects may be stored in; only users remove one.
pub fn add_stored_version(definition: &mut Value) {
    if !definition["status"].is_object() {
        definition["status"] = json!({});
    }
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let storage: Vec<Value> = versions.filter(|v| v["storage"] == true).map(|v| v["name"].clone()).collect();
    let mut stored = definition["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    for version in storage {
        if !stored.contains(&version) {
            stored.push(version);
        }
    }
    definition["status"]["storedVersions"] = stored.into();
}

/// It is being deleted, and its instances are to be deleted first.
pub fn mark_terminating(definition: &mut Value, now: &str) {
    let mut finalizers = definition["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    if !finalizers.iter().any(|f| f == CLEANUP) {
        finalizers.push(CLEANUP.into());
    }
    definition["metadata"]["finalizers"] = finalizers.into();
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_condition(definition, condition("Terminating", "True", "InstanceDeletionPending", message, now));
}

/// Its instances are being deleted, and some are still there.
pub fn mark_emptying(definition: &mut Value, now: &str) {
    let message = "CustomResource deletion is in progress";
    set_condition(definition, condition("Terminating", "True", "InstanceDeletionInProgress", message, now));
}

/// A condition in the form that all status conditions have.
pub fn condition(ty: &str, status: &str, reason: &str, message: &str, now: &str) -> Value {
    json!({"type": ty, "status": status, "reason": reason, "message": message, "lastTransitionTime": now})
}

/// Replaces the condition of that type, keeping its transition time unless its status changed.
pub fn set_condition(value: &mut Value, mut new: Value) {
    let mut conditions = value["status"]["conditions"].as_array().cloned().unwrap_or_default();
    match conditions.iter_mut().find(|c| c["type"] == new["type"]) {
        Some(existing) => {
            if existing["status"] == new["status"] {
                new["lastTransitionTime"] = existing["lastTransitionTime"].clone();
            }
            *existing = new;
        }
        None => conditions.push(new),
    }
    value["status"]["conditions"] = conditions.into();
}

/// The accepted names of a definition, read without the rest of it, which is long.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Accepted {
    status: AcceptedStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AcceptedStatus {
    accepted_names: AcceptedNames,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AcceptedNames {
    plural: String,
    singular: String,
    short_names: Vec<String>,
    kind: String,
    list_kind: String,
}

/// Names that other definitions of the group have.
#[derive(Default)]
pub struct TakenNames {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl TakenNames {
    /// Adds the accepted names of another definition, which is given as it is stored.
    pub fn add(&mut self, definition: &[u8]) {
        let Ok(other) = serde_json::from_slice::<Accepted>(definition) else { return };
        let names = other.status.accepted_names;
        let given = |name: &String| !name.is_empty();
        self.resources.extend([names.plural, names.singular].into_iter().filter(given));
        self.resources.extend(names.short_names);
        self.kinds.extend([names.kind, names.list_kind].into_iter().filter(given));
    }
}

/// Accepts every requested name that is free, keeps the accepted one otherwise, and reports which names are in use.
fn accept(definition: &Value, taken: &TakenNames, now: &str) -> (Value, Value) {
    let requested = &definition["spec"]["names"];
    let mut accepted = definition["status"]["acceptedNames"].clone();
    if !accepted.is_object() {
        accepted = json!({});
    }
    let mut refusal: Option<(&str, String)> = None;
    for (key, reason, pool) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        let name = requested[key].as_str().unwrap_or_default();
        if accepted[key] == requested[key] || !pool.contains(name) {
            accepted[key] = name.into();
        } else {
            refusal.get_or_insert((reason, format!("{name:?} is already in use")));
        }
    }
    let short = strings(&requested["shortNames"]);
    let clashes: Vec<String> = short
        .iter()
        .filter(|s| taken.resources.contains(*s))
        .map(|s| format!("{s:?} is already in use"))
        .collect();
    if clashes.is_empty() {
        replace_list(&mut accepted, "shortNames", &short);
    } else {
        refusal.get_or_insert(("ShortNamesConflict", clashes.join(", ")));
    }
    replace_list(&mut accepted, "categories", &strings(&requested["categories"]));
    let verdict = match refusal {
        Some((reason, message)) => condition("NamesAccepted", "False", reason, &message, now),
        None => condition("NamesAccepted", "True", "NoConflicts", "no conflicts found", now),
    };
    (accepted, verdict)
}

fn replace_list(names: &mut Value, key: &str, list: &[String]) {
    if let Some(map) = names.as_object_mut() {
        if list.is_empty() {
            map.remove(key);
        } else {
            map.insert(key.into(), json!(list));
        }
    }
}
