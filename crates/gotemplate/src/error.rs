//! What went wrong and where: Go's text for people, and the parts of it for tools.

use std::fmt;

use crate::limits::Exceeded;

/// Why a template was refused or stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The text is not a template.
    Syntax,
    /// `.field` of an explicit null.
    NilField {
        /// The name of the field.
        field: String,
    },
    /// `.field` of a value that has none, and that value's type.
    NoField {
        /// The name of the field.
        field: String,
        /// The type of the value, as Go prints it.
        type_name: String,
    },
    /// A missing key under `missingkey=error`.
    NoKey {
        /// The missing key.
        key: String,
    },
    /// An argument of the wrong type; `found` is `None` when there was no value at all.
    WrongType {
        /// The type of the parameter.
        expected: String,
        /// The type of the argument.
        found: Option<String>,
    },
    /// A function reported an error.
    Function {
        /// The name of the function.
        name: String,
        /// Its error.
        message: String,
    },
    /// A bound on the work was reached.
    Limit(Exceeded),
    /// Everything else.
    Other,
}

/// A failed parse or execution. The parts are those of [`Failure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Failure>);

/// The parts of an [`Error`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The whole message, worded as Go words it.
    pub message: String,
    /// The name the text was parsed under.
    pub template: String,
    /// The defined template that was running, for errors of execution.
    pub executing: Option<String>,
    /// Counted from one.
    pub line: usize,
    /// Bytes from the start of the line, counted from zero as Go counts; unknown for syntax errors.
    pub column: Option<usize>,
    /// The part of the template being evaluated.
    pub snippet: Option<String>,
    /// What went wrong, for callers that distinguish errors.
    pub cause: Cause,
}

impl Error {
    pub(crate) fn parse(template: &str, line: usize, problem: &str) -> Error {
        Error::from(Failure {
            message: format!("template: {template}:{line}: {problem}"),
            template: template.to_owned(),
            executing: None,
            line,
            column: None,
            snippet: None,
            cause: Cause::Syntax,
        })
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        Error(Box::new(failure))
    }
}

impl std::ops::Deref for Error {
    type Target = Failure;

    fn deref(&self) -> &Failure {
        &self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
