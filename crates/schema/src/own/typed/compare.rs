//! What changed between two values of a type.

use super::validate::check_scalar;
use super::{Misfits, Misfitting, NO_TYPE, item};
use crate::own::element::{Element, equal};
use crate::own::set::Set;
use crate::own::types::{Atom, List, Map, Type};
use serde_json::Value;
use std::collections::BTreeMap;

/// The fields that differ. What appears or disappears as a whole counts itself and all its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Only in the old value.
    pub removed: Set,
    /// In both, with different values.
    pub modified: Set,
    /// Only in the new value.
    pub added: Set,
}

impl Comparison {
    /// Whether nothing differs.
    pub fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Leaves out fields and everything below them.
    #[must_use]
    pub fn without(self, fields: &Set) -> Self {
        if fields.is_empty() {
            return self;
        }
        Self {
            removed: self.removed.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            added: self.added.recursive_difference(fields),
        }
    }

    fn graft(&mut self, element: &Element, below: Self) {
        self.removed.graft(element, below.removed);
        self.modified.graft(element, below.modified);
        self.added.graft(element, below.added);
    }
}

/// What happened to the value at one path itself.
#[derive(Clone, Copy, Default)]
struct Fate {
    removed: bool,
    modified: bool,
    added: bool,
}

/// Compares an old and a new value of one type.
pub fn compare(ty: Type<'_>, old: &Value, new: &Value) -> Result<Comparison, Misfits> {
    let mut misfits = Misfitting::default();
    let (comparison, _) = walk(ty, Some(old), Some(new), &mut misfits);
    misfits.finish(comparison)
}

fn walk(
    ty: Type<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    misfits: &mut Misfitting,
) -> (Comparison, Fate) {
    let mut out = Comparison::default();
    let mut fate = Fate::default();
    if ty.hidden() {
        return (out, fate);
    }
    let (Some(of_old), Some(of_new)) = (ty.atom(old), ty.atom(new)) else {
        misfits.add(NO_TYPE);
        return (out, fate);
    };
    // An absent side takes whatever form the other has.
    if new.is_none() {
        handle(&of_old, old, new, &mut out, &mut fate, misfits);
    } else {
        if old.is_some() && !of_old.same_kind(&of_new) {
            handle(&of_old, old, new, &mut out, &mut fate, misfits);
        }
        handle(&of_new, old, new, &mut out, &mut fate, misfits);
    }
    fate.added |= old.is_none();
    fate.removed |= new.is_none() && old.is_some();
    (out, fate)
}

fn handle(
    atom: &Atom<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    out: &mut Comparison,
    fate: &mut Fate,
    misfits: &mut Misfitting,
) {
    match atom {
        Atom::Scalar(scalar) => {
            let (mut of_old, mut of_new) = (Misfitting::default(), Misfitting::default());
            old.into_iter().for_each(|v| check_scalar(*scalar, v, "lhs: ", &mut of_old));
            new.into_iter().for_each(|v| check_scalar(*scalar, v, "rhs: ", &mut of_new));
            if !of_old.0.is_empty() && !of_new.0.is_empty() {
                misfits.0.extend(of_old.0.into_iter().chain(of_new.0));
                return;
            }
            leaf(old, new, fate);
        }
        Atom::List(list) => {
            let old_items = old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let new_items = new.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            if list.atomic || (old_items.is_empty() && new_items.is_empty()) {
                leaf(old, new, fate);
            } else if old_items != new_items {
                walk_list(list, old_items, new_items, out, misfits);
            }
        }
        Atom::Map(map) => {
            let empty = serde_json::Map::new();
            let old_fields = old.and_then(Value::as_object).unwrap_or(&empty);
            let new_fields = new.and_then(Value::as_object).unwrap_or(&empty);
            if map.atomic || (old_fields.is_empty() && new_fields.is_empty()) {
                leaf(old, new, fate);
            } else {
                walk_map(map, old_fields, new_fields, out, misfits);
            }
        }
    }
}

fn leaf(old: Option<&Value>, new: Option<&Value>, fate: &mut Fate) {
    match (old, new) {
        (None, _) => fate.added = true,
        (_, None) => fate.removed = true,
        (Some(old), Some(new)) => fate.modified |= !equal(old, new),
    }
}

fn walk_map(
    map: &Map<'_>,
    old: &serde_json::Map<String, Value>,
    new: &serde_json::Map<String, Value>,
    out: &mut Comparison,
    misfits: &mut Misfitting,
) {
    let added = new.keys().filter(|k| !old.contains_key(*k));
    for key in old.keys().chain(added) {
        let Some(ty) = map.value(key) else {
            misfits.below(Element::field(key), |m| m.add(NO_TYPE));
            continue;
        };
        let (below, fate) =
            misfits.below(format_args!(".{key}"), |m| walk(ty, old.get(key), new.get(key), m));
        record(out, || Element::field(key), below, fate);
    }
}

/// Makes the element only when there is something to say about it.
fn record(out: &mut Comparison, element: impl FnOnce() -> Element, below: Comparison, fate: Fate) {
    if !(fate.removed || fate.modified || fate.added) && below.is_same() {
        return;
    }
    let element = element();
    if fate.removed {
        out.removed.insert_member(element.clone());
    }
    if fate.modified {
        out.modified.insert_member(element.clone());
    }
    if fate.added {
        out.added.insert_member(element.clone());
    }
    out.graft(&element, below);
}

fn walk_list(list: &List<'_>, old: &[Value], new: &[Value], out: &mut Comparison, misfits: &mut Misfitting) {
    let mut items: BTreeMap<Element, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for (i, child) in old.iter().enumerate() {
        match item::identify(list, child) {
            Ok(element) => items.entry(element).or_default().0.push(child),
            Err(why) => misfits.add(format!("element {i}: {why}")),
        }
    }
    for (i, child) in new.iter().enumerate() {
        match item::identify(list, child) {
            Ok(element) => items.entry(element).or_default().1.push(child),
            Err(why) => misfits.add(format!("element {i}: {why}")),
        }
    }
    for (element, (old, new)) in items {
        // Several items of one identity are compared as one value, and owned without their content.
        let (from, to, mut extra) = match (old.as_slice(), new.as_slice()) {
            ([] | [_], [] | [_]) => (old.first(), new.first(), Fate::default()),
            ([_, _, ..], [_, _, ..]) => {
                let same = old.len() == new.len() && old.iter().zip(&new).all(|(a, b)| equal(a, b));
                (None, None, Fate { modified: !same, ..Fate::default() })
            }
            ([_, _, ..], _) => (None, new.first(), Fate { removed: true, ..Fate::default() }),
            (_, _) => (old.first(), None, Fate { added: true, ..Fate::default() }),
        };
        let mut below = Comparison::default();
        if from.is_some() || to.is_some() {
            let (inner, fate) =
                misfits.below(&element, |m| walk(list.element, from.copied(), to.copied(), m));
            below = inner;
            extra.removed |= fate.removed;
            extra.modified |= fate.modified;
            extra.added |= fate.added;
        }
        record(out, || element, below, extra);
    }
}
