//! Why a text is not acceptable YAML. The parser has only messages: here, and nowhere else, they become kinds.

use super::Position;

/// Why a text is not acceptable YAML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct Error {
    /// What is wrong, for callers that distinguish errors.
    pub kind: ErrorKind,
    /// What is wrong, for people.
    pub message: String,
    /// Both count from one.
    pub line: usize,
    /// See `line`.
    pub column: usize,
}

/// What is wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text breaks the syntax of YAML.
    Syntax(Syntax),
    /// An alias of an anchor that the parser has not read before.
    UnknownAnchor,
    /// JSON has no such value, for example infinity.
    UnsupportedValue,
    /// JSON has no key for such a scalar.
    UnsupportedKey,
    /// The syntax is valid, but a tag, a merge, a key or a character is not.
    Content,
    /// Too deep, or too many or recursive aliases.
    Limit,
}

/// What is wrong with the syntax, as far as callers distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// A key is missing in a mapping.
    MissingKey,
    /// A value is missing.
    MissingContent,
    /// A `-` is missing in a block sequence.
    MissingDash,
    /// A `,` or `}` is missing in a flow mapping.
    MissingCommaOrBrace,
    /// A `,` or `]` is missing in a flow sequence.
    MissingCommaOrBracket,
    /// A bracket or brace where none can be.
    MisplacedBracket,
    /// Text after a quoted scalar on the same line.
    TextAfterQuoted,
    /// A `:` is missing after a key.
    MissingColon,
    /// An escape with a digit that is not hexadecimal.
    HexadecimalEscape,
    /// A tab in the indentation.
    TabInIndentation,
    /// A character that begins nothing.
    UnexpectedCharacter,
    /// Indentation that the parser refuses; go-yaml accepts some of it.
    Indentation,
    /// Everything else.
    Other,
}

impl Error {
    pub(super) fn new(kind: ErrorKind, at: Position, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), line: at.line, column: at.column }
    }

    /// An error of the parser, which is known by its message only.
    pub(super) fn of_parser(message: &str, at: Position) -> Self {
        Self::new(kind_of(without_context(message)), at, message)
    }

    /// The message without what was being parsed when it happened: `while parsing a block mapping, `.
    pub fn problem(&self) -> &str {
        without_context(&self.message)
    }
}

fn without_context(message: &str) -> &str {
    match message.split_once(", ") {
        Some((context, problem)) if context.starts_with("while ") => problem,
        _ => message,
    }
}

fn kind_of(problem: &str) -> ErrorKind {
    if problem.starts_with("found unknown anchor") {
        return ErrorKind::UnknownAnchor;
    }
    ErrorKind::Syntax(match problem {
        "did not find expected key" => Syntax::MissingKey,
        "did not find expected node content" => Syntax::MissingContent,
        "did not find expected '-' indicator" => Syntax::MissingDash,
        "did not find expected ',' or '}'" => Syntax::MissingCommaOrBrace,
        "expected ',' or ']'" => Syntax::MissingCommaOrBracket,
        "misplaced bracket" => Syntax::MisplacedBracket,
        "invalid trailing content after double-quoted scalar" => Syntax::TextAfterQuoted,
        "simple key expect ':'" => Syntax::MissingColon,
        "did not find expected hexadecimal number" => Syntax::HexadecimalEscape,
        "found a tab" => Syntax::TabInIndentation,
        _ if problem.starts_with("unexpected character: ") || problem.starts_with("tabs disallowed ") => {
            Syntax::UnexpectedCharacter
        }
        _ if problem.starts_with("invalid indentation") => Syntax::Indentation,
        _ => Syntax::Other,
    })
}
