//! How results are printed: for people, or as JSON or YAML for programs.

use clap::ValueEnum;
use serde_json::Value;
use transom_object::yaml;

/// The form of a result.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Yaml,
}

impl Format {
    /// A result in this form; `text` writes it for people.
    pub(crate) fn write(self, value: &Value, text: impl FnOnce(&Value) -> String) -> String {
        match self {
            Self::Text => text(value),
            Self::Json => format!("{value:#}\n"),
            Self::Yaml => yaml::write(value),
        }
    }
}

/// Rows with columns of equal width.
pub(crate) fn table(rows: &[Vec<String>]) -> Vec<String> {
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
