//! How results are printed: for people, or as JSON or YAML for programs.

use crate::Failure;
use clap::ValueEnum;
use serde_json::Value;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use transom_object::yaml;

/// The form of a result.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "documentation of the values would be printed in the help of every flag")]
pub enum Format {
    Text,
    Json,
    Yaml,
}

impl Format {
    /// A result in this form; `text` writes it for people.
    pub fn write(self, value: &Value, text: impl FnOnce(&Value) -> String) -> String {
        match self {
            Self::Text => text(value),
            Self::Json => format!("{value:#}\n"),
            Self::Yaml => yaml::write(value),
        }
    }
}

/// Rows with columns of equal width.
pub fn table(rows: &[Vec<String>]) -> Vec<String> {
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(String::len).max();
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, cell)| match column + 1 == row.len() {
            true => cell.clone(),
            false => format!("{cell:<width$}", width = width(column).unwrap_or_default()),
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    rows.iter().map(line).collect()
}

/// Prints the result of a command. A reader that closes the pipe early, such as `head`, is not a failure.
pub fn print(text: &[u8]) -> Result<ExitCode, Failure> {
    crate::progress::remove_line();
    match std::io::stdout().lock().write_all(text) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to stdout: {e}")))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Prints to stderr what is not a result, such as a question. The line of a progress is removed before.
pub fn print_to_stderr(text: &str) {
    crate::progress::remove_line();
    anstream::eprint!("{text}");
    // If printing fails there is nowhere left to report that.
    let _ = std::io::stderr().flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["NAME", "READY"], ["a-long-name", "True"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), ["NAME         READY", "a-long-name  True"]);
    }
}
