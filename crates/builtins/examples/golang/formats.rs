//! Formats in schemas, and which of them a server of Kubernetes warns of.

use crate::Case;
use crate::dice::Dice;
use serde_json::{Map, Value, json};
use transom_schema::structural;

pub(crate) fn case(dice: &mut Dice) -> Case {
    // Servers before 1.36 look at formats of strings alone; Go's library of 1.36 looks at all types for every version.
    let (minor, types): (u32, &[&str]) = match dice.below(4) {
        0 => (dice.one(&[0, 1, 20, 33, 34, 35]), &["string"]),
        _ => {
            let all = &[
                "integer", "integer", "integer", "number", "string", "boolean", "object", "array", "",
                "null", "Integer",
            ];
            (dice.one(&[36, 36, 37, 40]), all)
        }
    };
    let schema = schema(dice, 3, types);
    let mut found = structural::unrecognized_formats(&schema, minor);
    found.sort();
    (json!({"schema": schema, "minor": minor}), json!(found).to_string())
}

fn format(dice: &mut Dice) -> String {
    const KNOWN: [&str; 33] = [
        "int32",
        "int64",
        "float",
        "double",
        "bsonobjectid",
        "uri",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "cidr",
        "mac",
        "uuid",
        "uuid3",
        "uuid4",
        "uuid5",
        "isbn",
        "isbn10",
        "isbn13",
        "creditcard",
        "ssn",
        "hexcolor",
        "rgbcolor",
        "byte",
        "password",
        "date",
        "duration",
        "datetime",
        "date-time",
        "k8s-short-name",
        "k8s-long-name",
        "int-or-string",
        "uint32",
    ];
    const OTHER: [&str; 12] = [
        "",
        "bogus",
        "int8",
        "uint64",
        "binary",
        "quantity",
        "-",
        "é",
        "int32 ",
        "json-pointer",
        "regex",
        "time",
    ];
    let mut text = if dice.percent(75) { dice.one(&KNOWN).to_owned() } else { dice.one(&OTHER).to_owned() };
    match dice.below(6) {
        0 => text = text.replace('-', ""),
        1 if text.is_ascii() => text.insert(dice.below(text.len() + 1), '-'),
        2 if dice.percent(30) => text = text.to_uppercase(),
        _ => {}
    }
    text
}

fn schema(dice: &mut Dice, depth: usize, types: &[&str]) -> Value {
    let mut schema = json!({});
    let ty = dice.pick(types);
    if !ty.is_empty() || dice.percent(50) {
        schema["type"] = json!(ty);
    }
    if dice.percent(75) {
        schema["format"] = json!(format(dice));
    }
    for _ in 0..dice.below(if depth == 0 { 1 } else { 3 }) {
        let (keyword, value) = child(dice, depth - 1, types);
        schema[keyword] = value;
    }
    schema
}

/// A keyword that has schemas below it, in each of its forms.
fn child(dice: &mut Dice, depth: usize, types: &[&str]) -> (&'static str, Value) {
    let keyword = dice.pick(&[
        "properties",
        "properties",
        "additionalProperties",
        "items",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "patternProperties",
        "definitions",
        "dependencies",
        "additionalItems",
    ]);
    let mut some =
        |most: usize| -> Vec<Value> { (0..dice.below(most)).map(|_| schema(dice, depth, types)).collect() };
    let many = some(4);
    let one = some(2).pop().unwrap_or_else(|| json!({"type": types[0], "format": "within"}));
    let named = || -> Map<String, Value> {
        ["a", "b", "c.d"].iter().map(|n| (*n).to_owned()).zip(many.clone()).collect()
    };
    let value = match keyword {
        "properties" | "patternProperties" | "definitions" => named().into(),
        "dependencies" if dice.percent(30) => json!({"a": ["b", "format"], "b": one}),
        "dependencies" => named().into(),
        "items" if dice.percent(30) => many.into(),
        "additionalProperties" | "additionalItems" if dice.percent(20) => json!(dice.percent(50)),
        "allOf" | "anyOf" | "oneOf" => many.into(),
        _ => one,
    };
    (keyword, if dice.percent(3) { json!(null) } else { value })
}
