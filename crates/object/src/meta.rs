//! Object metadata: reading it from dynamic objects, coercing it to its types, and its rules.
//!
//! Functions that take an `object` take the whole object; those that take `metadata` take that part alone.

mod coerce;
pub mod options;
mod validate;

pub use coerce::{CoerceError, CoerceOptions, Coerced, coerce, coerce_metadata};
pub use validate::{
    NameRule, validate_annotations, validate_embedded_resource, validate_finalizers, validate_labels,
    validate_managed_fields, validate_object_meta, validate_object_meta_update, validate_owner_references,
};

use crate::GroupVersionKind;
use crate::header::OwnerReference;
use crate::ids::GroupVersion;
use crate::labels::Labels;
use serde_json::{Map, Value};

/// The finalizer that makes the garbage collector orphan dependents.
pub const FINALIZER_ORPHAN: &str = "orphan";
/// The finalizer that keeps an object until its blocking dependents are gone.
pub const FINALIZER_FOREGROUND: &str = "foregroundDeletion";

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// `apiVersion`; empty if it is missing.
pub fn api_version(object: &Value) -> &str {
    object.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
}

/// `kind`; empty if it is missing.
pub fn kind(object: &Value) -> &str {
    object.get("kind").and_then(Value::as_str).unwrap_or_default()
}

/// `None` when `apiVersion` is malformed or either part is missing.
pub fn gvk(object: &Value) -> Option<GroupVersionKind> {
    let gv = GroupVersion::parse(api_version(object)).filter(|gv| !gv.version.is_empty())?;
    Some(kind(object)).filter(|k| !k.is_empty()).map(|k| gv.with_kind(k))
}

/// `metadata.name`; empty if it is missing.
pub fn name(object: &Value) -> &str {
    text(object, "name")
}

/// `metadata.namespace`; empty for cluster-scoped objects.
pub fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

/// `metadata.uid`; empty if it is missing.
pub fn uid(object: &Value) -> &str {
    text(object, "uid")
}

/// `metadata.resourceVersion`; empty if it is missing.
pub fn resource_version(object: &Value) -> &str {
    text(object, "resourceVersion")
}

/// `metadata.generation`; zero if it is missing.
pub fn generation(object: &Value) -> i64 {
    object.get("metadata").and_then(|m| m.get("generation")).and_then(Value::as_i64).unwrap_or_default()
}

/// Whether the object has a `deletionTimestamp`.
pub fn is_deleting(object: &Value) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// `metadata.labels`, entries that are not strings left out.
pub fn labels(object: &Value) -> Labels {
    strings(object, "labels").map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

/// The value of one label.
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(key)?.as_str()
}

/// The value of one annotation.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

fn strings<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = object.get("metadata").and_then(|m| m.get(field)).and_then(Value::as_object);
    map.into_iter().flatten().filter_map(|(k, v)| v.as_str().map(|v| (k.as_str(), v)))
}

/// `metadata.finalizers`
pub fn finalizers(object: &Value) -> Vec<&str> {
    let list = object.get("metadata").and_then(|m| m.get("finalizers")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Malformed references are left out.
pub fn owner_references(object: &Value) -> Vec<OwnerReference> {
    let list = object.get("metadata").and_then(|m| m.get("ownerReferences")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|r| serde_json::from_value(r.clone()).ok()).collect()
}

/// The owner that manages the object.
pub fn controller_of(object: &Value) -> Option<OwnerReference> {
    owner_references(object).into_iter().find(|r| r.controller == Some(true))
}

/// The metadata of an object, made if it is not there. `None` when the value is not an object.
pub fn metadata_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let metadata = object.as_object_mut()?.entry("metadata").or_insert_with(|| Map::new().into());
    if !metadata.is_object() {
        *metadata = Map::new().into();
    }
    metadata.as_object_mut()
}

/// Sets a field of the metadata; null removes it.
pub fn set(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(metadata) = metadata_mut(object) {
        match value.into() {
            Value::Null => drop(metadata.remove(field)),
            value => drop(metadata.insert(field.to_owned(), value)),
        }
    }
}

/// Sets `metadata.name`.
pub fn set_name(object: &mut Value, name: &str) {
    set(object, "name", name);
}

/// Sets `metadata.namespace`; an empty one removes it.
pub fn set_namespace(object: &mut Value, namespace: &str) {
    set(object, "namespace", Some(namespace).filter(|n| !n.is_empty()));
}

/// Sets `metadata.uid`.
pub fn set_uid(object: &mut Value, uid: &str) {
    set(object, "uid", uid);
}

/// Sets `metadata.resourceVersion`; an empty one removes it.
pub fn set_resource_version(object: &mut Value, version: &str) {
    set(object, "resourceVersion", Some(version).filter(|v| !v.is_empty()));
}

/// Sets one label.
pub fn set_label(object: &mut Value, key: &str, value: &str) {
    set_entry(object, "labels", key, value);
}

/// Sets one annotation.
pub fn set_annotation(object: &mut Value, key: &str, value: &str) {
    set_entry(object, "annotations", key, value);
}

fn set_entry(object: &mut Value, map: &str, key: &str, value: &str) {
    let Some(metadata) = metadata_mut(object) else { return };
    let map = metadata.entry(map).or_insert_with(|| Map::new().into());
    if !map.is_object() {
        *map = Map::new().into();
    }
    if let Some(map) = map.as_object_mut() {
        map.insert(key.to_owned(), value.into());
    }
}

/// Without vowels and look-alikes, so that no words arise.
const SUFFIX_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_BYTES: usize = 5;
const MAX_GENERATED_NAME_BYTES: usize = 63;

/// A name made of `generateName` and five characters drawn from `random`.
pub fn generate_name(base: &str, random: &mut impl FnMut() -> u32) -> String {
    let mut end = base.len().min(MAX_GENERATED_NAME_BYTES - SUFFIX_BYTES);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = base[..end].to_owned();
    for _ in 0..SUFFIX_BYTES {
        // The upper half of the product is uniform to within 2^-27.
        let index = (u64::from(random()) * SUFFIX_ALPHABET.len() as u64) >> 32;
        name.push(char::from(SUFFIX_ALPHABET[usize::try_from(index).unwrap_or_default()]));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn generated_names_fit() {
        let mut n = 0_u32;
        let mut random = || {
            n = n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            n
        };
        let name = generate_name("web-", &mut random);
        assert!(name.starts_with("web-") && name.len() == 9, "{name}");
        assert!(name[4..].bytes().all(|b| SUFFIX_ALPHABET.contains(&b)), "{name}");
        assert_eq!(generate_name(&"a".repeat(100), &mut random).len(), 63);
        assert!(generate_name(&"é".repeat(100), &mut random).len() <= 63);
        assert_eq!(generate_name("x", &mut || u32::MAX), "x99999");
    }

    #[test]
    fn fields_are_read_and_set() {
        let mut object = json!({"apiVersion": "apps/v1", "kind": "X", "metadata": {"labels": {"a": "b"}}});
        set_name(&mut object, "n");
        set_namespace(&mut object, "ns");
        set_annotation(&mut object, "k", "v");
        set_label(&mut object, "c", "d");
        assert_eq!((name(&object), namespace(&object), annotation(&object, "k")), ("n", "ns", Some("v")));
        assert_eq!(labels(&object).len(), 2);
        assert_eq!(gvk(&object).map(|g| g.to_string()).as_deref(), Some("apps/v1, Kind=X"));
        set_namespace(&mut object, "");
        assert_eq!(object["metadata"].get("namespace"), None);
        assert_eq!(gvk(&json!({"apiVersion": "a/b/c", "kind": "X"})), None);
    }

    #[test]
    fn hostile_shapes_read_as_empty() {
        for mut object in [json!(null), json!([]), json!({"metadata": 5}), json!({"metadata": {"name": 1}})] {
            assert_eq!(name(&object), "");
            assert!(labels(&object).is_empty() && finalizers(&object).is_empty());
            set_label(&mut object, "a", "b");
        }
    }
}
