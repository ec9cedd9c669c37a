//! Strategic merge patches: lists with elements that only the server has, all directives, duplicates.

use crate::Case;
use crate::dice::Dice;
use serde_json::{Map, Value, json};
use std::sync::{Arc, LazyLock};
use transom_schema::Schema;
use transom_schema::model::PatchStrategy;
use transom_schema::patch::{PatchError, strategic_merge_patch};

const DEPTH: usize = 3;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| merged(DEPTH + 2));

/// The schema of the Go type of this name in `conformance/golang/patch.go`, unfolded.
fn merged(depth: usize) -> Schema {
    let strategy = |merge: bool, retain_keys: bool, replace: bool, key: &str| {
        let merge_key = (!key.is_empty()).then(|| key.to_owned());
        Some(PatchStrategy { merge, retain_keys, replace, merge_key })
    };
    let mut schema = Schema::default();
    let mut add = |name: &str, field: Schema| schema.properties.insert(name.to_owned(), Arc::new(field));
    for name in ["name", "value", "port", "atomic", "labels"] {
        add(name, Schema::default());
    }
    add("scalars", Schema { patch: strategy(true, false, false, ""), ..Schema::default() });
    if depth > 0 {
        let inner = Arc::new(merged(depth - 1));
        let list = |patch| Schema { items: Some(inner.clone()), patch, ..Schema::default() };
        add("items", list(strategy(true, false, false, "name")));
        add("ports", list(strategy(true, false, false, "port")));
        add("both", list(strategy(true, true, false, "name")));
        add("inner", inner.as_ref().clone());
        add("replaced", Schema { patch: strategy(false, false, true, ""), ..inner.as_ref().clone() });
        add("retained", Schema { patch: strategy(false, true, false, ""), ..inner.as_ref().clone() });
    }
    schema
}

pub(crate) fn case(dice: &mut Dice) -> Case {
    let original = Value::Object(object(dice, DEPTH));
    let patch = Value::Object(change(dice, DEPTH, Some(&original)));
    let answer = match strategic_merge_patch(&original, &patch, &SCHEMA) {
        Ok(patched) => patched.to_string(),
        Err(PatchError::Malformed(_)) => "error: malformed".to_owned(),
        Err(_) => "error: inapplicable".to_owned(),
    };
    // Go goes through the fields of a patch in any order, which shows where two of them are about the same list, and
    // where two are wrong.
    let several = answer.starts_with("error") || patch.to_string().contains("$deleteFromPrimitiveList");
    let times = if several { 64 } else { 1 };
    (json!({"original": original, "patch": patch, "times": times}), answer)
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn object(dice: &mut Dice, depth: usize) -> Map<String, Value> {
    let mut object = Map::new();
    for _ in 0..=dice.below(4) {
        let (name, value) = field(dice, depth);
        object.insert(name.to_owned(), value);
    }
    object
}

fn field(dice: &mut Dice, depth: usize) -> (&'static str, Value) {
    let fields = [
        "scalars", "items", "items", "items", "ports", "both", "inner", "replaced", "retained", "value",
        "atomic", "labels",
    ];
    let name = dice.one(&fields);
    let value = match name {
        "scalars" => (0..dice.below(6)).map(|_| scalar(dice)).collect(),
        "atomic" => (0..dice.below(4)).map(|_| json!(dice.below(5))).collect(),
        "labels" => {
            (0..dice.below(3)).map(|_| (dice.one(&NAMES).to_owned(), json!(dice.one(&NAMES)))).collect()
        }
        "value" => scalar(dice),
        _ if depth == 0 => return ("value", scalar(dice)),
        "items" | "both" => elements(dice, depth, "name"),
        "ports" => elements(dice, depth, "port"),
        _ => Value::Object(object(dice, depth - 1)),
    };
    (name, value)
}

fn scalar(dice: &mut Dice) -> Value {
    if dice.percent(3) {
        return dice.one(&[json!(1.5), json!(true), json!(-0.0), json!(0.0), json!(1)]);
    }
    json!(dice.one(&NAMES))
}

fn elements(dice: &mut Dice, depth: usize, key: &str) -> Value {
    let many = dice.percent(4);
    let count = if many { 15 + dice.below(30) } else { dice.below(6) };
    let element = |dice: &mut Dice| {
        let mut element = if dice.percent(30) { object(dice, depth - 1) } else { Map::new() };
        let id = if many { format!("n{}", dice.below(60)) } else { dice.one(&NAMES).to_owned() };
        if key == "port" {
            element.insert(key.to_owned(), json!(id.len() * 10 + usize::from(id.as_bytes()[0]) % 10));
        } else if !dice.percent(1) {
            element.insert(key.to_owned(), json!(id));
        }
        Value::Object(element)
    };
    let mut seen = Vec::new();
    let mut list = Vec::new();
    for _ in 0..count {
        let element = element(dice);
        // Duplicates are rare, in what people write.
        if !seen.contains(&element[key]) || dice.percent(8) {
            seen.push(element[key].clone());
            list.push(element);
        }
    }
    list.into()
}

/// A patch for an object: mostly about fields that it has.
fn change(dice: &mut Dice, depth: usize, live: Option<&Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    let empty = Map::new();
    let live = live.and_then(Value::as_object).unwrap_or(&empty);
    for (name, value) in live {
        if dice.percent(70)
            && NAMES.iter().all(|key| key != name)
            && !matches!(name.as_str(), "name" | "port")
        {
            change_field(dice, depth, name, Some(value), &mut patch);
        }
    }
    if patch.is_empty() || dice.percent(30) {
        let (name, value) = field(dice, depth);
        if !patch.contains_key(name) {
            change_field(dice, depth, name, live.get(name).or(Some(&value)), &mut patch);
        }
    }
    if dice.percent(3) {
        patch.insert("$patch".to_owned(), json!(dice.one(&["replace", "delete", "merge", "x"])));
    }
    if dice.percent(5) {
        let mut keys: Vec<Value> =
            patch.keys().filter(|key| !key.starts_with('$')).map(|key| json!(key)).collect();
        if dice.percent(10) {
            keys.pop();
        }
        keys.push(json!(dice.one(&["name", "port", "value", "scalars"])));
        patch.insert("$retainKeys".to_owned(), if dice.percent(5) { json!("name") } else { keys.into() });
    }
    patch
}

fn change_field(
    dice: &mut Dice,
    depth: usize,
    name: &str,
    live: Option<&Value>,
    patch: &mut Map<String, Value>,
) {
    if dice.percent(4) {
        patch.insert(name.to_owned(), Value::Null);
        return;
    }
    match name {
        "scalars" => change_scalars(dice, live, patch),
        "items" | "both" if depth > 0 => change_elements(dice, depth, name, "name", live, patch),
        "ports" if depth > 0 => change_elements(dice, depth, name, "port", live, patch),
        "inner" | "replaced" | "retained" if depth > 0 => {
            patch.insert(name.to_owned(), Value::Object(change(dice, depth - 1, live)));
        }
        _ => {
            let (name, value) = field(dice, 0);
            patch.insert(name.to_owned(), value);
        }
    }
}

fn change_scalars(dice: &mut Dice, live: Option<&Value>, patch: &mut Map<String, Value>) {
    let mut list: Vec<Value> = (0..dice.below(4)).map(|_| scalar(dice)).collect();
    if dice.percent(40) {
        let both = list.iter().chain(live.and_then(Value::as_array).into_iter().flatten());
        let mut order: Vec<Value> = both.filter(|_| dice.percent(75)).cloned().collect();
        shuffle(dice, &mut order);
        if dice.percent(85) {
            list.retain(|item| order.contains(item));
            list.sort_by_key(|item| order.iter().position(|other| other == item));
            list.dedup();
        }
        if dice.percent(5) {
            order.clear();
        }
        patch.insert("$setElementOrder/scalars".to_owned(), order.into());
    }
    // What deleting and merging do to repeated elements depends on the room that Go's allocator left.
    let there = live.and_then(Value::as_array).cloned().unwrap_or_default();
    let repeated = there.iter().enumerate().any(|(i, item)| there[..i].contains(item));
    if !repeated && dice.percent(25) {
        let unwanted: Vec<Value> = (0..dice.below(3)).map(|_| scalar(dice)).collect();
        let unwanted = if dice.percent(5) { json!("a") } else { unwanted.into() };
        patch.insert("$deleteFromPrimitiveList/scalars".to_owned(), unwanted);
    }
    if dice.percent(80) {
        patch.insert("scalars".to_owned(), list.into());
    }
}

fn change_elements(
    dice: &mut Dice,
    depth: usize,
    name: &str,
    key: &str,
    live: Option<&Value>,
    patch: &mut Map<String, Value>,
) {
    let there: Vec<Value> = live.and_then(Value::as_array).cloned().unwrap_or_default();
    let mut list = Vec::new();
    for element in &there {
        match dice.below(5) {
            0 => list.push(json!({key: element[key], "$patch": "delete"})),
            1 | 2 => {
                let mut patched =
                    if dice.percent(30) { change(dice, depth - 1, Some(element)) } else { Map::new() };
                patched.insert(key.to_owned(), element[key].clone());
                list.push(Value::Object(patched));
            }
            _ => {}
        }
    }
    list.extend(elements(dice, depth, key).as_array().cloned().unwrap_or_default().into_iter().take(3));
    shuffle(dice, &mut list);
    if dice.percent(5) {
        let at = dice.below(list.len() + 1);
        list.insert(at, json!({"$patch": dice.one(&["replace", "replace", "replace", "merge", "x"])}));
    }
    if dice.percent(60) {
        let named = list
            .iter()
            .filter(|item| item.get("$patch").is_none())
            .chain(there.iter().filter(|_| dice.percent(50)));
        let mut order: Vec<Value> = named.map(|item| json!({key: item[key]})).collect();
        if dice.percent(95) {
            let mut seen = Vec::new();
            order.retain(|item| {
                !seen.contains(item) && {
                    seen.push(item.clone());
                    true
                }
            });
        }
        shuffle(dice, &mut order);
        if dice.percent(92) {
            // The order of the patch must be that of the directive.
            list.sort_by_key(|item| {
                order.iter().position(|other| other[key] == item[key] && item.get("$patch").is_none())
            });
        }
        if dice.percent(5) {
            order.clear();
        }
        patch.insert(format!("$setElementOrder/{name}"), order.into());
    }
    if dice.percent(90) {
        patch.insert(name.to_owned(), list.into());
    }
}

fn shuffle(dice: &mut Dice, list: &mut [Value]) {
    for i in (1..list.len()).rev() {
        list.swap(i, dice.below(i + 1));
    }
}
