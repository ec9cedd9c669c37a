//! What goes wrong when people write inputs: misspelt and missing fields, values of the wrong type, nulls.

use super::Dice;
use serde_json::{Value, json};

/// Damages one place of an input.
pub(super) fn damage(dice: &mut Dice, value: &mut Value) {
    let stop = dice.percent(20);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let key = fields.keys().nth(dice.below(fields.len())).cloned().unwrap_or_default();
            if stop || !matches!(fields[&key], Value::Object(_) | Value::Array(_)) {
                damage_field(dice, fields, &key);
            } else {
                damage(dice, &mut fields[&key]);
            }
        }
        Value::Array(items) if !items.is_empty() && !stop => {
            let index = dice.below(items.len());
            damage(dice, &mut items[index]);
        }
        other => *other = odd(dice),
    }
}

fn damage_field(dice: &mut Dice, fields: &mut serde_json::Map<String, Value>, key: &str) {
    match dice.below(5) {
        0 => {
            fields.remove(key);
        }
        1 => {
            fields.insert(format!("{key}s"), odd(dice));
        }
        2 => {
            let value = fields.remove(key).unwrap_or_default();
            fields.insert(key.to_uppercase(), value);
        }
        _ => {
            fields.insert(key.to_owned(), odd(dice));
        }
    }
}

/// A value that is probably not what belongs here.
pub(super) fn odd(dice: &mut Dice) -> Value {
    dice.one(&[
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(""),
        json!("x"),
        json!([]),
        json!({}),
        json!([null]),
        json!({"x": 1}),
        json!("FromCompositeFieldPath"),
        json!("a..b"),
        json!(1e20),
        json!("[a-z"),
    ])
}
