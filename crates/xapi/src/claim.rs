//! Claims: namespaced stand-ins for legacy composite resources, kept in step with them in both directions.
//!
//! A claim is written before the composite resource it creates, so that a crash in between leaks nothing. User fields
//! flow from the claim's spec to the composite resource and from the composite resource's status to the claim;
//! [`bind`] determines where Crossplane's own fields go.

use crate::composite::{Composite, Layout, UpdatePolicy, last_published_time};
use crate::conditions::{self, Condition};
use crate::constants::{annotation, label};
use crate::derive;
use crate::metadata::{TypedReference, annotations, was_created};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use transom_object::quote::quote;
use transom_object::{GroupVersionKind, meta};

/// Why a claim cannot be bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what it is")]
pub enum Error {
    #[error("claim spec was not an object")]
    Spec,
    #[error("composite resource status was not an object")]
    CompositeStatus,
    #[error(
        "refusing to operate on composite resource {} that is not bound to this claim: bound to claim {}",
        quote(composite),
        quote(claim)
    )]
    BoundToOther { composite: String, claim: String },
}

/// The fields of a claim's spec that reach the composite resource although they are Crossplane's.
const PROPAGATED: &[&str] =
    &["compositionRef", "compositionSelector", "compositionUpdatePolicy", "compositionRevisionSelector"];
const REVISION_REF: &str = "compositionRevisionRef";
const COMPOSITION_REF: &str = "compositionRef";
const REVISION_SELECTOR: &str = "compositionRevisionSelector";

/// What is called to find the composite resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompositeName {
    /// The claim refers to it.
    Bound(String),
    /// The claim does not name it: a name with this prefix is to be generated.
    Generate(String),
}

/// The name of the claim's composite resource.
pub fn composite_name(claim: &Value) -> CompositeName {
    match resource_ref(claim) {
        Some(reference) if !reference.name.is_empty() => CompositeName::Bound(reference.name),
        _ => CompositeName::Generate(format!("{}-", meta::name(claim))),
    }
}

/// The composite resource the claim is bound to.
pub fn resource_ref(claim: &Value) -> Option<TypedReference> {
    TypedReference::deserialize(claim.pointer("/spec/resourceRef")?).ok()
}

/// The name of the secret the claim wants connection details in, in its own namespace.
pub fn connection_secret_name(claim: &Value) -> Option<&str> {
    claim.pointer("/spec/writeConnectionSecretToRef")?.get("name")?.as_str()
}

/// Whether the claim's composite resource must be gone before the claim is.
pub fn deletes_in_foreground(claim: &Value) -> bool {
    claim.pointer("/spec/compositeDeletePolicy").and_then(Value::as_str) == Some("Foreground")
}

/// An error if the composite resource exists and is bound to another claim. One that is bound to none may be bound.
pub fn must_be_bindable(claim: &Value, xr: &Composite) -> Result<(), Error> {
    let other = xr.claim_ref().filter(|reference| *reference != TypedReference::to(claim));
    match other.filter(|_| was_created(&xr.object)) {
        None => Ok(()),
        Some(other) => {
            Err(Error::BoundToOther { composite: meta::name(&xr.object).to_owned(), claim: other.name })
        }
    }
}

/// Whether the composite resource is bound to this claim.
pub fn is_bound(claim: &Value, xr: &Composite) -> bool {
    xr.claim_ref() == Some(TypedReference::to(claim))
}

/// The result of binding a claim to its composite resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The claim to write first; equal to the one given when there is nothing to write.
    pub claim: Value,
    /// The composite resource to apply, forcing ownership: the fields of the claim and nothing else.
    pub composite: Value,
}

/// Binds a claim to its composite resource of this type and name, and copies the fields that each gets from the other.
/// `observed` is the composite resource as it is, or an empty object. `enforced`: the definition enforces a Composition,
/// so the claim's choice is ignored.
pub fn bind(
    claim: &Value,
    observed: &Composite,
    of: &GroupVersionKind,
    name: &str,
    enforced: bool,
) -> Result<Binding, Error> {
    let spec = claim.get("spec").and_then(Value::as_object).ok_or(Error::Spec)?;
    // The server cannot apply such an object either, and says so in words that name no remedy.
    status_of(&observed.object)?;
    let mut composite = json!({"apiVersion": of.api_version(), "kind": of.kind, "metadata": {"name": name}});
    copy_metadata(claim, observed, &mut composite);
    let stripped = stripped_fields(observed, enforced);
    let mut kept: Map<String, Value> = Map::new();
    kept.extend(
        spec.iter().filter(|(field, _)| !stripped.contains(field)).map(|(k, v)| (k.clone(), v.clone())),
    );
    kept.insert("claimRef".to_owned(), json!(TypedReference::to(claim)));
    composite["spec"] = kept.into();
    Ok(Binding { claim: with_fields_of_composite(claim, observed, of, name, enforced), composite })
}

/// Labels and annotations of the claim, save those that belong to Kubernetes. The name of the external resource is
/// never changed once the composite resource has one.
fn copy_metadata(claim: &Value, observed: &Composite, composite: &mut Value) {
    for (key, value) in annotations(claim).filter(|(key, _)| !is_reserved(key)) {
        meta::set_annotation(composite, key, value);
    }
    for (key, value) in meta::labels(claim).iter().filter(|(key, _)| !is_reserved(key)) {
        meta::set_label(composite, key, value);
    }
    meta::set_label(composite, label::CLAIM_NAME, meta::name(claim));
    meta::set_label(composite, label::CLAIM_NAMESPACE, meta::namespace(claim));
    if let Some(external) = external_name(&observed.object) {
        meta::set_annotation(composite, annotation::EXTERNAL_NAME, external);
    }
}

fn is_reserved(key: &str) -> bool {
    let prefix = key.split('/').next().unwrap_or_default();
    prefix.ends_with("kubernetes.io") || prefix.ends_with("k8s.io")
}

fn external_name(object: &Value) -> Option<&str> {
    meta::annotation(object, annotation::EXTERNAL_NAME).filter(|name| !name.is_empty())
}

/// The fields of the claim's spec that must not reach the composite resource: those that only claims have, and those
/// that only the composite resource's controller may set, which a lenient schema would let a claim smuggle in.
fn stripped_fields(observed: &Composite, enforced: bool) -> Vec<String> {
    let manual = observed.composition_update_policy() == Some(UpdatePolicy::Manual);
    let passes = |field: &str| {
        (PROPAGATED.contains(&field) && !(enforced && field == COMPOSITION_REF))
            || (manual && field == REVISION_REF)
    };
    derive::claim_only_fields()
        .chain(derive::composite_spec_fields())
        .filter(|field| !passes(field))
        .collect()
}

/// The claim with the fields of its composite resource.
fn with_fields_of_composite(
    claim: &Value,
    observed: &Composite,
    of: &GroupVersionKind,
    name: &str,
    enforced: bool,
) -> Value {
    let mut updated = claim.clone();
    if let Some(external) = external_name(&observed.object) {
        meta::set_annotation(&mut updated, annotation::EXTERNAL_NAME, external);
    }
    let Some(spec) = updated.get_mut("spec").and_then(Value::as_object_mut) else { return updated };
    let reference = TypedReference {
        api_version: of.api_version(),
        kind: of.kind.clone(),
        name: name.to_owned(),
        namespace: String::new(),
    };
    if spec.get("resourceRef").and_then(|r| TypedReference::deserialize(r).ok()).as_ref() != Some(&reference)
    {
        spec.insert("resourceRef".to_owned(), json!(reference));
    }
    let machinery = Layout::Legacy.machinery(&observed.object);
    let field = |name: &str| machinery.and_then(|m| m.get(name)).filter(|v| v.is_object()).cloned();
    let mut copy_if = |copy: bool, name: &str| {
        if let Some(value) = field(name).filter(|_| copy) {
            spec.insert(name.to_owned(), value);
        }
    };
    let missing = |name: &str| !claim["spec"].get(name).is_some_and(Value::is_object);
    copy_if(enforced || missing(COMPOSITION_REF), COMPOSITION_REF);
    copy_if(missing(REVISION_SELECTOR), REVISION_SELECTOR);
    copy_if(observed.composition_update_policy() == Some(UpdatePolicy::Automatic), REVISION_REF);
    updated
}

fn status_of(xr: &Value) -> Result<Option<&Map<String, Value>>, Error> {
    xr.get("status").map(|status| status.as_object().ok_or(Error::CompositeStatus)).transpose()
}

/// Gives the claim the status of its composite resource, except what Crossplane keeps there for either; returns whether
/// anything changed.
pub fn copy_status(claim: &mut Value, xr: &Value) -> Result<bool, Error> {
    let Some(theirs) = status_of(xr)? else { return Ok(false) };
    let own: Vec<String> = derive::claim_status_fields().collect();
    let mut status: Map<String, Value> = theirs
        .iter()
        .filter(|(field, _)| !own.contains(field))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let conditions = conditions::of(claim);
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), json!(conditions));
    }
    if let Some(time) = last_published_time(claim) {
        status.insert("connectionDetails".to_owned(), json!({"lastPublishedTime": time}));
    }
    let before = claim.get("status").and_then(Value::as_object);
    if before == Some(&status) || (before.is_none() && status.is_empty()) {
        return Ok(false);
    }
    if let Some(claim) = claim.as_object_mut() {
        claim.insert("status".to_owned(), status.into());
    }
    Ok(true)
}

/// The conditions of the composite resource that the claim gets to see.
pub fn custom_conditions(xr: &Composite) -> Vec<Condition> {
    let all = conditions::of(&xr.object);
    xr.claim_condition_types().iter().map(|kind| conditions::get(&all, kind)).collect()
}

/// The conditions of a claim that is in step with its composite resource.
pub fn conditions_of(xr: &Composite) -> Vec<Condition> {
    let mut list = vec![Condition::reconcile_success()];
    list.extend(custom_conditions(xr));
    let ready = conditions::get(&conditions::of(&xr.object), crate::constants::condition::READY).is_true();
    list.push(if ready { Condition::available() } else { Condition::waiting() });
    list
}

/// What to do about the composite resource of a claim that is being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It is gone: let the claim go.
    Finish,
    /// Delete it and let the claim go.
    Background,
    /// Delete it with foreground propagation, and come back.
    Foreground,
    /// It is being deleted: come back.
    Wait,
}

/// What to do about the composite resource (an empty object if it is gone) of a claim that is being deleted.
pub fn deletion(claim: &Value, xr: &Value) -> Deletion {
    match (was_created(xr), deletes_in_foreground(claim)) {
        (false, _) => Deletion::Finish,
        (true, true) if meta::is_deleting(xr) => Deletion::Wait,
        (true, true) => Deletion::Foreground,
        (true, false) => Deletion::Background,
    }
}

#[cfg(test)]
mod tests;
