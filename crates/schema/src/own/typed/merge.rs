//! Merging a configuration into an object: nothing is removed, and leaves of the configuration replace those of the object.

use super::validate::check_scalar;
use super::{Misfits, Misfitting, NO_TYPE, item};
use crate::own::element::Element;
use crate::own::types::{Atom, List, Map, Type};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Merges `config` over `live`. `None` when nothing is left, as when both are null.
pub fn merge(ty: Type<'_>, live: &Value, config: &Value) -> Result<Option<Value>, Misfits> {
    let mut misfits = Misfitting::default();
    let out = walk(ty, Some(live), Some(config), &mut misfits);
    misfits.finish(out)
}

fn walk(
    ty: Type<'_>,
    live: Option<&Value>,
    config: Option<&Value>,
    misfits: &mut Misfitting,
) -> Option<Value> {
    if ty.hidden() {
        return None;
    }
    // Walking what only the live object has would copy it as it is.
    if config.is_none() && !ty.hides() {
        return live.cloned();
    }
    let (Some(of_live), Some(of_config)) = (ty.atom(live), ty.atom(config)) else {
        misfits.add(NO_TYPE);
        return None;
    };
    if config.is_none() {
        return handle(&of_live, live, config, misfits);
    }
    if live.is_some() && !of_live.same_kind(&of_config) {
        handle(&of_live, live, config, misfits);
    }
    handle(&of_config, live, config, misfits)
}

fn handle(
    atom: &Atom<'_>,
    live: Option<&Value>,
    config: Option<&Value>,
    misfits: &mut Misfitting,
) -> Option<Value> {
    let leaf = || config.or(live).cloned();
    match atom {
        Atom::Scalar(scalar) => {
            let (mut of_live, mut of_config) = (Misfitting::default(), Misfitting::default());
            live.into_iter().for_each(|v| check_scalar(*scalar, v, "lhs: ", &mut of_live));
            config.into_iter().for_each(|v| check_scalar(*scalar, v, "rhs: ", &mut of_config));
            if !of_live.0.is_empty() && !of_config.0.is_empty() {
                misfits.0.extend(of_live.0.into_iter().chain(of_config.0));
                return None;
            }
            leaf()
        }
        Atom::List(list) => {
            let live_items = live.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let config_items = config.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            if list.atomic || (live_items.is_empty() && config_items.is_empty()) {
                return leaf();
            }
            let out = walk_list(list, live_items, config_items, misfits);
            (!out.is_empty()).then_some(Value::Array(out))
        }
        Atom::Map(map) => {
            let empty = serde_json::Map::new();
            let live_fields = live.and_then(Value::as_object).unwrap_or(&empty);
            let config_fields = config.and_then(Value::as_object).unwrap_or(&empty);
            if map.atomic || (live_fields.is_empty() && config_fields.is_empty()) {
                return leaf();
            }
            let out = walk_map(map, live_fields, config_fields, misfits);
            (!out.is_empty()).then_some(Value::Object(out))
        }
    }
}

fn walk_map(
    map: &Map<'_>,
    live: &serde_json::Map<String, Value>,
    config: &serde_json::Map<String, Value>,
    misfits: &mut Misfitting,
) -> serde_json::Map<String, Value> {
    let mut out = serde_json::Map::new();
    let added = config.keys().filter(|k| !live.contains_key(*k));
    for key in live.keys().chain(added) {
        let Some(ty) = map.value(key) else {
            misfits.below(Element::field(key), |m| m.add(NO_TYPE));
            continue;
        };
        let merged = misfits.below(format_args!(".{key}"), |m| walk(ty, live.get(key), config.get(key), m));
        if let Some(value) = merged {
            out.insert(key.clone(), value);
        }
    }
    out
}

/// The items of a list by identity; `None` where several share one.
struct Index<'v> {
    order: Vec<Element>,
    items: BTreeMap<Element, Option<&'v Value>>,
}

impl<'v> Index<'v> {
    fn of(list: &List<'_>, items: &'v [Value], allow_duplicates: bool, misfits: &mut Misfitting) -> Self {
        let mut index = Self { order: Vec::with_capacity(items.len()), items: BTreeMap::new() };
        for (i, child) in items.iter().enumerate() {
            let element = match item::identify(list, child) {
                Ok(element) => element,
                Err(why) => {
                    misfits.add(format!("element {i}: {why}"));
                    continue;
                }
            };
            match index.items.get_mut(&element) {
                Some(_) if !allow_duplicates => {
                    misfits.add(format!("duplicate entries for key {element}"));
                    continue;
                }
                Some(first) => *first = None,
                None => {
                    index.items.insert(element.clone(), Some(child));
                }
            }
            index.order.push(element);
        }
        index
    }

    /// The item, null if there are several, or nothing if there is none.
    fn get(&self, element: &Element) -> Option<&'v Value> {
        self.items.get(element).map(|item| item.unwrap_or(&Value::Null))
    }

    fn has(&self, element: &Element) -> bool {
        self.items.contains_key(element)
    }
}

/// Merges items by identity. Items of the configuration keep their order among themselves, as do those
/// only the live list has; both lists are walked towards the next item they share.
fn walk_list(list: &List<'_>, live: &[Value], config: &[Value], misfits: &mut Misfitting) -> Vec<Value> {
    let before = misfits.0.len();
    let right = Index::of(list, config, false, misfits);
    let left = Index::of(list, live, true, misfits);
    if misfits.0.len() > before {
        return Vec::new();
    }
    let mut shared: VecDeque<&Element> = right.order.iter().filter(|e| left.has(e)).collect();
    let mut next_shared = shared.pop_front();
    let mut merged: BTreeSet<&Element> = BTreeSet::new();
    let mut out = Vec::with_capacity(live.len().max(config.len()));
    // Misfits inside items were reported when the values were validated.
    let mut take = |l: Option<&Value>, r: Option<&Value>| {
        out.extend(walk(list.element, l, r, &mut Misfitting::default()));
    };
    let (mut l, mut r) = (0, 0);
    while l < left.order.len() || r < right.order.len() {
        if let (Some(at_left), Some(at_right)) = (left.order.get(l), right.order.get(r)) {
            if at_left == at_right {
                merged.insert(at_left);
                take(left.get(at_left), right.get(at_left));
                l += 1;
                r += 1;
                next_shared = shared.pop_front();
                continue;
            }
            if right.has(at_left) && next_shared.is_some_and(|next| next != at_left) {
                // Shared, but not the one whose turn it is: it comes where the configuration has it.
                l += 1;
                continue;
            }
        }
        if let Some(at_left) = left.order.get(l) {
            if !right.has(at_left) {
                // By position, because duplicates are all kept.
                take(live.get(l), None);
                l += 1;
                continue;
            } else if merged.contains(at_left) {
                l += 1;
            }
        }
        if let Some(at_right) = right.order.get(r) {
            merged.insert(at_right);
            take(left.get(at_right), right.get(at_right));
            r += 1;
            if next_shared == Some(at_right) {
                next_shared = shared.pop_front();
            }
        }
    }
    out
}
