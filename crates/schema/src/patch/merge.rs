//! RFC 7386, and the three-way computation of such patches.

use super::PatchError;
use serde_json::{Map, Value};

/// Applies a merge patch. As in the library behind the real API server, nulls inside objects that the patch
/// brings in are dropped even where those objects are elements of a list.
pub fn merge_patch(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    match (document, patch) {
        (Value::Object(map), Value::Object(changes)) => Ok(Value::Object(merge(map.clone(), changes))),
        (_, Value::Object(_) | Value::Array(_)) => Ok(without_nulls(patch)),
        _ => Err(PatchError::Malformed("Invalid JSON Patch".to_owned())),
    }
}

fn merge(mut map: Map<String, Value>, changes: &Map<String, Value>) -> Map<String, Value> {
    for (key, change) in changes {
        if change.is_null() {
            map.remove(key);
            continue;
        }
        let merged = match (map.remove(key), change) {
            (Some(Value::Object(current)), Value::Object(nested)) => Value::Object(merge(current, nested)),
            // What takes an object's place is taken as it is.
            (Some(Value::Object(_)), other) => other.clone(),
            _ => without_nulls(change),
        };
        map.insert(key.clone(), merged);
    }
    map
}

/// A value without the fields that are null, at any depth. Null elements of lists stay.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), without_nulls(v))).collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

/// The merge patch that makes `current` equal to `modified`, deleting what `original` has and
/// `modified` no longer does. What neither mentions is left alone. All three are objects.
pub fn three_way(original: &Value, modified: &Value, current: &Value) -> Value {
    let empty = Map::new();
    let map = |value: &'_ Value| value.as_object().cloned().unwrap_or_default();
    let (original, modified, current) = (map(original), map(modified), map(current));
    let additions = keep(difference(&current, &modified), Keep::Values);
    let deletions = keep(difference(&original, &modified), Keep::Nulls);
    if additions.is_none() && deletions.is_none() {
        return Value::Object(empty);
    }
    Value::Object(overlay(deletions.unwrap_or_default(), additions.unwrap_or_default()))
}

/// The merge patch from one object to another.
fn difference(from: &Map<String, Value>, to: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for (key, value) in to {
        match (from.get(key), value) {
            (Some(Value::Object(before)), Value::Object(after)) => {
                let nested = difference(before, after);
                if !nested.is_empty() {
                    patch.insert(key.clone(), Value::Object(nested));
                }
            }
            (Some(before), after) if before == after => {}
            _ => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    patch
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Nulls,
    Values,
}

/// The part of a patch that deletes, or the part that does not. `None` if nothing is left; objects that were
/// empty to begin with are values.
fn keep(patch: Map<String, Value>, what: Keep) -> Option<Map<String, Value>> {
    let kept: Map<String, Value> = patch
        .into_iter()
        .filter_map(|(key, value)| {
            let value = match value {
                Value::Null => (what == Keep::Nulls).then_some(Value::Null),
                Value::Object(nested) if !nested.is_empty() => keep(nested, what).map(Value::Object),
                value => (what == Keep::Values).then_some(value),
            };
            Some((key, value?))
        })
        .collect();
    (!kept.is_empty()).then_some(kept)
}

/// One patch on top of another: nulls stay, later values win.
fn overlay(mut below: Map<String, Value>, above: Map<String, Value>) -> Map<String, Value> {
    for (key, value) in above {
        let merged = match (below.remove(&key), value) {
            (Some(Value::Object(b)), Value::Object(a)) => Value::Object(overlay(b, a)),
            (_, value) => value,
        };
        below.insert(key, merged);
    }
    below
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Both halves of a patch, an empty object where nothing is left.
    fn halves(patch: &Value) -> (Value, Value) {
        let map = patch.as_object().cloned().unwrap_or_default();
        let half = |what| Value::Object(keep(map.clone(), what).unwrap_or_default());
        (half(Keep::Nulls), half(Keep::Values))
    }

    #[test]
    fn nulls_stay_only_in_what_takes_an_objects_place() {
        let document = json!({"object": {"a": 1}, "list": [1], "text": "x"});
        let list = json!([{"gone": null}, null]);
        let patch = json!({"object": list, "list": list, "text": list, "new": list});
        let pruned = json!([{}, null]);
        let want = json!({"object": list, "list": pruned, "text": pruned, "new": pruned});
        assert_eq!(merge_patch(&document, &patch), Ok(want));
    }

    #[test]
    fn a_patch_divides_into_deletions_and_values() {
        let patch = json!({"gone": null, "kept": 1, "list": [], "empty": {}, "deep": {"gone": null}, "both": {"a": null, "b": 1}});
        let (deletions, values) = halves(&patch);
        assert_eq!(deletions, json!({"gone": null, "deep": {"gone": null}, "both": {"a": null}}));
        assert_eq!(values, json!({"kept": 1, "list": [], "empty": {}, "both": {"b": 1}}));
    }

    #[test]
    fn upstream_table() {
        let table = "kubernetes/patch/json-merge/patch/TestKeepOrDeleteNullInObj.TestCases.json";
        for case in transom_testkit::tables::cases(table) {
            let (deletions, values) = halves(&case["inputs"]["OriginalObj"]);
            let or_empty = |v: &Value| if v.is_null() { json!({}) } else { v.clone() };
            assert_eq!(deletions, or_empty(&case["expected"]["ExpectedWithNull"]), "{}", case["name"]);
            assert_eq!(values, or_empty(&case["expected"]["ExpectedWithoutNull"]), "{}", case["name"]);
        }
    }
}
