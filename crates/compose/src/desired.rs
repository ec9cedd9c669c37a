//! From what a pipeline wants to what is applied: identity, ownership and names of composed resources.

use crate::child_name::{child_name, is_valid};
use crate::condition::{Event, EventType, Target};
use crate::failure::Cause;
use crate::inputs::ObservedResource;
use crate::plan::{Application, NamedBy, Reason};
use crate::world::{Kind, World};
use serde_json::{Map, Value};
use transom_function::{Ready, Resource};
use transom_object::quote::quote;
use transom_object::{GroupVersion, meta};
use transom_xapi::constants::{annotation, event, label};
use transom_xapi::metadata::controller_reference;

/// What to apply for one composed resource, and perhaps a warning.
pub(crate) async fn application(
    xr: &Value,
    name: &str,
    desired: Resource,
    observed: Option<&ObservedResource>,
    world: &dyn World,
) -> Result<(Application, Option<Event>), Cause> {
    let ready = desired.ready() == Ready::True;
    let mut object = desired.resource.unwrap_or_default().into_value();
    check_type(name, &object)?;
    if let Some(observed) = observed {
        keep_identity(&mut object, &observed.object);
    }
    let event = check_namespace(xr, name, &object, world).await?;
    own(xr, name, &mut object)?;
    let named_by = match observed {
        // What is observed in a file need not have a name.
        _ if meta::name(&object).is_empty() => NamedBy::Engine,
        Some(_) => NamedBy::Observed,
        None => NamedBy::Function,
    };
    if meta::name(&object).is_empty() {
        let prefix = text(&object, "generateName").to_owned();
        meta::set_name(&mut object, &child_name(&prefix, meta::uid(xr), name));
    }
    let group = GroupVersion::parse(meta::api_version(&object)).unwrap_or_default();
    if !is_valid(meta::name(&object), &group.with_kind(meta::kind(&object)).group_kind()) {
        return Err(Cause::InvalidName { name: name.to_owned(), object: meta::name(&object).to_owned() });
    }
    let reason = if observed.is_some() { Reason::Wanted } else { Reason::Missing };
    Ok((Application { name: name.to_owned(), object, ready, named_by, reason }, event))
}

/// An object without a type could never be applied: better to change nothing than to stop half-way.
fn check_type(name: &str, object: &Value) -> Result<(), Cause> {
    let missing = |why| Err(Cause::NotAResource { name: name.to_owned(), why });
    match object.get("metadata") {
        Some(metadata) if !metadata.is_object() => return missing("its metadata is not an object"),
        _ => {}
    }
    match (meta::kind(object), meta::api_version(object)) {
        ("", _) => missing("Object 'Kind' is missing"),
        (_, "") => missing("Object 'apiVersion' is missing"),
        _ => Ok(()),
    }
}

/// A composed resource that exists can neither be renamed nor moved.
fn keep_identity(object: &mut Value, observed: &Value) {
    meta::set_namespace(object, meta::namespace(observed));
    meta::set(object, "name", Some(meta::name(observed)).filter(|name| !name.is_empty()));
    meta::set(object, "generateName", Some(text(observed, "generateName")).filter(|name| !name.is_empty()));
}

/// A namespaced composite resource composes in its own namespace only.
async fn check_namespace(
    xr: &Value,
    name: &str,
    object: &Value,
    world: &dyn World,
) -> Result<Option<Event>, Cause> {
    let (own, wanted) = (meta::namespace(xr), meta::namespace(object));
    if own.is_empty() || own == wanted {
        return Ok(None);
    }
    if wanted.is_empty() {
        let (name, kind) = (name.to_owned(), meta::kind(object).to_owned());
        let (api_version, object) = (meta::api_version(object), meta::name(object).to_owned());
        return match world.is_namespaced(Kind { api_version, kind: &kind }).await {
            Ok(true) => Ok(None),
            Ok(false) => Err(Cause::ClusterScoped { name, kind, object }),
            Err(why) => Err(Cause::Mapping { name, kind, object, why }),
        };
    }
    Ok(Some(Event {
        r#type: EventType::Warning,
        reason: event::composite::NAMESPACE_OVERRIDDEN.to_owned(),
        message: format!(
            "cannot create composed resource {} in namespace {}, using XR namespace {} instead",
            quote(name),
            quote(wanted),
            quote(own)
        ),
        step: None,
        target: Target::Composite,
    }))
}

/// Says in the metadata of a composed resource whose it is. What functions wrote there themselves stays.
fn own(xr: &Value, name: &str, object: &mut Value) -> Result<(), Cause> {
    let failed = |why, object: &Value| Cause::Metadata {
        name: name.to_owned(),
        why,
        composed: Box::new(object.clone()),
    };
    let of_xr = |key| meta::label(xr, key).filter(|value| !value.is_empty());
    let Some(prefix) = of_xr(label::COMPOSITE) else {
        return Err(failed(Cause::NoNamePrefix.to_string(), object));
    };
    if meta::name(object).is_empty() && text(object, "generateName").is_empty() {
        meta::set(object, "generateName", format!("{prefix}-"));
    }
    if !meta::namespace(xr).is_empty() {
        meta::set_namespace(object, meta::namespace(xr));
    }
    put(object, "annotations", annotation::COMPOSITION_RESOURCE_NAME, name);
    put(object, "labels", label::COMPOSITE, prefix);
    if let (Some(claim), Some(namespace)) = (of_xr(label::CLAIM_NAME), of_xr(label::CLAIM_NAMESPACE)) {
        put(object, "labels", label::CLAIM_NAME, claim);
        put(object, "labels", label::CLAIM_NAMESPACE, namespace);
    }
    control(xr, object).map_err(|why| failed(why, object))
}

/// Makes the composite resource the controller.
fn control(xr: &Value, object: &mut Value) -> Result<(), String> {
    if let Some(other) = meta::controller_of(object).filter(|owner| owner.uid != meta::uid(xr)) {
        let name = meta::name(object);
        return Err(format!(
            "cannot set controller reference: {name} is already controlled by {} {} (UID {})",
            other.kind, other.name, other.uid
        ));
    }
    let reference =
        controller_reference(meta::api_version(xr), meta::kind(xr), meta::name(xr), meta::uid(xr));
    let Some(metadata) = meta::metadata_mut(object) else { return Ok(()) };
    let owners = metadata.entry("ownerReferences").or_insert_with(|| Value::Array(Vec::new()));
    if !owners.is_array() {
        *owners = Value::Array(Vec::new());
    }
    if let Some(owners) = owners.as_array_mut() {
        match owners.iter_mut().find(|owner| owner.get("uid") == reference.get("uid")) {
            Some(owner) => *owner = reference,
            None => owners.push(reference),
        }
    }
    Ok(())
}

/// Sets an entry of a map in the metadata. Entries that are no strings are left for the API server to refuse.
fn put(object: &mut Value, map: &str, key: &str, value: &str) {
    let Some(metadata) = meta::metadata_mut(object) else { return };
    let map = metadata.entry(map).or_insert_with(|| Map::new().into());
    if !map.is_object() {
        *map = Map::new().into();
    }
    if let Some(map) = map.as_object_mut() {
        map.insert(key.to_owned(), value.into());
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default()
}
