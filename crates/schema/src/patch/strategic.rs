//! Strategic merge patch: a merge patch that knows from the schema how lists merge, with directives in the
//! patch for what plain data cannot say.
//!
//! | directive | in | does |
//! |---|---|---|
//! | `$patch: replace`, `$patch: delete` | an object, an element | replace or empty it instead of merging |
//! | `$deleteFromPrimitiveList/f` | beside `f` | remove these scalars from the list `f` |
//! | `$setElementOrder/f` | beside `f` | order the list `f` so, after merging |
//! | `$retainKeys` | an object | remove all other fields |
//!
//! Lists merge by the merge key of their schema; elements that only the live object has keep their place
//! among those of the patch as well as that is possible. Look-ups go through maps, so that a hostile patch
//! of long lists costs no more than sorting them.

use super::PatchError;
use crate::model::{PatchStrategy, Schema};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

type Object = Map<String, Value>;

/// Applies a strategic merge patch to an object. Fields the schema does not know merge as objects and are
/// replaced as lists.
pub fn strategic_merge_patch(original: &Value, patch: &Value, schema: &Schema) -> Result<Value, PatchError> {
    let (Value::Object(original), Value::Object(patch)) = (original, patch) else {
        return Err(PatchError::Malformed("invalid JSON document".to_owned()));
    };
    merge_object(original.clone(), patch.clone(), Some(schema)).map(Value::Object)
}

fn merge_object(
    mut original: Object,
    mut patch: Object,
    schema: Option<&Schema>,
) -> Result<Object, PatchError> {
    if let Some(directive) = patch.get(PATCH).cloned() {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                Ok(patch)
            }
            Some("delete") => Ok(Object::new()),
            _ => Err(unknown_directive(&directive, &Value::Object(patch))),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    set_element_orders(&mut original, &mut patch, schema)?;
    for (key, change) in patch {
        if key.starts_with(DELETE_FROM_LIST) {
            let field = directed_field(&key, DELETE_FROM_LIST)?;
            delete_scalars(&mut original, field, change)?;
        } else {
            merge_field(&mut original, key, change, schema)?;
        }
    }
    Ok(original)
}

fn merge_field(
    original: &mut Object,
    key: String,
    change: Value,
    schema: Option<&Schema>,
) -> Result<(), PatchError> {
    let field = Field::of(schema, &key);
    let merged = match (original.remove(&key), change) {
        (_, Value::Null) => None,
        (Some(Value::Object(_)), Value::Object(change)) if field.replaces() => Some(Value::Object(change)),
        (Some(Value::Object(before)), Value::Object(change)) => {
            Some(Value::Object(merge_object(before, change, field.schema)?))
        }
        (Some(Value::Array(before)), Value::Array(change)) if field.merges() => {
            Some(Value::Array(merge_lists(before, change, &field)?))
        }
        (Some(Value::Array(_)), change @ Value::Array(_)) => Some(change),
        (_, change) => without_directives(without_nulls(change)),
    };
    if let Some(value) = merged {
        original.insert(key, value);
    }
    Ok(())
}

/// What the schema says about one field.
struct Field<'s> {
    schema: Option<&'s Schema>,
    strategy: Option<&'s PatchStrategy>,
}

impl<'s> Field<'s> {
    fn of(parent: Option<&'s Schema>, name: &str) -> Self {
        let schema = parent.and_then(|parent| parent.property(name)).map(std::convert::AsRef::as_ref);
        Self { schema, strategy: schema.and_then(|schema| schema.patch.as_ref()) }
    }

    fn merges(&self) -> bool {
        self.strategy.is_some_and(|strategy| strategy.merge)
    }

    fn replaces(&self) -> bool {
        self.strategy.is_some_and(|strategy| strategy.replace)
    }

    fn merge_key(&self) -> Option<&'s str> {
        self.strategy?.merge_key.as_deref().filter(|key| !key.is_empty())
    }

    fn element(&self) -> Option<&'s Schema> {
        self.schema?.items.as_deref()
    }
}

/// Removes the fields that `$retainKeys` does not name. The patch may only speak of fields it retains.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(directive) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || PatchError::Malformed("invalid patch format of retainKeys".to_owned());
    let retained: HashSet<&str> =
        directive.as_array().ok_or_else(malformed)?.iter().filter_map(Value::as_str).collect();
    let directed = |key: &str| key.starts_with(DELETE_FROM_LIST) || key.starts_with(ELEMENT_ORDER);
    if patch.iter().any(|(key, v)| !v.is_null() && !directed(key) && !retained.contains(key.as_str())) {
        return Err(malformed());
    }
    original.retain(|key, _| retained.contains(key.as_str()));
    Ok(())
}

/// The field that a directive such as `$setElementOrder/containers` is about.
fn directed_field<'k>(key: &'k str, prefix: &str) -> Result<&'k str, PatchError> {
    let field = key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/'));
    field.ok_or_else(|| {
        let list = if prefix == DELETE_FROM_LIST { "primitive list" } else { "setElementOrder list" };
        PatchError::Malformed(format!("invalid patch format of {list}"))
    })
}

fn delete_scalars(original: &mut Object, field: &str, change: Value) -> Result<(), PatchError> {
    match (original.get_mut(field), change) {
        (_, Value::Null) => {
            original.remove(field);
        }
        (Some(Value::Array(items)), Value::Array(unwanted)) => {
            let unwanted: HashSet<String> = unwanted.iter().map(Value::to_string).collect();
            items.retain(|item| !unwanted.contains(&item.to_string()));
        }
        (Some(Value::Array(_)), _) => {
            return Err(PatchError::Malformed("invalid patch format of primitive list".to_owned()));
        }
        _ => {}
    }
    Ok(())
}

/// Merges and orders every list for which the patch has a `$setElementOrder`.
fn set_element_orders(
    original: &mut Object,
    patch: &mut Object,
    schema: Option<&Schema>,
) -> Result<(), PatchError> {
    let directives: Vec<String> =
        patch.keys().filter(|key| key.starts_with(ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let Some(Value::Array(order)) = patch.remove(&directive) else {
            return Err(PatchError::Malformed("invalid patch format of setElementOrder list".to_owned()));
        };
        let name = directed_field(&directive, ELEMENT_ORDER)?;
        let field = Field::of(schema, name);
        let live = list_of(original.get(name))?;
        let change = list_of(patch.get(name))?;
        check_order(change.as_deref().unwrap_or_default(), &order, field.merge_key())?;
        let merged = match (live.clone(), change.clone()) {
            (None, None) => continue,
            (Some(live), None) => live,
            (None, Some(change)) => change.into_iter().filter_map(without_directives).collect(),
            (Some(live), Some(change)) if field.merges() => merge_lists(live, change, &field)?,
            (Some(_), Some(change)) => change,
        };
        let live = live.unwrap_or_default();
        let elements = Elements::of(live.iter().chain(change.iter().flatten()))?;
        let ordered = interleave(merged, &order, &live, elements.key(field.merge_key()))?;
        original.insert(name.to_owned(), Value::Array(ordered));
        patch.remove(name);
    }
    Ok(())
}

fn list_of(value: Option<&Value>) -> Result<Option<Vec<Value>>, PatchError> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items.clone())),
        Some(other) => Err(inapplicable(format!("expected a list, but received {other}"))),
    }
}

/// The elements of a patch must stand in the order that the directive asks for, and all be named by it.
fn check_order(change: &[Value], order: &[Value], merge_key: Option<&str>) -> Result<(), PatchError> {
    if change.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut named = order.iter();
    for item in change.iter().filter(|item| item.get(PATCH).is_none()) {
        let wanted = identity(item, merge_key)?;
        let mut found = false;
        for candidate in named.by_ref() {
            if identity(candidate, merge_key)? == wanted {
                found = true;
                break;
            }
        }
        if !found {
            let change = Value::from(change);
            let order = Value::from(order);
            return Err(inapplicable(format!(
                "The order in patch list:\n{change}\n doesn't match {ELEMENT_ORDER} list:\n{order}\n"
            )));
        }
    }
    Ok(())
}

/// What the elements of lists that shall merge are. They must be alike, and no lists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Elements {
    Objects,
    Scalars(std::mem::Discriminant<Value>),
}

impl Elements {
    fn of<'v>(items: impl Iterator<Item = &'v Value>) -> Result<Self, PatchError> {
        let mut kind = None;
        for item in items {
            let this = match item {
                Value::Array(_) => return Err(inapplicable("lists of lists are not supported".to_owned())),
                Value::Object(_) => Self::Objects,
                scalar => Self::Scalars(std::mem::discriminant(scalar)),
            };
            if *kind.get_or_insert(this) != this {
                return Err(inapplicable(format!("list element types are not identical: {item} differs")));
            }
        }
        kind.ok_or_else(|| inapplicable("no elements in any of the given slices".to_owned()))
    }

    /// Scalars are their own identity.
    fn key(self, merge_key: Option<&str>) -> Option<&str> {
        merge_key.filter(|_| self == Self::Objects)
    }
}

/// What makes an element itself: the value of its merge key, or the scalar.
fn identity(item: &Value, merge_key: Option<&str>) -> Result<String, PatchError> {
    let Some(key) = merge_key else { return Ok(item.to_string()) };
    let value = item.get(key);
    let value = value.ok_or_else(|| {
        inapplicable(format!("map: {} does not contain declared merge key: {key}", go_text(item)))
    });
    value.map(Value::to_string)
}

fn merge_lists(live: Vec<Value>, change: Vec<Value>, field: &Field<'_>) -> Result<Vec<Value>, PatchError> {
    if live.is_empty() && change.is_empty() {
        return Ok(live);
    }
    match Elements::of(live.iter().chain(&change))? {
        Elements::Scalars(_) => {
            let mut seen = HashSet::new();
            let both =
                live.iter().chain(&change).filter(|item| seen.insert(item.to_string())).cloned().collect();
            interleave(both, &change, &live, None)
        }
        Elements::Objects => {
            let Some(key) = field.merge_key() else {
                return Err(inapplicable("cannot merge lists without merge key".to_owned()));
            };
            let (live, change) = element_directives(live, change, key)?;
            let merged = merge_elements(live.clone(), &change, key, field.element())?;
            interleave(merged, &change, &live, Some(key))
        }
    }
}

/// Carries out `$patch` in elements; what is left of the live list and of the patch.
fn element_directives(
    live: Vec<Value>,
    change: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut replace = false;
    let mut deleted = HashSet::new();
    let mut plain = Vec::with_capacity(change.len());
    for item in change {
        let directive = item.get(PATCH).map(|directive| directive.as_str().unwrap_or_default());
        match directive {
            None => plain.push(item),
            Some("delete") => {
                deleted.insert(identity(&item, Some(key))?);
            }
            Some("replace") => replace = true,
            Some("merge") => {
                return Err(inapplicable("merging lists cannot yet be specified in the patch".to_owned()));
            }
            Some(_) => return Err(unknown_directive(&item[PATCH], &item)),
        }
    }
    if replace {
        return Ok((plain, Vec::new()));
    }
    let kept =
        live.into_iter().filter(|item| item.get(key).is_none_or(|v| !deleted.contains(&v.to_string())));
    Ok((kept.collect(), plain))
}

fn merge_elements(
    mut merged: Vec<Value>,
    change: &[Value],
    key: &str,
    schema: Option<&Schema>,
) -> Result<Vec<Value>, PatchError> {
    let mut places: HashMap<String, usize> = HashMap::new();
    for (i, item) in merged.iter().enumerate() {
        if let Some(value) = item.get(key) {
            places.entry(value.to_string()).or_insert(i);
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
fn interleave(
    merged: Vec<Value>,
    order: &[Value],
    live: &[Value],
    merge_key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    let wanted = ranks(order, merge_key)?;
    let before = ranks(live, merge_key)?;
    let mut named: BTreeMap<(usize, usize), (Option<usize>, Value)> = BTreeMap::new();
    let mut others: BTreeMap<(usize, usize), (Option<usize>, Value)> = BTreeMap::new();
    for (i, item) in merged.into_iter().enumerate() {
        let id = identity(&item, merge_key)?;
        let rank = before.get(&id).copied();
        match wanted.get(&id) {
            Some(&place) => named.insert((place, i), (rank, item)),
            None => others.insert((rank.unwrap_or(usize::MAX), i), (rank, item)),
        };
    }
    let mut result = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_values().peekable();
    for (rank, item) in named.into_values() {
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

/// A value that the patch brings in, without directives. `None` if it is a directive itself.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => Some(Value::Object(
            map.into_iter().filter_map(|(k, v)| Some((k, without_directives(v)?))).collect(),
        )),
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        scalar => Some(scalar),
    }
}

/// A value without the fields that are null.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, without_nulls(v))).collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        scalar => scalar,
    }
}

fn unknown_directive(directive: &Value, map: &Value) -> PatchError {
    inapplicable(format!("unknown patch type: {} in map: {}", go_text(directive), go_text(map)))
}

/// A value as Go's `%v` prints it.
pub fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(s) => s.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_text).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let entries: Vec<String> = map.iter().map(|(k, v)| format!("{k}:{}", go_text(v))).collect();
            format!("map[{}]", entries.join(" "))
        }
        other => other.to_string(),
    }
}

fn inapplicable(message: String) -> PatchError {
    PatchError::Inapplicable(message)
}
