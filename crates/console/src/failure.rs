//! How a command fails: what is wrong, where, and what to do about it.

use anstyle::{AnsiColor, Style};
use std::fmt;
use std::process::ExitCode;

/// Why a command fails.
#[derive(Debug)]
pub struct Failure {
    what: String,
    location: Option<Box<SourceLocation>>,
    remedy: Option<String>,
    /// What else is wrong.
    more: Vec<Failure>,
}

/// A location in a file, for people: line and column count from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file, as the user named it.
    pub file: String,
    /// The number of the line.
    pub line: usize,
    /// The number of the character in the line.
    pub column: usize,
    /// The text of the line.
    pub text: String,
}

impl Failure {
    /// Says what is wrong: the object or file, the field, the problem.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), location: None, remedy: None, more: Vec::new() }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// The same with where it is wrong.
    #[must_use]
    pub fn at(mut self, location: SourceLocation) -> Self {
        self.location = Some(Box::new(location));
        self
    }

    /// The same with others that are reported after it.
    #[must_use]
    pub fn and(mut self, others: impl IntoIterator<Item = Self>) -> Self {
        self.more.extend(others);
        self
    }

    /// All of them as one; nothing if there are none.
    pub fn all(failures: impl IntoIterator<Item = Self>) -> Result<(), Self> {
        let mut failures = failures.into_iter();
        failures.next().map_or(Ok(()), |first| Err(first.and(failures)))
    }

    /// Prints to stderr; exit code 1.
    pub fn report(&self) -> ExitCode {
        self.print(Level::Error);
        ExitCode::FAILURE
    }

    /// Prints to stderr as something that is wrong but does not stop the command.
    pub fn warn(&self) {
        self.print(Level::Warning);
    }

    fn print(&self, level: Level) {
        crate::print_to_stderr(&format!("{}\n", FailureDisplay { failure: self, level, colour: true }));
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        FailureDisplay { failure: self, level: Level::Error, colour: false }.fmt(f)
    }
}

#[derive(Clone, Copy)]
enum Level {
    Error,
    Warning,
}

/// A failure as it is printed. Colours are removed again on their way to anything but a terminal that supports them.
struct FailureDisplay<'a> {
    failure: &'a Failure,
    level: Level,
    colour: bool,
}

impl fmt::Display for FailureDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { failure: Failure { what, location, remedy, more }, level, colour } = *self;
        // The colours of the command line's own errors.
        let bold = |of: AnsiColor| if colour { of.on_default().bold() } else { Style::new() };
        let (label, mark) = match level {
            Level::Error => ("error:", bold(AnsiColor::Red)),
            Level::Warning => ("warning:", bold(AnsiColor::Yellow)),
        };
        let margin = bold(AnsiColor::Blue);
        write!(f, "{mark}{label}{mark:#} {what}")?;
        match (location, remedy) {
            (None, None) => {}
            (None, Some(remedy)) => write!(f, "; {remedy}")?,
            (Some(location), remedy) => {
                location.show(f, mark, margin)?;
                if let Some(remedy) = remedy {
                    write!(f, "\n{}{margin} ={margin:#} {remedy}", location.indent())?;
                }
            }
        }
        more.iter().try_for_each(|failure| write!(f, "\n{}", Self { failure, ..*self }))
    }
}

impl SourceLocation {
    /// As wide as the number of the line.
    fn indent(&self) -> String {
        " ".repeat(self.line.to_string().len())
    }

    /// The line with a caret below the location.
    fn show(&self, f: &mut fmt::Formatter<'_>, mark: Style, margin: Style) -> fmt::Result {
        let Self { file, line, column, text } = self;
        let indent = self.indent();
        write!(f, "\n{indent}{margin}-->{margin:#} {file}:{line}:{column}\n{indent}{margin} |{margin:#}")?;
        write!(f, "\n{margin}{line} |{margin:#} {text}\n{indent}{margin} |{margin:#} ")?;
        // Tabs stay tabs, so that the caret stands below its character in any terminal.
        let before = text.chars().take(column.saturating_sub(1));
        let blank: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        write!(f, "{blank}{mark}^{mark:#}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_points_at_its_place() {
        let location =
            SourceLocation { file: "a.yaml".to_owned(), line: 12, column: 3, text: "\t kind: B".to_owned() };
        let failure = Failure::new("wrong kind").at(location).remedy("write A");
        assert_eq!(
            failure.to_string(),
            "error: wrong kind\n  --> a.yaml:12:3\n   |\n12 | \t kind: B\n   | \t ^\n   = write A"
        );
        assert_eq!(Failure::new("no").remedy("do").to_string(), "error: no; do");
    }

    #[test]
    fn several_failures_are_reported_in_turn() {
        assert!(Failure::all([]).is_ok());
        let several = Failure::all(["one", "two", "three"].map(Failure::new));
        assert_eq!(
            several.map_err(|e| e.to_string()),
            Err("error: one\nerror: two\nerror: three".to_owned())
        );
    }

    #[test]
    fn only_what_is_for_a_terminal_is_coloured() {
        let location = SourceLocation { file: "a.yaml".to_owned(), line: 1, column: 1, text: "a".to_owned() };
        let failure = Failure::new("odd").at(location).remedy("even");
        let printed = |level| FailureDisplay { failure: &failure, level, colour: true }.to_string();
        assert!(
            printed(Level::Error).starts_with("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m odd\n"),
            "{}",
            printed(Level::Error)
        );
        let plain = anstream::adapter::strip_str(&printed(Level::Warning)).to_string();
        assert_eq!(plain, failure.to_string().replacen("error", "warning", 1));
    }
}
