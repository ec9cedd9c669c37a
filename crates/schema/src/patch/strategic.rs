//! Strategic merge patch: a merge patch in which the schema decides how lists merge, with directives in the
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

mod lists;
mod stable;

use super::PatchError;
use crate::model::{PatchStrategy, Schema};
use lists::{Elements, check_order, identity, interleave, merge_lists};
use serde_json::{Map, Value};
use std::collections::HashSet;

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
            delete_scalars(&mut original, field, change, schema)?;
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
            Some(Value::Array(merge_lists(before, change, &field)?.items))
        }
        (Some(Value::Array(_)), change @ Value::Array(_)) => Some(change),
        (_, change) => without_directives(without_nulls(change)),
    };
    if let Some(value) = merged {
        original.insert(key, value);
    }
    Ok(())
}

/// The schema's settings for one field.
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
    let named = directive.as_array().ok_or_else(malformed)?;
    if named.iter().any(|name| name.is_object() || name.is_array()) {
        return Err(inapplicable(format!("{} names no fields", go_text(&directive))));
    }
    let retained: HashSet<&str> = named.iter().filter_map(Value::as_str).collect();
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

/// As upstream: what is not a list of scalars is merged as if the directive were not there, unless the two are of
/// different types.
fn delete_scalars(
    original: &mut Object,
    field: &str,
    change: Value,
    schema: Option<&Schema>,
) -> Result<(), PatchError> {
    let Some(live) = original.get_mut(field) else { return Ok(()) };
    if change.is_null() {
        original.remove(field);
        return Ok(());
    }
    match (live, change) {
        (Value::Array(live), Value::Array(unwanted)) => {
            if live.is_empty() && unwanted.is_empty() {
                return Ok(());
            }
            if Elements::of(live.iter().chain(&unwanted))? == Elements::Objects {
                let merged = merge_lists(std::mem::take(live), unwanted, &Field::of(schema, field))?;
                *live = merged.items;
                return Ok(());
            }
            let unwanted: HashSet<String> =
                unwanted.iter().map(|item| identity(item, None)).collect::<Result<_, _>>()?;
            live.retain(|item| identity(item, None).is_ok_and(|id| !unwanted.contains(&id)));
            Ok(())
        }
        (live, change) if same_type(live, &change) => merge_field(original, field.to_owned(), change, schema),
        _ => Ok(()),
    }
}

/// Whether Go holds two values in the same type.
fn same_type(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, _) => false,
        (Value::Number(a), Value::Number(b)) => a.as_i64().is_some() == b.as_i64().is_some(),
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
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
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => return Err(not_a_list(&other.unwrap_or_default())),
        };
        let name = directed_field(&directive, ELEMENT_ORDER)?;
        let live = list_of(original.get(name))?;
        let change = list_of(patch.get(name))?;
        let field = Field::of(schema, name);
        if schema.is_some() && field.schema.is_none() {
            return Err(inapplicable(format!("unable to find api field for the json field {name:?}")));
        }
        check_order(change.as_deref().unwrap_or_default(), &order, field.merge_key())?;
        if let Some(list) = ordered(live, change, &order, &field)? {
            original.insert(name.to_owned(), Value::Array(list));
            patch.remove(name);
        }
    }
    Ok(())
}

/// The list that a live one and a patch make, in the order of a directive. `None` if there is neither.
fn ordered(
    live: Option<Vec<Value>>,
    change: Option<Vec<Value>>,
    order: &[Value],
    field: &Field<'_>,
) -> Result<Option<Vec<Value>>, PatchError> {
    let (merged, live, change) = match (live, change) {
        (None, None) => return Ok(None),
        (Some(live), None) => (live.clone(), live, Vec::new()),
        (None, Some(change)) => {
            (change.iter().cloned().filter_map(without_directives).collect(), Vec::new(), change)
        }
        (Some(live), Some(change)) if field.merges() => {
            let merged = merge_lists(live, change.clone(), field)?;
            (merged.items, merged.live, change)
        }
        (Some(live), Some(change)) => (change.clone(), live, change),
    };
    let list = interleave(merged, order, &live, field.merge_key())?;
    Elements::of(live.iter().chain(&change))?;
    Ok(Some(list))
}

fn list_of(value: Option<&Value>) -> Result<Option<Vec<Value>>, PatchError> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items.clone())),
        Some(other) => Err(not_a_list(other)),
    }
}

fn not_a_list(value: &Value) -> PatchError {
    inapplicable(format!("expected a list, but received {}", go_text(value)))
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
