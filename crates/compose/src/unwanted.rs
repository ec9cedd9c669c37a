//! What exists and is not applied: it is deleted, or kept for a reason.

use crate::child_name::{child_name, field_owner};
use crate::condition::{Event, EventType, Target};
use crate::decision::{Application, Deletion, Reason};
use crate::failure::Cause;
use crate::inputs::{Inputs, Spare};
use crate::resources_mode;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use transom_object::quote::quote;
use transom_object::{GroupKind, GroupVersion, meta};
use transom_xapi::constants::annotation::COMPOSITION_RESOURCE_NAME;
use transom_xapi::constants::{event, label};
use transom_xapi::metadata::TypedReference;

/// What to do with the resources that exist and are not applied.
#[derive(Default)]
pub(crate) struct Rest {
    pub(crate) delete: Vec<Deletion>,
    /// What stays referenced.
    pub(crate) keep: Vec<TypedReference>,
    pub(crate) remarks: Vec<Event>,
}

/// Decides on everything that is observed and not applied. `apply` is ordered by name. What a template `rendered` and is not
/// applied was removed by a function.
pub(crate) fn rest(
    inputs: &Inputs<'_>,
    apply: &[Arc<Application>],
    rendered: &BTreeSet<String>,
) -> Result<Rest, Cause> {
    let has_failed_template =
        |name: &str| !rendered.contains(name) && resources_mode::has_template(inputs.composition, name);
    let wanted = |name: &str| {
        let at = apply.binary_search_by(|application| application.name.as_str().cmp(name)).ok()?;
        Some(&apply[at].object)
    };
    // Functions do not see a resource that cannot be identified, and may want less because of that.
    let uncertain =
        inputs.spare.iter().any(|spare| spare.name.is_none() && !is_nameless_by_design(inputs, spare));
    let mut rest = Rest::default();
    for (name, observed) in inputs.observed {
        let reason = match wanted(name) {
            Some(object) if is_same_kind(object, &observed.object) => continue,
            Some(_) => Reason::Replaced,
            None if uncertain || has_failed_template(name) => {
                rest.keep.push(TypedReference::to(&observed.object));
                continue;
            }
            None => Reason::Unwanted,
        };
        rest.delete.extend(deletion(inputs, name, &observed.object, reason)?);
    }
    for spare in inputs.spare {
        if apply.iter().any(|application| is_same_object(&application.object, &spare.object)) {
            continue;
        }
        let name = spare.name.as_deref().unwrap_or_default();
        let reason = match (&spare.name, wanted(name)) {
            // Of two of a kind with one name the other one counts, as in Crossplane.
            (Some(_), Some(object)) if is_same_kind(object, &spare.object) => continue,
            (Some(_), Some(_)) => Reason::Replaced,
            (Some(_), None) if !uncertain => Reason::Unwanted,
            (None, _) if is_nameless_by_design(inputs, spare) => Reason::Unwanted,
            _ => {
                rest.keep.push(TypedReference::to(&spare.object));
                rest.remarks.extend(spare.name.is_none().then(|| unidentified(&spare.object)));
                continue;
            }
        };
        rest.delete.extend(deletion(inputs, name, &spare.object, reason)?);
    }
    Ok(rest)
}

/// Whether an object was composed for a resource whose name is empty, which functions could want in earlier versions:
/// its generated name proves that, or that its annotation is empty and owned by the composite resource's field manager.
/// An annotation that another client emptied or removed is owned by that client: the resource may be wanted.
fn is_nameless_by_design(inputs: &Inputs<'_>, spare: &Spare) -> bool {
    let object = &spare.object;
    let prefix = object.pointer("/metadata/generateName").and_then(Value::as_str).unwrap_or_default();
    meta::annotation(object, COMPOSITION_RESOURCE_NAME) == Some("")
        && (meta::name(object) == child_name(prefix, meta::uid(inputs.xr), "")
            || owns_annotation(inputs, object))
}

/// Whether the composite resource's field manager owns the annotation that names a composed resource.
fn owns_annotation(inputs: &Inputs<'_>, object: &Value) -> bool {
    let group_kind = meta::gvk(inputs.xr).map_or_else(GroupKind::default, |gvk| gvk.group_kind());
    let manager = field_owner(meta::name(inputs.xr), &group_kind);
    let field = format!("f:{COMPOSITION_RESOURCE_NAME}");
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    entries.into_iter().flatten().any(|entry| {
        entry["manager"] == *manager && !entry["fieldsV1"]["f:metadata"]["f:annotations"][&field].is_null()
    })
}

fn unidentified(object: &Value) -> Event {
    let (kind, name) = (meta::kind(object), quote(meta::name(object)));
    Event {
        r#type: EventType::Warning,
        reason: event::composite::UNNAMED.to_owned(),
        message: format!(
            "cannot tell which composed resource {kind} {name} is, because its annotation {COMPOSITION_RESOURCE_NAME} \
             is missing or empty: it is kept, and no composed resource is deleted until the annotation names its \
             resource in the Composition, or the object is deleted"
        ),
        step: None,
        target: Target::Composite,
    }
}

/// The deletion of an object that is no longer wanted. An object without a controller is not deleted: the controller was
/// removed on purpose. An object with another controller should never have been observed, and is an error.
fn deletion(
    inputs: &Inputs<'_>,
    name: &str,
    object: &Value,
    reason: Reason,
) -> Result<Option<Deletion>, Cause> {
    match meta::controller_of(object) {
        None if !inputs.options.delete_uncontrolled => Ok(None),
        Some(owner) if owner.uid != meta::uid(inputs.xr) => {
            Err(Cause::Controlled { name: name.to_owned(), kind: owner.kind, owner: owner.name })
        }
        _ => {
            let disowned = disown(object.clone());
            let labelled = disowned != *object;
            Ok(Some(Deletion { name: name.to_owned(), object: disowned, labelled, reason }))
        }
    }
}

/// Removes the labels that mark an object as composed, which distinguishes this deletion from one by garbage collection.
fn disown(mut object: Value) -> Value {
    let labels = meta::metadata_mut(&mut object).and_then(|m| m.get_mut("labels"));
    if let Some(labels) = labels.and_then(Value::as_object_mut) {
        for owner in [label::COMPOSITE, label::CLAIM_NAME, label::CLAIM_NAMESPACE] {
            labels.remove(owner);
        }
    }
    object
}

/// Versions of a kind are the same objects.
pub(crate) fn is_same_kind(a: &Value, b: &Value) -> bool {
    let group = |object| GroupVersion::parse(meta::api_version(object)).map(|gv| gv.group);
    meta::kind(a) == meta::kind(b) && (meta::api_version(a) == meta::api_version(b) || group(a) == group(b))
}

fn is_same_object(a: &Value, b: &Value) -> bool {
    meta::name(a) == meta::name(b) && meta::namespace(a) == meta::namespace(b) && is_same_kind(a, b)
}
