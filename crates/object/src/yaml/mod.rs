//! YAML as Kubernetes reads and writes it: YAML 1.1 by the rules of go-yaml v2, with JSON's data model.
//!
//! Reading: `yes`, `on` and `y` are booleans, `0644` is octal, `1_000` a number, `<<` merges, anchors are
//! expanded within a budget, keys become strings (a key `y` is `"true"`), `.inf` is an error. Numbers then
//! follow the rules of [`crate::json`], as does the limit on nesting.
//!
//! Writing: keys in natural order, two spaces per level, sequences not indented below their key, strings
//! quoted whenever they would be read as something else, several lines as a literal block; byte for byte
//! what sigs.k8s.io/yaml writes.

mod error;
mod order;
mod read;
mod relax;
mod scalar;
mod style;
mod write;

pub use error::{Error, ErrorKind, Syntax};
pub use read::{read, read_documents};
pub use write::write;

use crate::fieldpath::{self, Segment};
use serde_json::Value;
use std::collections::BTreeMap;

/// A position in the text, for people: line and column count from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// From one.
    pub line: usize,
    /// From one.
    pub column: usize,
}

/// One document of a stream.
#[derive(Clone, Debug)]
pub struct Document {
    /// The document as a JSON value.
    pub value: Value,
    /// Paths of keys given more than once in one mapping; the last one won.
    pub duplicates: Vec<String>,
    /// The line of the stream on which the document's content begins.
    pub line: usize,
    pub(crate) places: Places,
}

impl Document {
    /// Where the value at a JSON pointer such as `/spec/containers/0/name` was written: the position of
    /// its key, or of the item itself in a sequence. What came out of an alias has the alias' position.
    pub fn span_of(&self, pointer: &str) -> Option<Position> {
        let tokens = pointer.split('/').skip(1);
        let names: Vec<String> = tokens.map(|token| token.replace("~1", "/").replace("~0", "~")).collect();
        self.places.find(names.iter().map(|name| (name.as_str(), name.parse().ok())))
    }

    /// The same by a field path such as `spec.containers[0].name`.
    pub fn span_of_field(&self, path: &str) -> Option<Position> {
        let segments = fieldpath::parse(path).ok()?;
        self.places.find(segments.iter().map(|segment| match segment {
            Segment::Field(name) => (name.as_str(), None),
            Segment::Index(index) => ("", Some(*index)),
        }))
    }
}

/// The positions of a value and of all it contains, shaped like the value.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) position: Position,
    pub(crate) alias: bool,
    pub(crate) inside: Inside,
}

impl Places {
    /// Follows steps, each of which is a name and, where it can be one, an index.
    fn find<'n>(&self, steps: impl Iterator<Item = (&'n str, Option<usize>)>) -> Option<Position> {
        let mut here = self;
        for (name, index) in steps {
            let child = match &here.inside {
                Inside::Nothing if here.alias => return Some(here.position),
                Inside::Nothing => None,
                Inside::Fields(fields) => fields.get(name),
                Inside::Items(items) => index.and_then(|i| items.get(i)),
            };
            here = child?;
        }
        Some(here.position)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Inside {
    Nothing,
    Fields(BTreeMap<String, Places>),
    Items(Vec<Places>),
}
