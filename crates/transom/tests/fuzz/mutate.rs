//! Mutations: of bytes, and of JSON trees.

use serde_json::{Map, Value, json};

/// xorshift64*: the same sequence from the same seed, everywhere.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// A number below `limit`, which may be 0.
    fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, among: &'a [T]) -> &'a T {
        &among[self.below(among.len())]
    }
}

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

pub fn bytes(corpus: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut input = dice.pick(corpus).clone();
    for _ in 0..=dice.below(6) {
        let at = dice.below(input.len() + 1);
        let end = (at + dice.below(16)).min(input.len());
        match dice.below(8) {
            0 if at < input.len() => input[at] ^= 1 << dice.below(8),
            1 if at < input.len() => input[at] = dice.roll() as u8,
            2 => drop(input.drain(at..end)),
            3 => drop(input.splice(at..at, dice.pick(TOKENS).bytes())),
            4 => drop(input.splice(at..end, dice.pick(TOKENS).bytes())),
            5 => {
                let piece = input[at..end].repeat(1 + dice.below(8));
                input.splice(at..at, piece);
            }
            6 => {
                let other = dice.pick(corpus);
                let from = dice.below(other.len() + 1);
                let to = (from + dice.below(64)).min(other.len());
                input.splice(at..at, other[from..to].iter().copied());
            }
            _ => input.truncate(at),
        }
    }
    input.truncate(LONGEST);
    input
}

fn leaf(dice: &mut Dice) -> Value {
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
    dice.pick(&leaves).clone()
}

/// Any node of a tree, by descending at random.
fn descend<'v>(value: &'v mut Value, dice: &mut Dice) -> &'v mut Value {
    let mut node = value;
    loop {
        let inner = match node {
            Value::Array(list) => list.len(),
            Value::Object(map) => map.len(),
            _ => 0,
        };
        if inner == 0 || dice.below(4) == 0 {
            return node;
        }
        let at = dice.below(inner);
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

fn key(map: &Map<String, Value>, dice: &mut Dice) -> Option<String> {
    map.keys().nth(dice.below(map.len())).cloned()
}

pub fn values(corpus: &[Value], dice: &mut Dice) -> Value {
    let mut tree = dice.pick(corpus).clone();
    for _ in 0..=dice.below(5) {
        let mut other = if dice.below(2) == 0 { dice.pick(corpus).clone() } else { tree.clone() };
        let graft = descend(&mut other, dice).clone();
        let new = if dice.below(2) == 0 { leaf(dice) } else { graft };
        let node = descend(&mut tree, dice);
        match (dice.below(5), node) {
            (0, node) => *node = new,
            (1, Value::Object(map)) => {
                let name = key(map, dice).unwrap_or_else(|| "a".to_owned());
                map.remove(&name);
                if dice.below(2) == 0 {
                    map.insert(format!("{name}x"), new);
                }
            }
            (2, Value::Object(map)) => {
                let name = key(map, dice).unwrap_or_else(|| "a".to_owned());
                map.insert(name, new);
            }
            (1 | 2, Value::Array(list)) if !list.is_empty() => drop(list.remove(dice.below(list.len()))),
            (3, Value::Array(list)) if list.len() < 50 => list.push(new),
            (4, Value::Array(list)) if !list.is_empty() && list.len() < 50 => {
                let again = dice.pick(list).clone();
                list.push(again);
            }
            (3, node) => *node = json!([node.take()]),
            (_, node) => *node = new,
        }
    }
    tree
}
