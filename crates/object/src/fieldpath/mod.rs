//! Crossplane's field paths: `spec.containers[0].name`, `metadata.labels[app.kubernetes.io/name]`,
//! `spec.list[*].size`. Not to be confused with [`crate::field`], which makes validation errors.
//!
//! ```text
//! path    := "" | first rest*
//! first   := field | "[" bracket "]"
//! rest    := "." field | "[" bracket "]"
//! field   := characters but . [ ]          always the name of a field
//! bracket := characters but [ ]            an index if it is an unsigned 32-bit number, else a field
//! ```
//!
//! Quotes around a field name are trimmed; nothing can be escaped. The messages of the errors and which of them
//! count as *not found* are part of the contract: an optional patch forgives exactly those.

mod merge;
mod paved;

pub use merge::{MergeOptions, merge};
pub use paved::{
    MAX_INDEX, delete, expand, get, get_bool, get_integer, get_segments, get_string, get_string_array,
    get_string_object, set,
};

use std::fmt;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// A field of an object.
    Field(String),
    /// An element of an array.
    Index(usize),
}

impl Segment {
    /// The name of a field, which loses all quotes at its ends.
    pub fn field(name: &str) -> Self {
        Self::Field(name.trim_matches(['\'', '"']).to_owned())
    }

    /// An index if the text is an unsigned 32-bit number, else the name of a field.
    pub fn field_or_index(text: &str) -> Self {
        let number = text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u32>().ok()).flatten();
        match number.and_then(|n| usize::try_from(n).ok()) {
            Some(index) => Self::Index(index),
            None => Self::field(text),
        }
    }

    pub(crate) fn is_wildcard(&self) -> bool {
        matches!(self, Self::Field(name) if name == "*")
    }
}

/// Why a path cannot be read, found or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    message: String,
    not_found: bool,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), not_found: false }
    }

    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self { message: message.into(), not_found: true }
    }

    /// Whether the path names something that does not exist, rather than something that cannot.
    pub fn is_not_found(&self) -> bool {
        self.not_found
    }

    /// The same error with a text before it.
    #[must_use]
    pub fn context(self, words: impl fmt::Display) -> Self {
        Self { message: format!("{words}: {}", self.message), ..self }
    }
}

/// Segments as text. Only fields that hold a period or are a wildcard get brackets, so the text of a name with
/// brackets or with quotes at its ends does not parse back to it.
pub fn format(segments: &[Segment]) -> String {
    let mut text = String::new();
    for segment in segments {
        match segment {
            Segment::Index(index) => text.push_str(&format!("[{index}]")),
            Segment::Field(name) if name == "*" || name.contains('.') => text.push_str(&format!("[{name}]")),
            Segment::Field(name) => {
                text.push('.');
                text.push_str(name);
            }
        }
    }
    text.strip_prefix('.').map(str::to_owned).unwrap_or(text)
}

/// Reads a path.
pub fn parse(path: &str) -> Result<Vec<Segment>, Error> {
    let mut segments = Vec::new();
    let mut at = 0;
    while at < path.len() {
        let rest = &path[at..];
        let stop = rest.find(['.', '[', ']']).unwrap_or(rest.len());
        if stop > 0 {
            segments.push(Segment::field(&rest[..stop]));
        }
        at += stop;
        at = match path.as_bytes().get(at) {
            None => break,
            Some(b'.') => after_period(path, at)?,
            Some(b'[') => bracket(path, at, &mut segments)?,
            Some(_) => return Err(unexpected(']', at)),
        };
    }
    Ok(segments)
}

/// A period separates two things of which the second is a field.
fn after_period(path: &str, at: usize) -> Result<usize, Error> {
    if at == 0 || at + 1 == path.len() {
        return Err(unexpected('.', at));
    }
    match path.as_bytes()[at + 1] {
        b'.' => Err(unexpected('.', at + 1)),
        b'[' => Err(unexpected('[', at + 1)),
        _ => Ok(at + 1),
    }
}

/// Reads the bracket that opens at a position; where its end is.
fn bracket(path: &str, open: usize, segments: &mut Vec<Segment>) -> Result<usize, Error> {
    let inside = &path[open + 1..];
    let Some(length) = inside.find(']') else {
        return Err(Error::new(format!("unterminated '[' at position {open}")));
    };
    if length == 0 {
        return Err(unexpected(']', open + 1));
    }
    if let Some(nested) = inside[..length].find('[') {
        return Err(unexpected('[', open + 1 + nested));
    }
    segments.push(Segment::field_or_index(&inside[..length]));
    Ok(open + 1 + length + 1)
}

fn unexpected(c: char, at: usize) -> Error {
    Error::new(format!("unexpected '{c}' at position {at}"))
}
