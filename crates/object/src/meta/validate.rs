//! The rules for object metadata, on create and on update.

use super::coerce::{CoerceOptions, coerce_metadata};
use super::options::validate_field_manager;
use super::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN};
use crate::field::{Error, Path};
use crate::ids::GroupVersion;
use crate::labels::validate_label;
pub use crate::names::NameRule;
use crate::names::{is_dns1035_label, is_qualified_name, name_is_dns_label, name_is_path_segment};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const MAX_ANNOTATION_BYTES: usize = 256 * 1024;
const MAX_SUBRESOURCE_BYTES: usize = 256;

fn text<'a>(metadata: &'a Value, field: &str) -> &'a str {
    metadata.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(metadata: &'a Value, field: &str) -> &'a [Value] {
    metadata.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn number(metadata: &Value, field: &str) -> i64 {
    metadata.get(field).and_then(Value::as_i64).unwrap_or_default()
}

/// Checks metadata on create, when the name has been generated already. `path` is usually `metadata`.
pub fn validate_object_meta(
    metadata: &Value,
    namespaced: bool,
    name_rule: NameRule,
    path: &Path,
) -> Vec<Error> {
    let mut errors = Vec::new();
    let (name, generate_name) = (text(metadata, "name"), text(metadata, "generateName"));
    if !generate_name.is_empty() {
        let at = path.child("generateName");
        errors.extend(
            name_rule(generate_name, true).into_iter().map(|m| Error::invalid(&at, generate_name, m)),
        );
    }
    let at = path.child("name");
    if name.is_empty() {
        errors.push(Error::required(&at, "name or generateName is required"));
    } else {
        errors.extend(name_rule(name, false).into_iter().map(|m| Error::invalid(&at, name, m)));
    }
    errors.extend(validate_namespace(text(metadata, "namespace"), namespaced, &path.child("namespace")));
    errors.extend(validate_generation(metadata, path));
    errors.extend(validate_labels(metadata.get("labels").unwrap_or(&Value::Null), &path.child("labels")));
    errors.extend(validate_annotations(
        metadata.get("annotations").unwrap_or(&Value::Null),
        &path.child("annotations"),
    ));
    errors
        .extend(validate_owner_references(list(metadata, "ownerReferences"), &path.child("ownerReferences")));
    errors.extend(validate_finalizers(list(metadata, "finalizers"), &path.child("finalizers")));
    errors.extend(validate_managed_fields(list(metadata, "managedFields"), &path.child("managedFields")));
    errors
}

fn validate_namespace(namespace: &str, namespaced: bool, path: &Path) -> Vec<Error> {
    match (namespaced, namespace.is_empty()) {
        (true, true) => vec![Error::required(path, "")],
        (true, false) => {
            let broken = name_is_dns_label(namespace, false);
            broken.into_iter().map(|m| Error::invalid(path, namespace, m)).collect()
        }
        (false, true) => Vec::new(),
        (false, false) => vec![Error::forbidden(path, "not allowed on this type")],
    }
}

fn validate_generation(metadata: &Value, path: &Path) -> Option<Error> {
    let generation = number(metadata, "generation");
    let why = "must be greater than or equal to 0";
    (generation < 0).then(|| Error::invalid(&path.child("generation"), generation, why))
}

/// Checks a change of metadata. Immutable fields must have been restored, or be equal.
pub fn validate_object_meta_update(new: &Value, old: &Value, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    if !old.get("deletionTimestamp").unwrap_or(&Value::Null).is_null() {
        errors.extend(no_new_finalizers(new, old, &path.child("finalizers")));
    }
    if text(new, "resourceVersion").is_empty() {
        let at = path.child("resourceVersion");
        errors.push(Error::invalid(&at, "", "must be specified for an update"));
    }
    errors.extend(validate_generation(new, path));
    let generation = number(new, "generation");
    if generation < number(old, "generation") {
        errors.push(Error::invalid(&path.child("generation"), generation, "must not be decremented"));
    }
    for field in ["name", "namespace", "uid"] {
        if text(new, field) != text(old, field) {
            errors.push(Error::invalid(&path.child(field), text(new, field), "field is immutable"));
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = new.get(field).unwrap_or(&Value::Null);
        if value != old.get(field).unwrap_or(&Value::Null) {
            errors.push(Error::invalid(&path.child(field), value.clone(), "field is immutable"));
        }
    }
    errors.extend(validate_labels(new.get("labels").unwrap_or(&Value::Null), &path.child("labels")));
    errors.extend(validate_annotations(
        new.get("annotations").unwrap_or(&Value::Null),
        &path.child("annotations"),
    ));
    errors.extend(validate_owner_references(list(new, "ownerReferences"), &path.child("ownerReferences")));
    errors.extend(validate_managed_fields(list(new, "managedFields"), &path.child("managedFields")));
    errors
}

fn no_new_finalizers(new: &Value, old: &Value, path: &Path) -> Option<Error> {
    let set = |v| list(v, "finalizers").iter().filter_map(Value::as_str).collect::<BTreeSet<_>>();
    let (new, old) = (set(new), set(old));
    let extra: Vec<String> = new.difference(&old).map(|f| crate::quote::quote(f)).collect();
    (!extra.is_empty()).then(|| {
        let why = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            extra.join(", ")
        );
        Error::forbidden(path, why)
    })
}

/// The rules for `metadata.labels`.
pub fn validate_labels(labels: &Value, path: &Path) -> Vec<Error> {
    let labels = labels.as_object().into_iter().flatten();
    labels.flat_map(|(k, v)| validate_label(k, v.as_str().unwrap_or_default(), path)).collect()
}

/// Keys are qualified names in any case; all keys and values together may not be too long.
pub fn validate_annotations(annotations: &Value, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        let broken = is_qualified_name(&key.to_lowercase());
        errors.extend(broken.into_iter().map(|m| Error::invalid(path, key.as_str(), m)));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > MAX_ANNOTATION_BYTES {
        errors.push(Error::too_long(path, i64::try_from(MAX_ANNOTATION_BYTES).unwrap_or(i64::MAX)));
    }
    errors
}

/// The rules for `metadata.ownerReferences`.
pub fn validate_owner_references(references: &[Value], path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut controller: Option<String> = None;
    for (i, reference) in references.iter().enumerate() {
        errors.extend(validate_owner_reference(reference, &path.index(i)));
        if reference.get("controller") == Some(&Value::Bool(true)) {
            let this = format!("{}/{}", text(reference, "kind"), text(reference, "name"));
            match &controller {
                None => controller = Some(this),
                Some(first) => {
                    let why = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    );
                    errors.push(Error::invalid(path, references.to_vec(), why));
                }
            }
        }
    }
    errors
}

fn validate_owner_reference(reference: &Value, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    let api_version = text(reference, "apiVersion");
    let gv = GroupVersion::parse(api_version);
    if api_version.is_empty() {
        errors.push(Error::required(&path.child("apiVersion"), "must not be empty"));
    } else if gv.as_ref().is_none_or(|gv| gv.version.is_empty()) {
        let why = "must be <group>/<version> or <version>";
        errors.push(Error::invalid(&path.child("apiVersion"), api_version, why));
    }
    for field in ["kind", "name", "uid"] {
        if text(reference, field).is_empty() {
            errors.push(Error::required(&path.child(field), "must not be empty"));
        }
    }
    // Events come and go too fast to own anything.
    let gvk = gv.unwrap_or_default().with_kind(text(reference, "kind"));
    if gvk.group.is_empty() && gvk.version == "v1" && gvk.kind == "Event" {
        let why = format!("{gvk} is disallowed from being an owner");
        errors.push(Error::invalid(path, reference.clone(), why));
    }
    errors
}

/// The rules for `metadata.finalizers`.
pub fn validate_finalizers(finalizers: &[Value], path: &Path) -> Vec<Error> {
    let names: Vec<&str> = finalizers.iter().filter_map(Value::as_str).collect();
    let mut errors: Vec<Error> = names
        .iter()
        .flat_map(|name| is_qualified_name(name).into_iter().map(|m| Error::invalid(path, *name, m)))
        .collect();
    if names.contains(&FINALIZER_ORPHAN) && names.contains(&FINALIZER_FOREGROUND) {
        let why = format!("finalizer {FINALIZER_ORPHAN} and {FINALIZER_FOREGROUND} cannot be both set");
        errors.push(Error::invalid(path, finalizers.to_vec(), why));
    }
    errors
}

/// The rules for `metadata.managedFields`.
pub fn validate_managed_fields(entries: &[Value], path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        let at = path.index(i);
        match text(entry, "operation") {
            "" => errors.push(Error::required(&at.child("operation"), "must not be empty")),
            "Apply" | "Update" => {}
            other => {
                errors.push(Error::not_supported(&at.child("operation"), other, &["Apply", "Update"]));
            }
        }
        let fields_type = text(entry, "fieldsType");
        if !fields_type.is_empty() && fields_type != "FieldsV1" {
            errors.push(Error::invalid(&at.child("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        errors.extend(validate_field_manager(text(entry, "manager"), &at.child("manager")));
        if text(entry, "subresource").len() > MAX_SUBRESOURCE_BYTES {
            errors.push(Error::too_long(&at.child("subresource"), 256));
        }
    }
    errors
}

/// Checks `apiVersion`, `kind` and `metadata` of a resource embedded at `path` (or at the root).
pub fn validate_embedded_resource(object: &Map<String, Value>, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    for field in ["apiVersion", "kind"] {
        let at = path.child(field);
        match object.get(field) {
            None => errors.push(Error::required(&at, "")),
            Some(Value::String(s)) if s.is_empty() => {
                errors.push(Error::invalid(&at, "", "must not be empty"));
            }
            Some(Value::String(s)) if field == "apiVersion" => {
                if GroupVersion::parse(s).is_none() {
                    let why = format!("unexpected GroupVersion string: {s}");
                    errors.push(Error::invalid(&at, s.as_str(), why));
                }
            }
            Some(Value::String(s)) => {
                let broken = is_dns1035_label(&s.to_lowercase());
                if !broken.is_empty() {
                    let why =
                        format!("may have mixed case, but should otherwise match: {}", broken.join(","));
                    errors.push(Error::invalid(&at, s.as_str(), why));
                }
            }
            Some(other) => errors.push(Error::invalid(&at, other.clone(), "must be a string")),
        }
    }
    let Some(metadata) = object.get("metadata") else { return errors };
    let at = path.child("metadata");
    match coerce_metadata(metadata, CoerceOptions::default()) {
        Err(why) => errors.push(Error::invalid(&at, metadata.clone(), why.to_string())),
        Ok(coerced) => {
            let mut metadata = coerced.metadata;
            // An embedded resource needs no name.
            metadata.entry("name").or_insert_with(|| "fakename".into());
            let namespaced = metadata.contains_key("namespace");
            errors.extend(validate_object_meta(&metadata.into(), namespaced, name_is_path_segment, &at));
        }
    }
    errors
}
