//! Collects the fields that a value sets, as far down as its type is granular: what an apply owns.

use super::{Misfits, Misfitting, NO_TYPE, item};
use crate::own::element::Element;
use crate::own::set::Set;
use crate::own::types::{Atom, List, Map, Type};
use serde_json::Value;
use std::collections::BTreeMap;

/// Every leaf and every item of a value. Scalars and atomic lists and maps are leaves; an item of an
/// associative list counts itself too, as does a key that is not a declared field, and whatever is null or
/// an empty map.
pub fn to_field_set(ty: Type<'_>, value: &Value) -> Result<Set, Misfits> {
    let mut misfits = Misfitting::default();
    let (set, _) = walk(ty, value, &mut misfits);
    misfits.finish(set)
}

/// The fields below a value, and whether the value is a leaf itself.
fn walk(ty: Type<'_>, value: &Value, misfits: &mut Misfitting) -> (Set, bool) {
    if ty.hidden() {
        return (Set::new(), false);
    }
    match ty.atom(Some(value)) {
        Some(Atom::Scalar(_)) => (Set::new(), true),
        Some(Atom::List(list)) if list.atomic => (Set::new(), true),
        Some(Atom::Map(map)) if map.atomic => (Set::new(), true),
        Some(Atom::List(list)) => match value {
            Value::Array(items) => (walk_list(&list, items, misfits), false),
            _ => (Set::new(), false),
        },
        Some(Atom::Map(map)) => match value {
            Value::Object(fields) => (walk_map(&map, fields, misfits), false),
            _ => (Set::new(), false),
        },
        None => {
            misfits.add(NO_TYPE);
            (Set::new(), false)
        }
    }
}

/// Items that share their identity are owned as one, without their content.
fn walk_list(list: &List<'_>, items: &[Value], misfits: &mut Misfitting) -> Set {
    let mut unique: BTreeMap<Element, Option<&Value>> = BTreeMap::new();
    for child in items {
        if let Ok(element) = item::identify(list, child) {
            unique.entry(element).and_modify(|v| *v = None).or_insert(Some(child));
        }
    }
    let mut set = Set::new();
    for (element, child) in unique {
        if let Some(child) = child {
            set.graft(&element, walk(list.element, child, misfits).0);
        }
        set.insert_member(element);
    }
    set
}

fn walk_map(map: &Map<'_>, fields: &serde_json::Map<String, Value>, misfits: &mut Misfitting) -> Set {
    let mut set = Set::new();
    for (key, child) in fields {
        let declared = map.field(key);
        let Some(ty) = declared.or(map.element) else {
            misfits.add(NO_TYPE);
            continue;
        };
        if ty.hidden() {
            continue;
        }
        let element = Element::field(key);
        let (below, leaf) = walk(ty, child, misfits);
        set.graft(&element, below);
        let empty = child.is_null() || child.as_object().is_some_and(serde_json::Map::is_empty);
        if leaf || empty || declared.is_none() {
            set.insert_member(element);
        }
    }
    set
}
