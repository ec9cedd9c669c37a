//! What `optMap` and `optFlatMap` can cost: as expressions, which are also evaluated, and as rules of a schema, whose bounds
//! the estimate depends on.

use super::asked;
use crate::Case;
use crate::dice::Dice;
use serde_json::{Value, json};
use transom_schema::rules::Rules;
use transom_schema::structural;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Int,
    Text,
    Ints,
}

/// The variables that an expression may use, with their kinds.
type Scope = Vec<(String, Kind)>;

pub(crate) fn case(dice: &mut Dice) -> Case {
    if dice.percent(65) {
        return asked(&mapped(dice, 2, &Vec::new()));
    }
    let fields = [
        ("self.n", Kind::Int),
        ("self.s", Kind::Text),
        ("self.l", Kind::Ints),
        ("self.t[0]", Kind::Text),
        ("self.m.a", Kind::Int),
    ];
    let scope = fields.map(|(name, kind)| (name.to_owned(), kind)).to_vec();
    let rule = flag(dice, &scope);
    let schema = schema(dice, &rule);
    let answer = costs(&schema);
    (json!({"schema": schema}), answer)
}

fn costs(schema: &Value) -> String {
    let Ok(parsed) = structural::parse(schema) else { return "schema: malformed".to_owned() };
    let rules = Rules::build(&parsed, false);
    if !rules.errors().is_empty() {
        return "does not compile".to_owned();
    }
    let costs: Vec<String> = rules.estimates().iter().map(|rule| rule.per_evaluation.to_string()).collect();
    costs.join(" ")
}

fn schema(dice: &mut Dice, rule: &str) -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "s": {"type": "string"},
            "l": {"type": "array", "items": {"type": "integer"}},
            "t": {"type": "array", "items": {"type": "string"}},
            "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
        "x-kubernetes-validations": [{"rule": rule}],
    });
    for (path, keyword) in [
        ("/properties/s", "maxLength"),
        ("/properties/s", "minLength"),
        ("/properties/l", "maxItems"),
        ("/properties/t", "maxItems"),
        ("/properties/t/items", "maxLength"),
        ("/properties/m", "maxProperties"),
    ] {
        if dice.percent(60)
            && let Some(node) = schema.pointer_mut(path)
        {
            node[keyword] = json!(dice.one(&[0, 1, 3, 10, 64, 1000, 1_000_000]));
        }
    }
    schema
}

/// A mapped optional, in the end or at the end of more calls.
fn mapped(dice: &mut Dice, depth: usize, scope: &Scope) -> String {
    let kind = kind(dice);
    let mapped = map(dice, kind, depth, scope);
    match dice.below(5) {
        0 => format!("{mapped}.hasValue()"),
        1 => format!("{mapped}.orValue({}) == {}", literal(dice, kind), value(dice, kind, 1, scope)),
        2 if kind != Kind::Ints => format!("{mapped}.orValue({})", literal(dice, kind)),
        3 => format!("{mapped} == {}", optional(dice, kind, 1, scope)),
        4 if kind != Kind::Ints => mapped,
        _ => format!("size([?{mapped}])"),
    }
}

/// A rule with a mapped optional in it.
fn flag(dice: &mut Dice, scope: &Scope) -> String {
    let kind = kind(dice);
    let mapped = map(dice, kind, 2, scope);
    match dice.below(3) {
        0 => format!("{mapped}.hasValue()"),
        1 => format!("{mapped}.orValue({}) == {}", literal(dice, kind), value(dice, kind, 1, scope)),
        _ => format!("{mapped} != {}", optional(dice, kind, 1, scope)),
    }
}

fn kind(dice: &mut Dice) -> Kind {
    dice.one(&[Kind::Int, Kind::Text, Kind::Ints])
}

fn map(dice: &mut Dice, to: Kind, depth: usize, scope: &Scope) -> String {
    let from = kind(dice);
    let target = optional(dice, from, depth - 1, scope);
    let name = dice.pick(&["x", "x", "y"]);
    let mut inner: Scope = scope.iter().filter(|(known, _)| known != name).cloned().collect();
    inner.push((name.to_owned(), from));
    if dice.percent(70) {
        format!("{target}.optMap({name}, {})", value(dice, to, depth, &inner))
    } else {
        format!("{target}.optFlatMap({name}, {})", optional(dice, to, depth - 1, &inner))
    }
}

fn optional(dice: &mut Dice, kind: Kind, depth: usize, scope: &Scope) -> String {
    if depth > 0 && dice.percent(40) {
        return map(dice, kind, depth, scope);
    }
    let below = depth.saturating_sub(1);
    let value = value(dice, kind, below, scope);
    match dice.below(8) {
        0 | 1 => format!("optional.of({value})"),
        2 => format!("optional.ofNonZeroValue({value})"),
        3 => format!("[{value}][?{}]", dice.below(2)),
        4 => format!("{{'a': {value}}}[?'{}']", dice.pick(&["a", "b"])),
        5 => format!("{{'a': {value}}}.?{}", dice.pick(&["a", "b"])),
        6 if depth > 0 => format!("optional.of({value}).or({})", optional(dice, kind, below, scope)),
        _ if scope.iter().any(|(name, _)| name == "self.s") => match kind {
            Kind::Int => dice.pick(&["self.?n", "self.l[?0]", "self.m[?'a']", "self.?m.a"]),
            Kind::Text => dice.pick(&["self.?s", "self.t[?1]", "self.?t[?0]"]),
            Kind::Ints => "self.?l",
        }
        .to_owned(),
        _ => format!("optional.of({value})"),
    }
}

fn literal(dice: &mut Dice, kind: Kind) -> &'static str {
    match kind {
        Kind::Int => dice.pick(&["0", "1", "7", "-3"]),
        Kind::Text => dice.pick(&["''", "'a'", "'a,b'", "'0123456789012345678901234567890123456789'"]),
        Kind::Ints => dice.pick(&["[1]", "[1, 2, 3]", "[3, 1, 2, 1, 3, 1, 2, 1, 3, 1, 2]"]),
    }
}

fn value(dice: &mut Dice, kind: Kind, depth: usize, scope: &Scope) -> String {
    let known: Vec<&str> = scope.iter().filter(|(_, k)| *k == kind).map(|(name, _)| name.as_str()).collect();
    if let Some(last) = known.last()
        && dice.percent(if depth == 0 { 80 } else { 30 })
    {
        return if dice.percent(60) { (*last).to_owned() } else { dice.pick(&known).to_owned() };
    }
    if depth == 0 {
        return literal(dice, kind).to_owned();
    }
    if dice.percent(15) {
        return format!("{}.orValue({})", optional(dice, kind, depth - 1, scope), literal(dice, kind));
    }
    let mut one = |kind| value(dice, kind, depth - 1, scope);
    let (number, text, list) = (one(Kind::Int), one(Kind::Text), one(Kind::Ints));
    let same = one(kind);
    match (kind, dice.below(6)) {
        (Kind::Int, 0) => format!("({number} + {same})"),
        (Kind::Int, 1) => format!("size({text})"),
        (Kind::Int, 2) => format!("{list}[0]"),
        (Kind::Int, 3) => format!("int(string({number}))"),
        (Kind::Int, 4) => format!("{list}.map(z, z + {number}).sum()"),
        (Kind::Int, _) => format!("({text}.contains('a') ? {number} : {same})"),
        (Kind::Text, 0) => format!("({text} + {same})"),
        (Kind::Text, 1) => format!("string({number})"),
        (Kind::Text, 2) => format!("{text}.lowerAscii()"),
        (Kind::Text, 3) => format!("{text}.split(',')[0]"),
        (Kind::Text, 4) => format!("{text}.replace('a', {same})"),
        (Kind::Text, _) => format!("({text}.matches('^a+$') ? {text} : {same})"),
        (Kind::Ints, 0) => format!("({list} + {same})"),
        (Kind::Ints, 1) => format!("[{number}]"),
        (Kind::Ints, 2) => format!("{list}.map(z, z * {number})"),
        (Kind::Ints, 3) => format!("{list}.filter(z, z > {number})"),
        (Kind::Ints, 4) => format!("({list}.exists(z, z == {number}) ? {list} : {same})"),
        (Kind::Ints, _) => format!("({list}.isSorted() ? {list} : {same})"),
    }
}
