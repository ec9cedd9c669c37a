//! Whether a value fits its type, as far as merging needs it to.

use super::{Misfits, Misfitting, NO_TYPE, item};
use crate::own::element::Element;
use crate::own::types::{Atom, List, Map, Scalar, Type};
use crate::own::wording;
use serde_json::Value;
use std::collections::BTreeSet;
use transom_object::json::go_type;

/// Whether an associative list may hold several items of one identity. Stored objects may (they were
/// written before the schema said so); applied configurations may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// They are accepted.
    Allow,
    /// They are errors.
    Forbid,
}

/// Checks a value against its type.
pub fn validate(ty: Type<'_>, value: &Value, duplicates: Duplicates) -> Result<(), Misfits> {
    let mut misfits = Misfitting::default();
    walk(ty, value, duplicates, &mut misfits);
    misfits.finish(())
}

fn walk(ty: Type<'_>, value: &Value, duplicates: Duplicates, misfits: &mut Misfitting) {
    if ty.hidden() {
        return;
    }
    match ty.atom(Some(value)) {
        Some(Atom::Scalar(scalar)) => check_scalar(scalar, value, "", misfits),
        Some(Atom::List(list)) => match value {
            Value::Array(items) => walk_list(&list, items, duplicates, misfits),
            Value::Null => {}
            _ => misfits.add(format!("expected list, got &{{{}}}", wording::plain(value))),
        },
        Some(Atom::Map(map)) => match value {
            Value::Object(fields) => walk_map(&map, fields, duplicates, misfits),
            Value::Null => {}
            _ => misfits.add(format!("expected map, got &{{{}}}", wording::plain(value))),
        },
        None => misfits.add(NO_TYPE),
    }
}

fn walk_list(list: &List<'_>, items: &[Value], duplicates: Duplicates, misfits: &mut Misfitting) {
    let mut seen = BTreeSet::new();
    for (i, child) in items.iter().enumerate() {
        let element = if list.atomic {
            Element::Index(i64::try_from(i).unwrap_or(i64::MAX))
        } else {
            match item::identify(list, child) {
                Ok(element) => element,
                Err(why) => return misfits.add(format!("element {i}: {why}")),
            }
        };
        if !list.atomic && duplicates == Duplicates::Forbid && !seen.insert(element.clone()) {
            misfits.add(format!("duplicate entries for key {element}"));
        }
        misfits.below(&element, |m| walk(list.element, child, duplicates, m));
    }
}

fn walk_map(
    map: &Map<'_>,
    fields: &serde_json::Map<String, Value>,
    duplicates: Duplicates,
    misfits: &mut Misfitting,
) {
    for (key, child) in fields {
        let Some(ty) = map.value(key) else {
            return misfits.below(Element::field(key), |m| m.add("field not declared in schema"));
        };
        misfits.below(format_args!(".{key}"), |m| walk(ty, child, duplicates, m));
    }
}

pub(super) fn check_scalar(scalar: Scalar, value: &Value, prefix: &str, misfits: &mut Misfitting) {
    let expected = match (scalar, value) {
        (_, Value::Null)
        | (Scalar::Numeric, Value::Number(_))
        | (Scalar::String, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Untyped, Value::Number(_) | Value::String(_) | Value::Bool(_)) => return,
        (Scalar::Numeric, _) => format!("numeric (int or float), got {}", go_type(value)),
        (Scalar::String, _) => {
            format!("string, got &value.valueUnstructured{{Value:{}}}", wording::literal(value))
        }
        (Scalar::Boolean, _) => format!("boolean, got &{{{}}}", wording::plain(value)),
        (Scalar::Untyped, _) => format!("any scalar, got &{{{}}}", wording::plain(value)),
    };
    misfits.add(format!("{prefix}expected {expected}"));
}
