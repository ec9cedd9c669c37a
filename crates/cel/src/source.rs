//! Problems found in an expression's text, and how they are shown: a line, a column and a caret.

use std::fmt::Write as _;

/// One problem. `pos` counts code points from the start of the expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Where it is, in code points from the start of the text.
    pub pos: usize,
    /// What is wrong.
    pub message: String,
}

impl Issue {
    pub(crate) fn new(pos: usize, message: impl Into<String>) -> Self {
        Self { pos, message: message.into() }
    }
}

/// All issues as text, ordered by position:
/// `ERROR: <input>:1:5: undeclared reference to 'x'\n | y + x\n | ....^`.
pub(crate) fn render(source: &str, issues: &[Issue]) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut sorted: Vec<&Issue> = issues.iter().collect();
    sorted.sort_by_key(|i| i.pos);
    let mut out = String::new();
    for issue in sorted {
        if !out.is_empty() {
            out.push('\n');
        }
        if issue.pos == usize::MAX {
            // No place in the text: upstream prints an impossible one.
            let _ = write!(out, "ERROR: <input>:-1:0: {}", issue.message);
            continue;
        }
        let pos = issue.pos.min(chars.len());
        let before = chars.get(..pos).unwrap_or(&[]);
        let line = before.iter().filter(|c| **c == '\n').count();
        let start = before.iter().rposition(|c| *c == '\n').map_or(0, |i| i + 1);
        let column = pos - start;
        let text: String = chars.iter().skip(start).take_while(|c| **c != '\n').collect();
        let _ = write!(
            out,
            "ERROR: <input>:{}:{}: {}\n | {}\n | {}^",
            line + 1,
            column + 1,
            issue.message,
            text.replace('\t', " "),
            ".".repeat(column)
        );
    }
    out
}
