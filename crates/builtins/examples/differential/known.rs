//! The differences that are meant: `pattern<TAB>reason`, a regular expression over `function: difference`.

use regex::Regex;
use std::path::Path;

pub(crate) struct Known {
    rows: Vec<Row>,
}

struct Row {
    pattern: Regex,
    reason: String,
    seen: usize,
}

impl Known {
    pub(crate) fn read(file: Option<&Path>) -> Result<Self, super::Failure> {
        let text = file.map(std::fs::read_to_string).transpose()?.unwrap_or_default();
        let rows = text.lines().filter(|row| !row.is_empty() && !row.starts_with('#'));
        let rows = rows.map(|row| {
            let (pattern, reason) = row.split_once('\t').ok_or(format!("no reason is given: {row}"))?;
            Ok::<_, super::Failure>(Row { pattern: Regex::new(pattern)?, reason: reason.to_owned(), seen: 0 })
        });
        Ok(Self { rows: rows.collect::<Result<_, _>>()? })
    }

    /// The reason for a difference.
    pub(crate) fn reason(&mut self, function: &str, difference: &str) -> Option<&str> {
        let described = format!("{function}: {difference}");
        let row = self.rows.iter_mut().find(|row| row.pattern.is_match(&described))?;
        row.seen += 1;
        Some(&row.reason)
    }

    pub(crate) fn expects(&mut self, function: &str, difference: &str) -> bool {
        self.reason(function, difference).is_some()
    }

    /// How many differences had a reason.
    pub(crate) fn seen(&self) -> usize {
        self.rows.iter().map(|row| row.seen).sum()
    }

    /// The patterns for a function that nothing matched.
    pub(crate) fn unneeded(&self, function: &str) -> Vec<&str> {
        let unseen = self.rows.iter().filter(|row| row.seen == 0).map(|row| row.pattern.as_str());
        unseen.filter(|pattern| pattern.starts_with(&format!("{function}:"))).collect()
    }
}
