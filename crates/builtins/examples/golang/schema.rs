//! Values and the schemas of custom resources: unknown formats, integers at their limits, and what stands below
//! `additionalProperties`.

use crate::Case;
use crate::dice::Dice;
use serde_json::{Map, Value, json};
use transom_object::field::{Error, Path};
use transom_schema::rules::{Limits, Rules};
use transom_schema::{normalize, structural, validate};

pub(crate) fn case(dice: &mut Dice) -> Case {
    let mut schema = object(dice, 3);
    let value = fitting(dice, &schema);
    if let Value::Object(fields) = &mut schema {
        fields.remove("nullable");
    }
    let value = if value.is_object() { value } else { json!({}) };
    let answer = answer(&schema, &value);
    (json!({"schema": schema, "value": value}), answer)
}

const KEYS: [&str; 11] = ["a", "b", "c", "spec", "a.b", "x/y", "k[0]", "a b", "é", "items", "0"];

fn any(dice: &mut Dice, depth: usize) -> Value {
    let mut schema = match dice.below(if depth == 0 { 5 } else { 9 }) {
        0 | 1 => integer(dice),
        2 => number(dice),
        3 => string(dice),
        4 => dice.one(&[json!({"type": "boolean"}), json!({"x-kubernetes-int-or-string": true})]),
        5 => array(dice, depth),
        _ => object(dice, depth),
    };
    if dice.percent(8) {
        schema["nullable"] = json!(true);
    }
    schema
}

fn integer(dice: &mut Dice) -> Value {
    let mut schema = json!({"type": "integer"});
    if dice.percent(70) {
        let formats = [
            "int32",
            "int64",
            "foo",
            "uint32",
            "uint64",
            "int16",
            "double",
            "float",
            "date",
            "int-or-string",
            "INT32",
            "byte",
            "",
        ];
        schema["format"] = json!(dice.one(&formats));
    }
    bounds(dice, &mut schema);
    schema
}

fn number(dice: &mut Dice) -> Value {
    let mut schema = json!({"type": "number"});
    if dice.percent(70) {
        schema["format"] =
            json!(dice.one(&["float", "double", "foo", "int32", "int64", "date", "uint32", ""]));
    }
    bounds(dice, &mut schema);
    schema
}

fn bounds(dice: &mut Dice, schema: &mut Value) {
    if dice.percent(20) {
        schema["minimum"] = dice.one(&[json!(0), json!(3), json!(-2_147_483_648_i64), json!(1.5)]);
    }
    if dice.percent(20) {
        schema["maximum"] =
            dice.one(&[json!(10), json!(2_147_483_647), json!(9_007_199_254_740_993_i64), json!(2.5)]);
    }
    if dice.percent(8) {
        schema["enum"] = json!([1, 2, 3]);
    }
    rule(dice, schema, &["self > 3", "self != 7"]);
}

fn string(dice: &mut Dice) -> Value {
    let mut schema = json!({"type": "string"});
    if dice.percent(50) {
        let formats = [
            "foo",
            "date",
            "date-time",
            "datetime",
            "byte",
            "ipv4",
            "cidr",
            "uuid",
            "duration",
            "int32",
            "hostname",
            "password",
        ];
        schema["format"] = json!(dice.one(&formats));
    }
    if dice.percent(25) {
        schema["maxLength"] = json!(dice.below(4));
    }
    if dice.percent(20) {
        schema["pattern"] = json!("^[a-z]*$");
    }
    if dice.percent(15) {
        schema["enum"] = json!(["a", "b"]);
    }
    schema
}

fn array(dice: &mut Dice, depth: usize) -> Value {
    let mut schema = json!({"type": "array", "items": any(dice, depth - 1)});
    if dice.percent(25) {
        schema["maxItems"] = json!(dice.below(3));
    }
    let kind = &schema["items"]["type"];
    if dice.percent(20)
        && (*kind == "integer" || *kind == "string")
        && schema["items"].get("nullable").is_none()
    {
        schema["x-kubernetes-list-type"] = json!("set");
    }
    schema
}

fn object(dice: &mut Dice, depth: usize) -> Value {
    let mut schema = json!({"type": "object"});
    if depth > 0 && dice.percent(55) {
        schema["additionalProperties"] = any(dice, depth - 1);
    } else {
        let mut properties = Map::new();
        for _ in 0..dice.below(4) {
            properties.insert(dice.one(&KEYS).to_owned(), any(dice, depth.saturating_sub(1)));
        }
        if dice.percent(30) {
            schema["required"] = json!([dice.one(&KEYS)]);
        }
        schema["properties"] = properties.into();
        if dice.percent(10) {
            schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
        }
    }
    if dice.percent(12) {
        schema["maxProperties"] = json!(dice.below(3));
    }
    if dice.percent(12) {
        schema["minProperties"] = json!(dice.below(3));
    }
    rule(dice, &mut schema, &["has(self.a)", "size(self) < 2", "self.all(k, k != 'a')"]);
    schema
}

fn rule(dice: &mut Dice, schema: &mut Value, rules: &[&str]) {
    if dice.percent(12) {
        schema["x-kubernetes-validations"] = json!([{"rule": dice.pick(rules), "message": "no"}]);
    }
}

/// A value that mostly fits a schema.
fn fitting(dice: &mut Dice, schema: &Value) -> Value {
    if dice.percent(6) {
        return dice.one(&[
            json!(null),
            json!("a"),
            json!(3),
            json!(1.5),
            json!([]),
            json!({}),
            json!(true),
            json!({"a": 1}),
        ]);
    }
    match schema["type"].as_str() {
        Some("integer") => integers(dice),
        Some("number") => dice.one(&[
            json!(1),
            json!(1.5),
            json!(2.0),
            json!(1e30),
            json!(-3.25),
            json!(3.5e38),
            json!(2_147_483_648_i64),
        ]),
        Some("string") => json!(dice.pick(&[
            "a",
            "b",
            "abc",
            "A1",
            "",
            "2020-01-01",
            "2020-01-01T00:00:00Z",
            "YQ==",
            "YR==",
            "1.2.3.4",
            "5s",
            "10.0.0.0/8",
            "é"
        ])),
        Some("boolean") => json!(dice.percent(50)),
        Some("array") => (0..dice.below(4)).map(|_| fitting(dice, &schema["items"])).collect(),
        Some(_) => {
            let mut fields = Map::new();
            let properties = schema["properties"].as_object().cloned().unwrap_or_default();
            for (name, property) in &properties {
                if dice.percent(75) {
                    fields.insert(name.clone(), fitting(dice, property));
                }
            }
            for _ in 0..dice.below(3) {
                let below =
                    schema.get("additionalProperties").cloned().unwrap_or_else(|| json!({"type": "string"}));
                fields.insert(dice.one(&KEYS).to_owned(), fitting(dice, &below));
            }
            fields.into()
        }
        None => dice.one(&[json!(3), json!("a"), json!(1.5)]),
    }
}

fn integers(dice: &mut Dice) -> Value {
    dice.one(&[
        json!(0),
        json!(3),
        json!(-1),
        json!(7),
        json!(2_147_483_647),
        json!(2_147_483_648_i64),
        json!(-2_147_483_648_i64),
        json!(-2_147_483_649_i64),
        json!(4_294_967_296_i64),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(9_223_372_036_854_775_808_u64),
        json!(u64::MAX),
        json!(1.0),
        json!(1.5),
        json!(1e19),
        json!(1e30),
        json!(9_007_199_254_740_993_i64),
    ])
}

fn answer(schema: &Value, value: &Value) -> String {
    let Ok(parsed) = structural::parse(schema) else { return "schema: malformed".to_owned() };
    let mut pruned = value.clone();
    let mut unknown = normalize::prune(&mut pruned, &parsed, false);
    unknown.sort();
    let errors = validate::validate(value, None, &parsed, &Path::root());
    let mut answer = json!({
        "unknown": unknown,
        "pruned": pruned,
        "schema": texts(&errors),
        "lists": texts(&validate::list_types(value, None, &parsed, &Path::root())),
    });
    let rules = Rules::build(&parsed, false);
    if errors.is_empty() && !rules.is_empty() {
        let report = rules.report(value, None, &Path::root(), Limits { ratchet: false, ..Limits::default() });
        answer["rules"] = texts(&report.errors);
    }
    answer.to_string()
}

fn texts(errors: &[Error]) -> Value {
    let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.sort();
    json!(texts)
}
