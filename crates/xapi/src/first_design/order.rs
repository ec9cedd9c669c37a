//! The order in which objects can be applied: what others need comes first.

use super::Translated;
use crate::constants::{group, kind};
use serde_json::Value;
use transom_object::meta;

/// Sorts, and leaves objects of the same rank in the order in which they were given.
pub(super) fn applicable(objects: &mut [Translated]) {
    objects.sort_by_key(|one| rank(&one.object));
}

fn rank(object: &Value) -> u8 {
    let of = meta::api_version(object).rsplit_once('/').map_or("", |(group, _)| group);
    match (of, meta::kind(object)) {
        ("", "Namespace") => 0,
        ("apiextensions.k8s.io", _) => 1,
        ("rbac.authorization.k8s.io", _) => 2,
        ("", _) => 3,
        ("pkg.crossplane.io", _) => 4,
        (group::APIEXTENSIONS, kind::XRD) => 5,
        (group::APIEXTENSIONS, _) => 6,
        // A claim may be bound to a composite resource that exists.
        _ if meta::namespace(object).is_empty() => 7,
        _ => 8,
    }
}
