//! The list of cases that are known to differ: `case<TAB>reason`, one a line. It is kept honest: a case that is listed
//! and does not differ fails the test just as one that differs and is not listed.

use std::collections::BTreeMap;

pub(super) struct Known {
    reasons: BTreeMap<String, String>,
    failures: Vec<String>,
    passed: usize,
}

impl Known {
    pub(super) fn read(list: &str) -> Self {
        let rows = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let reasons = rows.map(|row| {
            let (case, reason) = row.split_once('\t').unwrap_or_else(|| panic!("no reason is given: {row}"));
            (case.to_owned(), reason.to_owned())
        });
        Self { reasons: reasons.collect(), failures: Vec::new(), passed: 0 }
    }

    pub(super) fn judge(&mut self, case: &str, outcome: Result<(), String>) {
        match (self.reasons.remove(case), outcome) {
            (None, Ok(())) => self.passed += 1,
            (Some(_), Err(_)) => {}
            (None, Err(difference)) => self.failures.push(format!("{case}\n    {difference:.600}")),
            (Some(reason), Ok(())) => {
                self.failures.push(format!("{case}\n    no longer differs, but is listed: {reason}"));
            }
        }
    }

    /// Fails the test unless all is as listed. Without the data nothing can be said about what is listed.
    pub(super) fn verdict(self, complete: bool) {
        let mut failures = self.failures;
        if complete {
            failures.extend(
                self.reasons
                    .into_keys()
                    .map(|case| format!("{case}\n    is listed, but there is no such case")),
            );
        }
        assert!(
            failures.is_empty(),
            "{} passed, {} failed:\n{}",
            self.passed,
            failures.len(),
            failures.join("\n")
        );
    }
}
