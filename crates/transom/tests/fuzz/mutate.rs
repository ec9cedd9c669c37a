//! Mutations: of bytes, and of JSON trees.

use serde_json::{Map, Value, json};
use transom_testkit::rng::Rng;

/// Inputs stay small: depth and size have tests of their own.
const LONGEST: usize = 4096;

/// Pieces that mean something to one reader or another.
const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "\"",
    "'",
    "`",
    ":",
    ",",
    ".",
    "..",
    "*",
    "&",
    "!",
    "?",
    "|",
    ">",
    "-",
    "- ",
    "\n",
    "\t",
    "\\",
    "\\u",
    "\\ud800",
    "%",
    "#",
    "@",
    "$",
    "=",
    "==",
    "!=",
    "in",
    "notin",
    "<<: ",
    "---\n",
    "...\n",
    "null",
    "true",
    "~",
    "0x",
    "0o7",
    "1e400",
    "-0",
    ".inf",
    "9223372036854775808",
    "1.5",
    "\u{feff}",
    "\u{2028}",
    "é",
    "😀",
    "\0",
    "/",
    "~0",
    "~1",
    "self",
    "has(",
    "all(x, ",
    "x",
    "map(",
    "matches(",
    "[?(@.a==1)]",
    "[::-1]",
    "[*]",
    "{range .a[*]}",
    "{end}",
    "k8s\0",
    "\u{12}\u{7f}",
    "Ki",
    "m",
    "h",
    "2020-01-01T00:00:00Z",
];

pub(super) fn bytes(corpus: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut input = rng.pick(corpus).clone();
    for _ in 0..=rng.index(6) {
        let at = rng.index(input.len() + 1);
        let end = (at + rng.index(16)).min(input.len());
        match rng.index(8) {
            0 if at < input.len() => input[at] ^= 1 << rng.index(8),
            1 if at < input.len() => input[at] = rng.next_u64() as u8,
            2 => drop(input.drain(at..end)),
            3 => drop(input.splice(at..at, rng.pick(TOKENS).bytes())),
            4 => drop(input.splice(at..end, rng.pick(TOKENS).bytes())),
            5 => {
                let piece = input[at..end].repeat(1 + rng.index(8));
                input.splice(at..at, piece);
            }
            6 => {
                let other = rng.pick(corpus);
                let from = rng.index(other.len() + 1);
                let to = (from + rng.index(64)).min(other.len());
                input.splice(at..at, other[from..to].iter().copied());
            }
            _ => input.truncate(at),
        }
    }
    input.truncate(LONGEST);
    input
}

fn leaf(rng: &mut Rng) -> Value {
    let leaves = [
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(1.5),
        json!(-0.0),
        json!(1e300),
        json!(""),
        json!("a"),
        json!("é\u{0}"),
        json!([]),
        json!({}),
        json!([{}]),
        json!([null]),
        json!({"a": null}),
        json!({"name": "a"}),
        json!({"f:a": {}, "k:{\"name\":\"a\"}": {".": {}}}),
        json!("2020-01-01T00:00:00Z"),
        json!("100m"),
        json!("-5"),
        json!("object"),
        json!("array"),
        json!("/a/0"),
        json!("replace"),
    ];
    rng.pick(&leaves).clone()
}

/// Any node of a tree, by descending at random.
fn descend<'v>(value: &'v mut Value, rng: &mut Rng) -> &'v mut Value {
    let mut node = value;
    loop {
        let inner = match node {
            Value::Array(list) => list.len(),
            Value::Object(map) => map.len(),
            _ => 0,
        };
        if inner == 0 || rng.index(4) == 0 {
            return node;
        }
        let at = rng.index(inner);
        node = match node {
            Value::Array(list) => &mut list[at],
            Value::Object(map) => match map.values_mut().nth(at) {
                Some(next) => next,
                None => unreachable!("{at} is below the length"),
            },
            _ => unreachable!("only lists and maps have something in them"),
        };
    }
}

fn key(map: &Map<String, Value>, rng: &mut Rng) -> Option<String> {
    map.keys().nth(rng.index(map.len())).cloned()
}

pub(super) fn values(corpus: &[Value], rng: &mut Rng) -> Value {
    let mut tree = rng.pick(corpus).clone();
    for _ in 0..=rng.index(5) {
        let mut other = if rng.index(2) == 0 { rng.pick(corpus).clone() } else { tree.clone() };
        let graft = descend(&mut other, rng).clone();
        let new = if rng.index(2) == 0 { leaf(rng) } else { graft };
        let node = descend(&mut tree, rng);
        match (rng.index(5), node) {
            (0, node) => *node = new,
            (1, Value::Object(map)) => {
                let name = key(map, rng).unwrap_or_else(|| "a".to_owned());
                map.remove(&name);
                if rng.index(2) == 0 {
                    map.insert(format!("{name}x"), new);
                }
            }
            (2, Value::Object(map)) => {
                let name = key(map, rng).unwrap_or_else(|| "a".to_owned());
                map.insert(name, new);
            }
            (1 | 2, Value::Array(list)) if !list.is_empty() => drop(list.remove(rng.index(list.len()))),
            (3, Value::Array(list)) if list.len() < 50 => list.push(new),
            (4, Value::Array(list)) if !list.is_empty() && list.len() < 50 => {
                let again = rng.pick(list).clone();
                list.push(again);
            }
            (3, node) => *node = json!([node.take()]),
            (_, node) => *node = new,
        }
    }
    tree
}
