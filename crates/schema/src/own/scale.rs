//! Owners of the replica count seen through the `scale` subresource, and back.
//!
//! A `Scale` object has no managedFields of its own: they are made from those of the object being scaled,
//! and what a write to `scale` changes is carried back.

use super::element::Path;
use super::managers::{self, ManagedFieldsError, Managers, Owned};
use super::set::Set;
use serde_json::Value;
use std::collections::BTreeMap;

const SCALE_VERSION: &str = "autoscaling/v1";

/// Where each API version of a kind keeps its replica count; `None` for versions that can not be scaled.
pub type ReplicaPaths = BTreeMap<String, Option<Path>>;

fn replicas() -> Path {
    Path::of(&["spec", "replicas"])
}

/// The managedFields of the `Scale` of an object. `None` when no manager owns its replica count.
pub fn to_scale(
    managed_fields: Option<&Value>,
    paths: &ReplicaPaths,
) -> Result<Option<Value>, ManagedFieldsError> {
    let mut of_scale = Managers::new();
    for (id, owned) in managers::decode(managed_fields)? {
        if let Some(Some(path)) = paths.get(&owned.api_version)
            && owned.set.has(&path.0)
        {
            let set = Set::from_iter([replicas()]);
            of_scale.insert(id, Owned { set, api_version: SCALE_VERSION.to_owned(), time: owned.time });
        }
    }
    Ok(managers::encode(&of_scale))
}

/// The managedFields of an object after a write to its `scale`, whose own managedFields are given.
/// `api_version` is the version of the object's endpoint.
pub fn to_parent(
    managed_fields: Option<&Value>,
    scale: Option<&Value>,
    api_version: &str,
    paths: &ReplicaPaths,
) -> Result<Option<Value>, ManagedFieldsError> {
    let parents = managers::decode(managed_fields)?;
    let mut of_scale = managers::decode(scale)?;
    let times: BTreeMap<_, _> = parents.iter().map(|(id, owned)| (id.clone(), owned.time.clone())).collect();
    let mut out = Managers::new();
    for (id, mut owned) in parents {
        let Some(path) = paths.get(&owned.api_version) else { continue };
        if let Some(path) = path.as_ref().filter(|path| owned.set.has(&path.0)) {
            // A manager that does not own the replica count of the scale no longer owns it in the object.
            if of_scale.remove(&id).is_none() {
                owned.set = owned.set.difference(&Set::from_iter([path.clone()]));
            }
        }
        if !owned.set.is_empty() {
            out.insert(id, owned);
        }
    }
    for (id, owned) in of_scale {
        let Some(Some(path)) = paths.get(api_version) else { continue };
        if owned.set.has(&replicas().0) {
            let time = times.get(&id).cloned().flatten();
            let set = Set::from_iter([path.clone()]);
            out.insert(id, Owned { set, api_version: api_version.to_owned(), time });
        }
    }
    Ok(managers::encode(&out))
}
