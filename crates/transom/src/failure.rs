//! How a command fails: one line that says what is wrong, one that says what to do about it.

use std::fmt;
use std::process::ExitCode;

#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    remedy: Option<String>,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: None }
    }

    #[must_use]
    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Prints to stderr; exit code 1.
    pub(crate) fn report(&self) -> ExitCode {
        anstream::eprintln!("{self}");
        ExitCode::FAILURE
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}
