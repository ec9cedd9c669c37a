//! Paths such as `.spec.ports['a.b']` from a schema node to a field below it, as the `fieldPath` of rules and
//! selectable fields write them.

use super::props::{OrBool, Props};
use crate::model::{Additional, Schema};
use transom_object::field::Path;

/// A node of a schema, compiled or not, as far as paths are concerned.
pub(super) trait Spine: Copy {
    fn specifies_properties(self) -> bool;
    fn property_named(self, name: &str) -> Option<Self>;
    /// `None` without `additionalProperties`; `Some(None)` where they have no schema.
    fn values(self) -> Option<Option<Self>>;
}

impl Spine for Props<'_> {
    fn specifies_properties(self) -> bool {
        self.has_properties()
    }

    fn property_named(self, name: &str) -> Option<Self> {
        self.property(name)
    }

    fn values(self) -> Option<Option<Self>> {
        self.additional().map(|additional| match additional {
            OrBool::Schema(values) => Some(values),
            OrBool::Bool(_) => None,
        })
    }
}

impl Spine for &Schema {
    fn specifies_properties(self) -> bool {
        !self.properties.is_empty()
    }

    fn property_named(self, name: &str) -> Option<Self> {
        self.properties.get(name).map(|s| &**s)
    }

    fn values(self) -> Option<Option<Self>> {
        match &self.additional {
            Additional::Absent => None,
            Additional::Bool(_) => Some(None),
            Additional::Schema(values) => Some(Some(&**values)),
        }
    }
}

/// Whether a path may index with `['key']`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Brackets {
    /// It may.
    Allowed,
    /// It may not.
    Refused,
}

/// Why a path leads to no field, worded as upstream words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FieldPathError(String);

/// The field a path leads to, as a path of the object and with its schema, which a key below
/// `additionalProperties: true` does not have. The error says what is wrong.
pub fn resolve<'s>(
    path: &str,
    schema: &'s Schema,
    brackets: Brackets,
) -> Result<(Path, Option<&'s Schema>), FieldPathError> {
    walk(path, schema, brackets).map_err(FieldPathError)
}

pub(super) fn walk<S: Spine>(path: &str, schema: S, brackets: Brackets) -> Result<(Path, Option<S>), String> {
    const END: &str = "unexpected end of JSON path";
    let mut tokens = Tokens(path);
    let (mut at, mut schema) = (Path::root(), Some(schema));
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next().ok_or(END)?.to_owned(),
            "[" if brackets == Brackets::Refused => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let token = tokens.next().ok_or(END)?;
                let quoted = token.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
                let quoted =
                    quoted.ok_or_else(|| format!("expected single quoted string but got {token}"))?;
                unescape(quoted)?
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        const UNKNOWN: &str = "does not refer to a valid field";
        // Upstream ends in a panic at a path that goes on below `additionalProperties: true`.
        let above = schema.ok_or(UNKNOWN)?;
        (at, schema) = if above.specifies_properties() {
            (at.child(&name), Some(above.property_named(&name).ok_or(UNKNOWN)?))
        } else {
            (at.key(&name), above.values().ok_or(UNKNOWN)?)
        };
        if token == "[" {
            match tokens.next().ok_or(END)? {
                "]" => {}
                other => return Err(format!("expected ] but got {other}")),
            }
        }
    }
    Ok((at, schema))
}

/// The delimiters `.`, `[` and `]`, quoted strings with their quotes, and what stands between them.
struct Tokens<'p>(&'p str);

impl<'p> Iterator for Tokens<'p> {
    type Item = &'p str;

    fn next(&mut self) -> Option<&'p str> {
        let len = match self.0.as_bytes().first()? {
            b'\'' => {
                let bytes = self.0.as_bytes();
                let closes = |i: &usize| bytes[*i] == b'\'' && bytes[i - 1] != b'\\';
                (1..bytes.len()).find(closes).map_or(bytes.len(), |i| i + 1)
            }
            b'.' | b'[' | b']' => 1,
            _ => self.0.find(['.', '[', ']']).unwrap_or(self.0.len()),
        };
        let (token, rest) = self.0.split_at(len);
        self.0 = rest;
        Some(token)
    }
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    // Upstream replaces all escapes before it reports the last wrong one.
    let mut wrong = None;
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('a') => out.push('\x07'),
            Some('b') => out.push('\x08'),
            Some('f') => out.push('\x0c'),
            Some('v') => out.push('\x0b'),
            Some(c @ ('\\' | '\'')) => out.push(c),
            // Upstream's pattern for an escape matches neither a line break nor the end.
            Some('\n') => out.push_str("\\\n"),
            None => out.push('\\'),
            Some(other) => wrong = Some(other),
        }
    }
    match wrong {
        Some(other) => Err(format!("invalid string literal: invalid escape char \\{other}")),
        None => Ok(out),
    }
}
