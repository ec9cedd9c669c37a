//! Paths of rules and selectable fields, followed through a schema.

use crate::Case;
use crate::dice::Dice;
use serde_json::{Map, Value, json};
use transom_object::field::Path;
use transom_schema::structural;
use transom_schema::structural::field_path::{Brackets, resolve};

const NAMES: [&str; 13] =
    ["a", "b", "spec", "a.b", "it's", "x]y", "k[0]", "back\\slash", "é", "a b", "0", "'a'", "line\nbreak"];

pub(crate) fn case(dice: &mut Dice) -> Case {
    let schema = object(dice, 3, &mut 0);
    let mut path = String::new();
    along(dice, &schema, &mut path);
    if dice.percent(40) {
        path = edited(dice, &path);
    }
    let brackets = dice.percent(75);
    let answer = answer(&schema, &path, brackets);
    (json!({"schema": schema, "text": path, "brackets": brackets}), answer)
}

fn titled(mut schema: Value, count: &mut u32) -> Value {
    schema["title"] = json!(format!("t{count}"));
    *count += 1;
    schema
}

fn object(dice: &mut Dice, depth: usize, count: &mut u32) -> Value {
    let mut schema = titled(json!({"type": "object"}), count);
    if dice.percent(60) {
        let mut properties = Map::new();
        for _ in 0..dice.below(4) {
            properties.insert(dice.one(&NAMES).to_owned(), any(dice, depth - 1, count));
        }
        schema["properties"] = properties.into();
    }
    if schema.get("properties").is_none() || dice.percent(20) {
        schema["additionalProperties"] = match dice.below(6) {
            0 => json!(true),
            1 => json!(false),
            _ => any(dice, depth - 1, count),
        };
    }
    schema
}

fn any(dice: &mut Dice, depth: usize, count: &mut u32) -> Value {
    match dice.below(if depth == 0 { 3 } else { 8 }) {
        0 => titled(json!({"type": "string"}), count),
        1 => titled(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}), count),
        2 => titled(json!({"x-kubernetes-int-or-string": true}), count),
        3 => {
            let items = any(dice, depth - 1, count);
            titled(json!({"type": "array", "items": items}), count)
        }
        _ => object(dice, depth, count),
    }
}

/// A path that mostly leads somewhere.
fn along(dice: &mut Dice, schema: &Value, path: &mut String) {
    if schema.is_null() || dice.percent(8) {
        return;
    }
    let properties = schema["properties"].as_object().filter(|properties| !properties.is_empty());
    let (name, below) = match properties {
        Some(properties) if dice.percent(95) => {
            let entry = properties.iter().nth(dice.below(properties.len()));
            entry.map(|(name, below)| (name.clone(), below.clone())).unwrap_or_default()
        }
        None if schema.get("additionalProperties").is_none() && dice.percent(80) => return,
        _ => (dice.one(&NAMES).to_owned(), schema["additionalProperties"].clone()),
    };
    if dice.percent(45) {
        path.push('.');
        path.push_str(&name);
    } else {
        path.push_str("['");
        path.push_str(&escaped(dice, &name));
        path.push_str("']");
    }
    let below = if below.is_object() || dice.percent(5) { below } else { Value::Null };
    along(dice, &below, path);
}

fn escaped(dice: &mut Dice, name: &str) -> String {
    let careful = dice.percent(85);
    let mut out = String::new();
    for c in name.chars() {
        match c {
            '\'' | '\\' if careful => out.extend(['\\', c]),
            '\n' if careful => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out
}

/// The path with a few characters more, fewer or others.
fn edited(dice: &mut Dice, path: &str) -> String {
    let mut chars: Vec<char> = path.chars().collect();
    for _ in 0..=dice.below(3) {
        let at = dice.below(chars.len() + 1);
        let other =
            dice.one(&['.', '[', ']', '\'', '\\', 'a', 'n', 't', 'x', '"', ' ', '\n', 'é', '0', '\u{7}']);
        match dice.below(4) {
            0 if at < chars.len() => drop(chars.remove(at)),
            1 if at < chars.len() => chars[at] = other,
            2 => chars.extend(
                dice.pick(&[
                    "['a']",
                    ".a",
                    "[",
                    ".",
                    "]",
                    "'",
                    "['\\x\\y']",
                    "['\\a\\b\\f\\v\\r']",
                    "['a'",
                    "[a]",
                    "['a\\'",
                ])
                .chars(),
            ),
            _ => chars.insert(at, other),
        }
    }
    chars.into_iter().collect()
}

fn answer(schema: &Value, path: &str, brackets: bool) -> String {
    let Ok(parsed) = structural::parse(schema) else { return "schema: malformed".to_owned() };
    let notation = if brackets { Brackets::Allowed } else { Brackets::Refused };
    let resolved = resolve(path, &parsed, notation);
    if brackets && !path.is_empty() && resolved.is_ok() != is_valid_in_rule(schema, path) {
        return "as the path of a rule it is judged otherwise".to_owned();
    }
    match resolved {
        Ok((path, found)) => {
            let title = found.map(|schema| schema.title.clone().unwrap_or_default());
            json!({"path": path.as_str(), "schema": title}).to_string()
        }
        Err(problem) => format!("error: {problem}"),
    }
}

/// Whether a definition may have a rule with this path at the root of its schema.
fn is_valid_in_rule(schema: &Value, path: &str) -> bool {
    let mut schema = schema.clone();
    schema["x-kubernetes-validations"] = json!([{"rule": "true", "fieldPath": path}]);
    let errors = structural::check(&schema, &Path::root());
    !errors.iter().any(|error| error.to_string().contains("must be a valid path"))
}
