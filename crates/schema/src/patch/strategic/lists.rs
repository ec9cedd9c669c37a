//! Lists in a strategic merge patch: how they merge, and in which order the elements end up.

use super::{ELEMENT_ORDER, Field, Object, PATCH, go_text, inapplicable, merge_object, unknown_directive};
use crate::model::Schema;
use crate::patch::PatchError;
use crate::patch::strategic::stable;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};

pub(super) struct Merged {
    pub items: Vec<Value>,
    /// The live list as merging leaves it: upstream works in its memory, where elements that a directive deletes give
    /// way to those behind them and to new ones, and orders by what it finds there.
    pub live: Vec<Value>,
}

/// What the elements of lists that shall merge are. They must be alike, and neither lists nor null.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Elements {
    Objects,
    Bools,
    Integers,
    Floats,
    Strings,
}

impl Elements {
    pub(super) fn of<'v>(items: impl Iterator<Item = &'v Value>) -> Result<Self, PatchError> {
        let mut kind = None;
        for item in items {
            let this = match item {
                Value::Array(_) => return Err(inapplicable("lists of lists are not supported".to_owned())),
                Value::Null => return Err(inapplicable("an element of a list is null".to_owned())),
                Value::Object(_) => Self::Objects,
                Value::Bool(_) => Self::Bools,
                Value::Number(n) if n.as_i64().is_some() => Self::Integers,
                Value::Number(_) => Self::Floats,
                Value::String(_) => Self::Strings,
            };
            if *kind.get_or_insert(this) != this {
                return Err(inapplicable(format!("list element types are not identical: {item} differs")));
            }
        }
        kind.ok_or_else(|| inapplicable("no elements in any of the given slices".to_owned()))
    }
}

/// What makes an element itself: the value of its merge key, or the scalar.
pub(super) fn identity(item: &Value, merge_key: Option<&str>) -> Result<String, PatchError> {
    let value = match merge_key {
        None => item,
        Some(key) => item.get(key).ok_or_else(|| {
            inapplicable(format!("map: {} does not contain declared merge key: {key}", go_text(item)))
        })?,
    };
    match value {
        Value::Object(_) | Value::Array(_) => {
            Err(inapplicable(format!("{} cannot be compared", go_text(value))))
        }
        // Zero is equal to negative zero, but 1 is not equal to 1.0.
        Value::Number(n) if n.as_i64().is_none() => {
            Ok(format!("float {}", n.as_f64().unwrap_or(f64::NAN) + 0.0))
        }
        scalar => Ok(scalar.to_string()),
    }
}

/// The elements of a patch must be in the order of the directive, which must name all of them.
pub(super) fn check_order(
    change: &[Value],
    order: &[Value],
    merge_key: Option<&str>,
) -> Result<(), PatchError> {
    if change.is_empty() || order.is_empty() {
        return Ok(());
    }
    let deletes = |item: &&Value| item.get(PATCH).is_some_and(|directive| directive == "delete");
    let wanted: Vec<&Value> = change.iter().filter(|item| merge_key.is_none() || !deletes(item)).collect();
    let (mut next, mut place) = (0, 0);
    while next < wanted.len() && place < order.len() {
        if wanted[next].get(PATCH).is_some() {
            next += 1;
            continue;
        }
        if identity(wanted[next], merge_key)? == identity(&order[place], merge_key)? {
            next += 1;
        }
        place += 1;
    }
    if next < wanted.len() {
        let (change, order) = (Value::from(change), Value::from(order));
        return Err(inapplicable(format!(
            "The order in patch list:\n{change}\n doesn't match {ELEMENT_ORDER} list:\n{order}\n"
        )));
    }
    Ok(())
}

pub(super) fn merge_lists(
    live: Vec<Value>,
    change: Vec<Value>,
    field: &Field<'_>,
) -> Result<Merged, PatchError> {
    if live.is_empty() && change.is_empty() {
        return Ok(Merged { items: Vec::new(), live });
    }
    if Elements::of(live.iter().chain(&change))? == Elements::Objects {
        let Some(key) = field.merge_key() else {
            return Err(inapplicable("cannot merge lists without merge key".to_owned()));
        };
        return merge_objects(live, change, key, field.element());
    }
    // Nothing is appended, so upstream removes duplicates in the memory of the live list, which changes its order.
    let live = if change.is_empty() { without_repeated(live)? } else { live };
    let mut seen = HashSet::new();
    let mut both = Vec::with_capacity(live.len() + change.len());
    for item in live.iter().chain(&change) {
        if seen.insert(identity(item, None)?) {
            both.push(item.clone());
        }
    }
    Ok(Merged { items: interleave(both, &change, &live, field.merge_key())?, live })
}

/// Removes repeated scalars as upstream does: the last element takes the place of each, and the order is what results.
fn without_repeated(mut list: Vec<Value>) -> Result<Vec<Value>, PatchError> {
    let mut ids = list.iter().map(|item| identity(item, None)).collect::<Result<Vec<_>, _>>()?;
    let mut places: HashMap<String, BTreeSet<usize>> = HashMap::new();
    for (i, id) in ids.iter().enumerate() {
        places.entry(id.clone()).or_default().insert(i);
    }
    let mut i = 0;
    while i < list.len() {
        let repeated = |places: &HashMap<String, BTreeSet<usize>>| {
            places.get(&ids[i]).and_then(|places| places.range(i + 1..).next().copied())
        };
        let Some(place) = repeated(&places) else {
            i += 1;
            continue;
        };
        let last = list.len() - 1;
        for (id, remove, insert) in [(&ids[place], place, None), (&ids[last], last, Some(place))] {
            if let Some(places) = places.get_mut(id) {
                places.remove(&remove);
                places.extend(insert.filter(|_| place != last));
            }
        }
        list.swap_remove(place);
        ids.swap_remove(place);
    }
    Ok(list)
}

fn merge_objects(
    live: Vec<Value>,
    change: Vec<Value>,
    key: &str,
    schema: Option<&Schema>,
) -> Result<Merged, PatchError> {
    let directed = directives(change, key)?;
    let (kept, mut live) = without(live, &directed.deleted, key);
    if directed.replace {
        let items = interleave(directed.plain.clone(), &[], &directed.plain, Some(key))?;
        return Ok(Merged { items, live });
    }
    let merged = merge_elements(kept.clone(), &directed.plain, key, schema)?;
    for (place, added) in live.iter_mut().skip(kept.len()).zip(merged.iter().skip(kept.len())) {
        *place = added.clone();
    }
    Ok(Merged { items: interleave(merged, &directed.plain, &kept, Some(key))?, live })
}

/// The directives `$patch` of elements, and the elements without it.
struct Directed {
    replace: bool,
    deleted: Vec<String>,
    plain: Vec<Value>,
}

fn directives(change: Vec<Value>, key: &str) -> Result<Directed, PatchError> {
    let mut directed = Directed { replace: false, deleted: Vec::new(), plain: Vec::new() };
    for item in change {
        let directive = item.get(PATCH).map(|directive| directive.as_str().unwrap_or_default());
        match directive {
            None => directed.plain.push(item),
            Some("delete") => directed.deleted.push(identity(&item, Some(key))?),
            Some("replace") => directed.replace = true,
            Some("merge") => {
                return Err(inapplicable("merging lists cannot yet be specified in the patch".to_owned()));
            }
            Some(_) => return Err(unknown_directive(&item[PATCH], &item)),
        }
    }
    Ok(directed)
}

/// The live list without some elements, and its memory afterwards: what remains moves to the front, and behind it stand
/// the elements that were last each time that one was deleted.
fn without(live: Vec<Value>, deleted: &[String], key: &str) -> (Vec<Value>, Vec<Value>) {
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (i, item) in live.iter().enumerate() {
        if let Ok(id) = identity(item, Some(key)) {
            places.entry(id).or_default().push(i);
        }
    }
    let mut remains = vec![true; live.len()];
    let mut end = live.len();
    let mut left_behind = Vec::new();
    for place in deleted.iter().filter_map(|id| places.remove(id)).flatten() {
        left_behind.push(live[end - 1].clone());
        remains[place] = false;
        while end > 0 && !remains[end - 1] {
            end -= 1;
        }
    }
    let mut flags = remains.into_iter();
    let kept: Vec<Value> = live.into_iter().filter(|_| flags.next().unwrap_or(true)).collect();
    let memory = kept.iter().cloned().chain(left_behind.into_iter().rev()).collect();
    (kept, memory)
}

/// The elements of a patch merged into those of the same identity; the others are appended.
fn merge_elements(
    mut merged: Vec<Value>,
    change: &[Value],
    key: &str,
    schema: Option<&Schema>,
) -> Result<Vec<Value>, PatchError> {
    let mut places: HashMap<String, usize> = HashMap::new();
    for (i, item) in merged.iter().enumerate() {
        if item.get(key).is_some() {
            places.entry(identity(item, Some(key))?).or_insert(i);
        }
    }
    for item in change {
        let id = identity(item, Some(key))?;
        match (places.get(&id), item) {
            (Some(&place), Value::Object(patch)) => {
                let before = match std::mem::take(&mut merged[place]) {
                    Value::Object(before) => before,
                    _ => Object::new(),
                };
                merged[place] = Value::Object(merge_object(before, patch.clone(), schema)?);
            }
            _ => {
                places.insert(id, merged.len());
                merged.push(item.clone());
            }
        }
    }
    Ok(merged)
}

/// Orders a merged list: elements that `order` names in that order, the others as in the live list, and each
/// of these before the first named element that it precedes there.
pub(super) fn interleave(
    merged: Vec<Value>,
    order: &[Value],
    live: &[Value],
    merge_key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    let wanted = ranks(order, merge_key)?;
    let before = ranks(live, merge_key)?;
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for item in merged {
        let id = identity(&item, merge_key)?;
        let rank = before.get(&id).copied();
        match wanted.get(&id) {
            Some(&place) => named.push((place, rank, item)),
            None => others.push((rank, item)),
        }
    }
    named.sort_by_key(|(place, _, _)| *place);
    if others.iter().all(|(rank, _)| rank.is_some()) {
        others.sort_by_key(|(rank, _)| *rank);
    } else {
        // Upstream says that an element which the live list does not have comes before every other, and the other
        // before it. Where that leads depends on the algorithm that sorts.
        stable::sort(&mut others, &|(a, _), (b, _)| a.zip(*b).is_none_or(|(a, b)| a < b));
    }
    let mut result = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, rank, item) in named {
        while let Some((Some(other), _)) = others.peek()
            && rank.is_some_and(|rank| *other < rank)
        {
            result.extend(others.next().map(|(_, item)| item));
        }
        result.push(item);
    }
    result.extend(others.map(|(_, item)| item));
    Ok(result)
}

/// The first position of every element.
fn ranks(list: &[Value], merge_key: Option<&str>) -> Result<HashMap<String, usize>, PatchError> {
    let mut ranks = HashMap::with_capacity(list.len());
    for (i, item) in list.iter().enumerate() {
        ranks.entry(identity(item, merge_key)?).or_insert(i);
    }
    Ok(ranks)
}
