//! `ephemeralcontainers` and `resize`: a whole pod is sent, and one part of it is taken over.

use crate::strategy::custom::copy_field;
use crate::subresource::Subresource;
use serde_json::{Map, Value};

/// Metadata that a write of a part leaves alone.
const METADATA: [&str; 6] =
    ["deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences"];
const CONTAINERS: [&str; 2] = ["containers", "initContainers"];
const SIZES: [&str; 2] = ["resources", "resizePolicy"];

/// Undoes what this subresource does not change. Containers of a resize that are not those of the pod are left for
/// validation to refuse.
pub(crate) fn keep_part(new: &mut Value, old: &Value, subresource: Subresource) {
    let mut spec = old["spec"].clone();
    match subresource {
        Subresource::EphemeralContainers => copy_field(&mut spec, &new["spec"], "ephemeralContainers"),
        Subresource::Resize => {
            for list in CONTAINERS {
                if !resized(&mut spec, &new["spec"], list) {
                    return;
                }
            }
        }
        _ => return,
    }
    new["spec"] = spec;
    copy_field(new, old, "status");
    for field in METADATA {
        copy_field(&mut new["metadata"], &old["metadata"], field);
    }
}

/// Takes over the sizes of containers. Whether they are the same containers.
fn resized(spec: &mut Value, new: &Value, list: &str) -> bool {
    let names = |spec: &Value| -> Vec<Value> {
        spec[list].as_array().into_iter().flatten().map(|c| c["name"].clone()).collect()
    };
    if names(spec) != names(new) {
        return false;
    }
    let wanted = new[list].as_array().into_iter().flatten();
    if let Some(containers) = spec.get_mut(list).and_then(Value::as_array_mut) {
        for (container, wanted) in containers.iter_mut().zip(wanted) {
            for field in SIZES {
                copy_field(container, wanted, field);
            }
        }
    }
    true
}

/// An apply configuration with nothing but what this subresource changes, so that its manager owns nothing else.
pub(crate) fn only_part(config: &mut Value, subresource: Subresource) {
    let mut spec = Map::new();
    match subresource {
        Subresource::EphemeralContainers => {
            let list = "ephemeralContainers";
            spec.extend(config["spec"].get(list).map(|given| (list.to_owned(), given.clone())));
        }
        Subresource::Resize => {
            for list in CONTAINERS {
                let Some(given) = config["spec"][list].as_array() else { continue };
                let sized = given.iter().map(|container| {
                    let fields = ["name"].into_iter().chain(SIZES);
                    let kept =
                        fields.filter_map(|f| container.get(f).map(|value| (f.to_owned(), value.clone())));
                    Value::Object(kept.collect())
                });
                spec.insert(list.to_owned(), sized.collect());
            }
        }
        _ => return,
    }
    config["spec"] = Value::Object(spec);
    if let Some(map) = config.as_object_mut() {
        map.remove("status");
    }
    if let Some(metadata) = config["metadata"].as_object_mut() {
        metadata.retain(|field, _| !METADATA.contains(&field.as_str()));
    }
}
