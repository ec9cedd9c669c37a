//! Reading what exists. Only the references of a composite resource determine which composed resources exist.

use crate::composite::references;
use crate::inputs::{Observation, ObservedResource, Spare};
use crate::world::{World, WorldError, kind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_object::meta;
use transom_xapi::CompositionSpec;
use transom_xapi::composite::Layout;
use transom_xapi::constants::annotation::COMPOSITION_RESOURCE_NAME;

/// Why the composed resources cannot be observed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant says what it is")]
pub enum ObserveError {
    #[error("cannot get existing composed resources: cannot get composed resource")]
    Get(#[source] WorldError),
    #[error(
        "cannot get existing composed resources: cannot fetch connection details for composed resource {name:?} (a {kind} named {object})"
    )]
    Connection { name: String, kind: String, object: String, source: WorldError },
}

/// The composed resources that exist. An object that another object controls counts as absent; of two objects with the
/// same name in the composition the last one counts. The other one is spare, and so is an object without a name.
pub async fn observe(
    xr: &Value,
    layout: Layout,
    composition: &CompositionSpec,
    world: &dyn World,
) -> Result<Observation, ObserveError> {
    let Observation { mut observed, mut spare } = Observation::default();
    for (index, reference) in references(xr, layout).into_iter().enumerate() {
        // Placeholders for what was never rendered.
        if reference.name.is_empty() {
            continue;
        }
        let namespace = match meta::namespace(xr) {
            "" => &reference.namespace,
            own => own,
        };
        let kind = kind(&reference.api_version, &reference.kind).map_err(ObserveError::Get)?;
        let found = world.get(&kind, namespace, &reference.name).await.map_err(ObserveError::Get)?;
        let Some(object) = found else { continue };
        if meta::controller_of(&object).is_some_and(|owner| owner.uid != meta::uid(xr)) {
            continue;
        }
        let Some(name) = name_of(&object, composition, index) else {
            spare.push(Spare { name: None, object });
            continue;
        };
        let connection_details =
            connection_details(&object, world).await.map_err(|source| ObserveError::Connection {
                name: name.clone(),
                kind: reference.kind.clone(),
                object: reference.name.clone(),
                source,
            })?;
        let found = ObservedResource { object: object.into(), connection_details };
        if let Some(other) = observed.insert(name.clone(), found) {
            spare.push(Spare { name: Some(name), object: Arc::unwrap_or_clone(other.object) });
        }
    }
    Ok(Observation { observed, spare })
}

/// A composed resource's name in its composition. What templates without names composed is identified by its index.
fn name_of(object: &Value, composition: &CompositionSpec, index: usize) -> Option<String> {
    match meta::annotation(object, COMPOSITION_RESOURCE_NAME) {
        Some(name) if !name.is_empty() => Some(name.to_owned()),
        _ if composition.is_resources_mode() => {
            Some(crate::resources_mode::template_name(composition.resources.get(index)?, index))
        }
        _ => None,
    }
}

/// The connection details that an object writes to a Secret; none when it refers to no Secret, or the Secret does not
/// exist yet.
pub async fn connection_details(
    object: &Value,
    world: &dyn World,
) -> Result<BTreeMap<String, Vec<u8>>, WorldError> {
    let reference = object.get("spec").and_then(|spec| spec.get("writeConnectionSecretToRef"));
    let text = |field| reference.and_then(|r| r.get(field)).and_then(Value::as_str).unwrap_or_default();
    let namespace = match meta::namespace(object) {
        "" => text("namespace"),
        own => own,
    };
    match text("name") {
        "" => Ok(BTreeMap::new()),
        name => Ok(world.secret(namespace, name).await?.unwrap_or_default()),
    }
}
