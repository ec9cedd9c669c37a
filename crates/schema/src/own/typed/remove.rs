//! Taking fields out of a value, or everything but them.

use super::item;
use crate::own::element::{Element, Path};
use crate::own::set::Set;
use crate::own::types::{Atom, List, Map, Type};
use serde_json::Value;

/// Removes fields and items. A container of which nothing is left becomes null, and so does an atomic one
/// that something is to be removed from.
pub fn remove_items(ty: Type<'_>, value: &mut Value, fields: &Set) {
    match (ty.atom(Some(value)), &mut *value) {
        (Some(Atom::Scalar(_)) | None, _) => {}
        (Some(Atom::List(list)), Value::Array(items)) if !list.atomic => {
            items.retain_mut(|child| {
                let Ok(element) = item::identify(&list, child) else { return true };
                if fields.has_member(&element) {
                    return false;
                }
                if let Some(below) = fields.child(&element).filter(|s| !s.is_empty()) {
                    remove_items(list.element, child, below);
                }
                true
            });
            if items.is_empty() {
                *value = Value::Null;
            }
        }
        (Some(Atom::Map(map)), Value::Object(entries)) if !map.atomic => {
            entries.retain(|key, child| {
                let element = Element::field(key);
                if fields.has_member(&element) {
                    return false;
                }
                if let Some(below) = fields.child(&element).filter(|s| !s.is_empty()) {
                    match map.value(key) {
                        Some(ty) => remove_items(ty, child, below),
                        None => *child = Value::Null,
                    }
                }
                true
            });
            if entries.is_empty() {
                *value = Value::Null;
            }
        }
        (Some(_), _) => *value = Value::Null,
    }
}

/// Only the fields and items that are in the set. Atomic and empty containers are kept as they are.
pub fn extract_items(ty: Type<'_>, value: &Value, fields: &Set) -> Value {
    match (ty.atom(Some(value)), value) {
        (Some(Atom::Scalar(_)), _) => value.clone(),
        (Some(Atom::List(list)), Value::Array(items)) => {
            if list.atomic || items.is_empty() {
                value.clone()
            } else {
                extract_list(&list, items, fields)
            }
        }
        (Some(Atom::Map(map)), Value::Object(entries)) => {
            if map.atomic || entries.is_empty() {
                value.clone()
            } else {
                extract_map(&map, entries, fields)
            }
        }
        _ => Value::Null,
    }
}

fn extract_list(list: &List<'_>, items: &[Value], fields: &Set) -> Value {
    let mut out = Vec::new();
    for child in items {
        let Ok(element) = item::identify(list, child) else { continue };
        match fields.child(&element).filter(|s| !s.is_empty()) {
            Some(below) => out.push(extract_items(list.element, child, below)),
            None if fields.has_member(&element) => out.push(child.clone()),
            None => {}
        }
    }
    if out.is_empty() { Value::Null } else { Value::Array(out) }
}

fn extract_map(map: &Map<'_>, entries: &serde_json::Map<String, Value>, fields: &Set) -> Value {
    let mut out = serde_json::Map::new();
    for (key, child) in entries {
        let element = Element::field(key);
        let extract = |below: &Set| map.value(key).map_or(Value::Null, |ty| extract_items(ty, child, below));
        if fields.has_member(&element) {
            // A field that is taken as a whole is still filtered, by the names of this level.
            out.insert(key.clone(), extract(fields));
        } else if let Some(below) = fields.child(&element).filter(|s| !s.is_empty()) {
            out.insert(key.clone(), extract(below));
        }
    }
    if out.is_empty() { Value::Null } else { Value::Object(out) }
}

/// Like [`extract_items`], keeping the key fields of every list item on the way to an extracted field.
pub fn extract_items_with_keys(ty: Type<'_>, value: &Value, fields: &Set) -> Value {
    let Ok(present) = super::to_field_set(ty, value) else {
        return extract_items(ty, value, fields);
    };
    let mut keys = Set::new();
    for Path(path) in fields.paths() {
        if !present.has(&path) {
            continue;
        }
        for (i, element) in path.iter().enumerate() {
            let Element::Key(names) = element else { continue };
            for (name, _) in names.iter() {
                let mut key = path[..=i].to_vec();
                key.push(Element::Field(name.clone()));
                keys.insert(&key);
            }
        }
    }
    extract_items(ty, value, &fields.union(&keys))
}
