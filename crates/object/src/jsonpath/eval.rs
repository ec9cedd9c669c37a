//! Evaluates the nodes of a template on data.

use super::{Node, Slice};
use crate::field::go_number;
use crate::json::go_type;
use serde_json::Value;
use std::cmp::Ordering;
use std::sync::LazyLock;

/// Steps that one evaluation may take: far beyond any legitimate template, and some milliseconds.
const MAX_STEPS: usize = 200_000;
const MAX_RANGES: usize = 32;

type Values<'a> = Vec<&'a Value>;

/// What stopped a walk, and the values it had: a filter for existence looks at those only.
struct Failure<'a> {
    message: String,
    partial: Values<'a>,
}

type Walk<'a> = Result<Values<'a>, Failure<'a>>;

fn fail<'a>(message: impl Into<String>, partial: &[&'a Value]) -> Walk<'a> {
    Err(Failure { message: message.into(), partial: partial.to_vec() })
}

/// Upstream walks the bytes of a string as numbers.
static BYTES: LazyLock<Vec<Value>> = LazyLock::new(|| (0..=255_u8).map(Value::from).collect());
static NULL: Value = Value::Null;

struct Evaluation<'a> {
    nodes: &'a [Node],
    allow_missing: bool,
    steps: usize,
    begin_range: usize,
    in_range: usize,
    end_range: usize,
    last_end: usize,
}

pub(super) fn find<'a>(
    nodes: &'a [Node],
    allow_missing: bool,
    data: &'a Value,
) -> Result<Vec<Values<'a>>, String> {
    let mut evaluation =
        Evaluation { nodes, allow_missing, steps: 0, begin_range: 0, in_range: 0, end_range: 0, last_end: 0 };
    let mut out = Vec::new();
    evaluation.find(0, data, &mut out)?;
    Ok(out)
}

impl<'a> Evaluation<'a> {
    /// Evaluates the nodes from `from` on; inside a range, up to its end.
    fn find(&mut self, from: usize, data: &'a Value, out: &mut Vec<Values<'a>>) -> Result<(), String> {
        let nodes = self.nodes;
        let mut i = from;
        while let Some(node) = nodes.get(i) {
            self.spend(1).map_err(|f| f.message)?;
            let results = self.walk(&[data], node).map_err(|f| f.message)?;
            if self.end_range > 0 && self.end_range <= self.in_range {
                self.end_range -= 1;
                self.last_end = i;
                return Ok(());
            }
            if self.begin_range == 0 {
                out.push(results);
                i += 1;
                continue;
            }
            self.begin_range -= 1;
            self.in_range += 1;
            if self.in_range > MAX_RANGES {
                return Err("ranges are nested too deeply".to_owned());
            }
            if results.is_empty() {
                // Only to find the end of the range.
                self.find(i + 1, &NULL, &mut Vec::new())?;
            }
            for value in results {
                self.find(i + 1, value, out)?;
            }
            self.in_range -= 1;
            i = self.last_end.max(i) + 1;
        }
        Ok(())
    }

    fn spend(&mut self, steps: usize) -> Result<(), Failure<'a>> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS {
            return Err(Failure { message: "jsonpath takes too many steps".to_owned(), partial: Vec::new() });
        }
        Ok(())
    }

    fn list(&mut self, input: &[&'a Value], nodes: &'a [Node]) -> Walk<'a> {
        let mut current = input.to_vec();
        for node in nodes {
            current = self.walk(&current, node)?;
        }
        Ok(current)
    }

    fn walk(&mut self, input: &[&'a Value], node: &'a Node) -> Walk<'a> {
        self.spend(input.len())?;
        match node {
            Node::List(nodes) => self.list(input, nodes),
            // Text is written as it is; a number or bool is repeated for each value.
            Node::Literal(value @ Value::String(_)) => Ok(vec![value]),
            Node::Literal(value) => Ok(vec![value; input.len()]),
            Node::Field(name) => self.field(input, name),
            Node::Slice(slice) => self.slice(input, *slice),
            Node::Filter { left, operator, right } => self.filter(input, left, operator, right),
            Node::Wildcard => {
                let all: Values<'a> = input.iter().flat_map(|v| children(v)).collect();
                self.spend(all.len())?;
                Ok(all)
            }
            Node::Recursive => {
                let mut out = Vec::new();
                self.descend(input, &mut out)?;
                Ok(out)
            }
            Node::Union(parts) => {
                let mut out = Vec::new();
                for part in parts {
                    match self.list(input, part) {
                        Ok(found) => out.extend(found),
                        Err(f) => return fail(f.message, input),
                    }
                }
                Ok(out)
            }
            Node::Identifier(name) => self.identifier(input, name),
        }
    }

    fn identifier(&mut self, input: &[&'a Value], name: &str) -> Walk<'a> {
        match name {
            "range" => {
                self.begin_range += 1;
                Ok(input.to_vec())
            }
            "end" if self.in_range > 0 => {
                self.end_range += 1;
                Ok(Vec::new())
            }
            "end" => fail("not in range, nothing to end", &[]),
            other => fail(format!("unrecognized identifier {other}"), input),
        }
    }

    fn field(&mut self, input: &[&'a Value], name: &str) -> Walk<'a> {
        let found: Values<'a> =
            input.iter().filter_map(|v| v.as_object().and_then(|fields| fields.get(name))).collect();
        if found.is_empty() && !input.is_empty() && !self.allow_missing {
            return fail(format!("{name} is not found"), &[]);
        }
        Ok(found)
    }

    fn slice(&mut self, input: &[&'a Value], slice: Slice) -> Walk<'a> {
        let mut out = Vec::new();
        for value in input.iter().filter(|v| !v.is_null()) {
            let Some(items) = value.as_array() else {
                return fail(format!("{} is not array or slice", go_type(value)), input);
            };
            let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let mut start = slice.start.unwrap_or(0);
            if start < 0 {
                start = start.saturating_add(length);
            }
            let mut end = slice.end.unwrap_or(length);
            if end < 0 || (end == 0 && slice.single) {
                end = end.saturating_add(length);
            }
            if start == end {
                return Ok(out);
            }
            let out_of_bounds = |i: i64| format!("array index out of bounds: index {i}, length {length}");
            if start >= length || start < 0 {
                return fail(out_of_bounds(start), input);
            }
            if end > length || end < 0 {
                return fail(out_of_bounds(end.saturating_sub(1)), input);
            }
            if start > end {
                let why = format!("starting index {start} is greater than ending index {end}");
                return fail(why, input);
            }
            let step = slice.step.unwrap_or(1);
            if step <= 0 {
                return fail("step must be > 0", input);
            }
            let as_index = |n: i64| usize::try_from(n).unwrap_or(usize::MAX);
            let chosen = items.get(as_index(start)..as_index(end)).unwrap_or_default();
            out.extend(chosen.iter().step_by(as_index(step)));
            self.spend(chosen.len())?;
        }
        Ok(out)
    }

    fn descend(&mut self, input: &[&'a Value], out: &mut Values<'a>) -> Result<(), Failure<'a>> {
        for value in input {
            let below = children(value);
            if !below.is_empty() {
                self.spend(below.len())?;
                out.push(value);
                self.descend(&below, out)?;
            }
        }
        Ok(())
    }

    fn filter(
        &mut self,
        input: &[&'a Value],
        left: &'a [Node],
        operator: &str,
        right: &'a [Node],
    ) -> Walk<'a> {
        let mut out = Vec::new();
        for value in input {
            let Some(items) = value.as_array() else {
                let shown = go_value(value);
                return fail(format!("{shown} is not array or slice and cannot be filtered"), input);
            };
            for item in items {
                self.spend(1)?;
                let passes = match operator {
                    "exists" => {
                        let found = self.list(&[item], left).unwrap_or_else(|f| f.partial);
                        Ok(!found.is_empty())
                    }
                    _ => self.passes(item, left, operator, right),
                };
                match passes {
                    Ok(true) => out.push(item),
                    Ok(false) => {}
                    Err(message) => return fail(message, input),
                }
            }
        }
        Ok(out)
    }

    /// Whether both sides yield one value and these compare so; a side without a value does not pass.
    fn passes(
        &mut self,
        item: &'a Value,
        left: &'a [Node],
        operator: &str,
        right: &'a [Node],
    ) -> Result<bool, String> {
        let lefts = self.list(&[item], left).map_err(|f| f.message)?;
        let Some(left) = only(&lefts)? else { return Ok(false) };
        let rights = self.list(&[item], right).map_err(|f| f.message)?;
        let Some(right) = only(&rights)? else { return Ok(false) };
        compare(left, operator, right)
    }
}

fn only<'a>(values: &[&'a Value]) -> Result<Option<&'a Value>, String> {
    match values {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err("can only compare one element at a time".to_owned()),
    }
}

fn children(value: &Value) -> Values<'_> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        Value::String(s) => s.bytes().filter_map(|b| BYTES.get(usize::from(b))).collect(),
        _ => Vec::new(),
    }
}

/// Numbers are integers or floats, and the two do not mix.
fn compare(left: &Value, operator: &str, right: &Value) -> Result<bool, String> {
    let scalar = |v: &Value| !matches!(v, Value::Null | Value::Array(_) | Value::Object(_));
    if !matches!(operator, "<" | ">" | "==" | "!=" | "<=" | ">=") {
        return Err(format!("unrecognized filter operator {operator}"));
    }
    if !scalar(left) || !scalar(right) {
        return Err("invalid type for comparison".to_owned());
    }
    let ordering = match (left, right) {
        (Value::Bool(a), Value::Bool(b)) if matches!(operator, "==" | "!=") => Some(a.cmp(b)),
        (Value::Bool(_), Value::Bool(_)) => return Err("invalid type for comparison".to_owned()),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) if a.is_f64() == b.is_f64() => {
            if a.is_f64() {
                a.as_f64().partial_cmp(&b.as_f64())
            } else {
                let wide = |n: &serde_json::Number| n.as_i64().map(i128::from).or(n.as_u64().map(i128::from));
                wide(a).partial_cmp(&wide(b))
            }
        }
        _ => return Err("incompatible types for comparison".to_owned()),
    };
    Ok(match operator {
        "<" => ordering == Some(Ordering::Less),
        ">" => ordering == Some(Ordering::Greater),
        "==" => ordering == Some(Ordering::Equal),
        "!=" => ordering != Some(Ordering::Equal),
        "<=" => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
        _ => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
    })
}

/// Go's `%v`.
fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => go_number(n),
        Value::String(s) => s.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_value).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(k, v)| format!("{k}:{}", go_value(v))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}
