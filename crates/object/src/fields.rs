//! Field selectors: `metadata.name=a,status.phase!=Failed`.
//!
//! Values may hold `,`, `=` and `\` when each is escaped by a backslash.

use std::borrow::Cow;
use std::fmt;

/// Why a text is not a field selector, worded as upstream words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectorError {
    /// A term has no operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    Term {
        /// The whole selector.
        selector: String,
        /// The term.
        term: String,
    },
    /// A backslash before a character that needs none.
    #[error("invalid field selector: invalid escape sequence: \\{0}")]
    Escape(String),
    /// A special character without a backslash. Upstream prints it as a number.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}

/// One term. `==` and `=` mean the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    /// The path of the field.
    pub field: String,
    /// `!=` rather than `=`.
    pub negated: bool,
    /// The value that it is compared with.
    pub value: String,
}

/// A conjunction of terms; without any, every object is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selector(Vec<Requirement>);

impl Selector {
    /// The selector without terms.
    pub fn everything() -> Self {
        Self::default()
    }

    /// All of these terms.
    pub fn new(requirements: Vec<Requirement>) -> Self {
        Self(requirements)
    }

    /// Reads a selector; the error is worded as upstream's.
    pub fn parse(selector: &str) -> Result<Self, SelectorError> {
        let mut terms = split_terms(selector);
        terms.sort_unstable();
        let mut requirements = Vec::new();
        for term in terms.into_iter().filter(|t| !t.is_empty()) {
            let (field, operator, value) = split_term(term).ok_or_else(|| SelectorError::Term {
                selector: selector.to_owned(),
                term: term.to_owned(),
            })?;
            requirements.push(Requirement {
                field: field.to_owned(),
                negated: operator == "!=",
                value: unescape(value)?.into_owned(),
            });
        }
        Ok(Self(requirements))
    }

    /// The terms, sorted as they were written.
    pub fn requirements(&self) -> &[Requirement] {
        &self.0
    }

    /// Whether it has no terms.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// `value` gives a field of the object; a field that is missing counts as empty.
    pub fn matches<'a>(&self, value: impl Fn(&str) -> Option<Cow<'a, str>>) -> bool {
        self.0.iter().all(|r| (value(&r.field).unwrap_or_default() == r.value) != r.negated)
    }

    /// The value that the field must have, if the selector requires exactly one; what an index can use.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.0.iter().find(|r| !r.negated && r.field == field).map(|r| r.value.as_str())
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, r) in self.0.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let operator = if r.negated { "!=" } else { "=" };
            write!(f, "{comma}{}{operator}{}", r.field, escape(&r.value))?;
        }
        Ok(())
    }
}

/// Splits at commas that no backslash escapes.
pub fn split_terms(selector: &str) -> Vec<&str> {
    if selector.is_empty() {
        return Vec::new();
    }
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (i, b) in selector.bytes().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&selector[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    terms.push(&selector[start..]);
    terms
}

/// Splits a term at its first operator.
pub fn split_term(term: &str) -> Option<(&str, &'static str, &str)> {
    term.char_indices().find_map(|(i, _)| {
        let rest = &term[i..];
        ["!=", "==", "="]
            .into_iter()
            .find_map(|op| rest.strip_prefix(op).map(|value| (&term[..i], op, value)))
    })
}

/// A value as it is written in a selector.
pub fn escape(value: &str) -> Cow<'_, str> {
    if !value.contains(['\\', ',', '=']) {
        return value.into();
    }
    let mut out = String::with_capacity(value.len() + 4);
    for c in value.chars() {
        if matches!(c, '\\' | ',' | '=') {
            out.push('\\');
        }
        out.push(c);
    }
    out.into()
}

/// The inverse of [`escape`]; an error for a special character without a backslash.
pub fn unescape(value: &str) -> Result<Cow<'_, str>, SelectorError> {
    if !value.contains(['\\', ',', '=']) {
        return Ok(value.into());
    }
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                other => {
                    let c = other.map_or_else(String::new, String::from);
                    return Err(SelectorError::Escape(c));
                }
            },
            ',' | '=' => return Err(SelectorError::Unescaped(c)),
            c => out.push(c),
        }
    }
    Ok(out.into())
}
