//! From what a pipeline wants to what is applied: identity, ownership and names of composed resources.

use crate::child_name::{child_name, field_owner, is_valid};
use crate::condition::{Event, EventType, Target};
use crate::decision::{Application, NamedBy, Reason};
use crate::failure::Cause;
use crate::inputs::Inputs;
use crate::unwanted::is_same_kind;
use crate::world::{World, kind};
use serde_json::{Map, Value};
use transom_function::{Ready, Resource, State};
use transom_object::quote::quote;
use transom_object::{GroupKind, GroupVersion, meta};
use transom_xapi::PipelineStep;
use transom_xapi::constants::{annotation, condition, event, label};
use transom_xapi::metadata::controller_reference;

/// The most bytes that the keys and values of an object's annotations may have.
const MAX_ANNOTATIONS_BYTES: usize = 256 << 10;

/// Refuses names of composed resources that are empty or do not fit into an annotation.
pub(crate) fn check_names(step: &PipelineStep, desired: Option<&State>) -> Result<(), Cause> {
    let longest = MAX_ANNOTATIONS_BYTES - annotation::COMPOSITION_RESOURCE_NAME.len();
    for name in desired.into_iter().flat_map(|state| state.resources.keys()) {
        let why = match name.len() {
            0 => "without a name: every composed resource needs one".to_owned(),
            length if length > longest => {
                format!("whose name has {length} bytes: it must fit into an annotation, {longest} at most")
            }
            _ => continue,
        };
        let (step, function) = (step.step.clone(), step.function_name().to_owned());
        return Err(Cause::ResourceName { step, function, why });
    }
    Ok(())
}

/// What to apply for one composed resource, and perhaps a warning.
pub(crate) async fn application(
    inputs: &Inputs<'_>,
    name: &str,
    desired: Resource,
    world: &dyn World,
) -> Result<(Application, Option<Event>), Cause> {
    let (xr, observed) = (inputs.xr, inputs.observed.get(name));
    let group_kind = meta::gvk(xr).map_or_else(GroupKind::default, |gvk| gvk.group_kind());
    let ready = desired.ready() == Ready::True;
    let mut object = desired.resource.unwrap_or_default().into_value();
    check_type(name, &object)?;
    if let Some(observed) = observed {
        keep_identity(&mut object, &observed.object);
    }
    let event = check_namespace(inputs, name, &object, world).await?;
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
    // An observed object of another kind is another object, which is deleted.
    let existing = observed.filter(|observed| is_same_kind(&object, &observed.object));
    let reason = if existing.is_some() { Reason::Wanted } else { Reason::Missing };
    let application = Application {
        name: name.to_owned(),
        object,
        observed: existing.map(|existing| existing.object.clone()),
        field_owner: field_owner(meta::name(xr), &group_kind),
        undeclared: inputs.composition.is_resources_mode().then(Vec::new),
        ready,
        problem: existing.and_then(|existing| problem(&existing.object)),
        named_by,
        reason,
    };
    Ok((application, event))
}

/// The error that a resource reports in its condition `Synced`, as composite and managed resources do.
fn problem(observed: &Value) -> Option<String> {
    let list = observed.get("status").and_then(|status| status.get("conditions")).and_then(Value::as_array);
    let is =
        |entry: &Value, field: &str, value: &str| entry.get(field).and_then(Value::as_str) == Some(value);
    let mut synced = list.into_iter().flatten().filter(|entry| is(entry, "type", condition::SYNCED));
    let failed = synced.find(|entry| is(entry, "status", "False"))?;
    let message = failed.get("message").and_then(Value::as_str);
    message.filter(|message| !message.is_empty()).map(str::to_owned)
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

/// A namespaced composite resource composes in its own namespace only. For any other the function has to choose one.
async fn check_namespace(
    inputs: &Inputs<'_>,
    name: &str,
    object: &Value,
    world: &dyn World,
) -> Result<Option<Event>, Cause> {
    let (own, wanted) = (meta::namespace(inputs.xr), meta::namespace(object));
    let exists = || inputs.observed.get(name).is_some_and(|o| is_same_kind(&o.object, object));
    if own == wanted && !(own.is_empty() && inputs.options.scopes_known && !exists()) {
        return Ok(None);
    }
    if wanted.is_empty() {
        let namespaced = match kind(meta::api_version(object), meta::kind(object)) {
            Ok(kind) => world.is_namespaced(&kind).await,
            Err(why) => Err(why),
        };
        let (name, kind) = (name.to_owned(), meta::kind(object).to_owned());
        let object = meta::name(object).to_owned();
        return match namespaced {
            Ok(true) if own.is_empty() => Err(Cause::NoNamespace { name, kind }),
            // That the kind is unknown is found out when the resource is applied, if nothing depends on its scope.
            _ if own.is_empty() => Ok(None),
            Ok(true) => Ok(None),
            Ok(false) => Err(Cause::ClusterScoped { name, kind, object }),
            Err(source) => Err(Cause::Mapping { name, kind, object, source }),
        };
    }
    if own.is_empty() {
        return Ok(None);
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

/// Sets an entry of a map in the metadata. Entries that are not strings are left unchanged; the API
/// server refuses them.
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
