//! How a command fails: what is wrong, where, and what to do about it.

use std::fmt;
use std::process::ExitCode;

#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    place: Option<Box<Place>>,
    remedy: Option<String>,
}

/// A place in a file, for people: line and column count from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// The text of the line.
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), place: None, remedy: None }
    }

    #[must_use]
    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    #[must_use]
    pub(crate) fn at(mut self, place: Place) -> Self {
        self.place = Some(Box::new(place));
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
        match (&self.place, &self.remedy) {
            (None, None) => Ok(()),
            (None, Some(remedy)) => write!(f, "; {remedy}"),
            (Some(place), remedy) => {
                write!(f, "\n{place}")?;
                let margin = " ".repeat(place.line.to_string().len());
                remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "\n{margin} = {remedy}"))
            }
        }
    }
}

/// The line with a caret below the place.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, text } = self;
        let margin = " ".repeat(line.to_string().len());
        write!(f, "{margin}--> {file}:{line}:{column}\n{margin} |\n{line} | {text}\n{margin} | ")?;
        // Tabs stay tabs, so that the caret stands below its character in any terminal.
        let before = text.chars().take(column.saturating_sub(1));
        let indent: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        write!(f, "{indent}^")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_points_at_its_place() {
        let place = Place { file: "a.yaml".to_owned(), line: 12, column: 3, text: "\t kind: B".to_owned() };
        let failure = Failure::new("wrong kind").at(place).remedy("write A");
        assert_eq!(
            failure.to_string(),
            "error: wrong kind\n  --> a.yaml:12:3\n   |\n12 | \t kind: B\n   | \t ^\n   = write A"
        );
        assert_eq!(Failure::new("no").remedy("do").to_string(), "error: no; do");
    }
}
