//! The differences that are meant: `pattern<TAB>reason`, a regular expression over `function: difference`.

use regex::Regex;
use std::path::Path;

pub struct Known {
    patterns: Vec<Regex>,
    seen: usize,
}

impl Known {
    pub fn read(file: Option<&Path>) -> Result<Self, super::Failure> {
        let text = file.map(std::fs::read_to_string).transpose()?.unwrap_or_default();
        let rows = text.lines().filter(|row| !row.is_empty() && !row.starts_with('#'));
        let patterns = rows.map(|row| {
            let (pattern, _reason) = row.split_once('\t').ok_or(format!("no reason is given: {row}"))?;
            Ok::<_, super::Failure>(Regex::new(pattern)?)
        });
        Ok(Self { patterns: patterns.collect::<Result<_, _>>()?, seen: 0 })
    }

    pub fn expects(&mut self, function: &str, difference: &str) -> bool {
        let described = format!("{function}: {difference}");
        let expected = self.patterns.iter().any(|pattern| pattern.is_match(&described));
        self.seen += usize::from(expected);
        expected
    }

    pub fn seen(&self) -> usize {
        self.seen
    }
}
