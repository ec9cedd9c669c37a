//! What is wrong in a template, for the person who wrote it: the original's message, the line with a caret below the
//! place, and what was found there.

use transom_gotemplate::{Cause, Error};

use super::source::Source;

/// How much of a long line is shown, and how much of that before the place.
const WIDTH: usize = 120;
const BEFORE: usize = 60;

/// The error with the line it is about.
pub fn show(error: &Error, source: &Source) -> String {
    let mut shown = error.to_string();
    let line = error.line;
    let Some(text) = line.checked_sub(1).and_then(|index| source.text.split('\n').nth(index)) else {
        return shown;
    };
    shown.push('\n');
    if let Some((part, line)) = source.part(line) {
        let column = error.column.map(|column| format!(":{column}")).unwrap_or_default();
        shown.push_str(&format!("in {part}:{line}{column}\n"));
    }
    shown.push_str(&excerpt(text, line, error.column, &explain(&error.cause)));
    shown
}

/// One line of a text under its number, with a caret and a remark below a byte of it.
pub fn excerpt(text: &str, line: usize, column: Option<usize>, remark: &str) -> String {
    let text = text.trim_end();
    let column = column.map(|column| boundary(text, column));
    let start = column.map_or(0, |column| boundary(text, column.saturating_sub(BEFORE)));
    let start = if column.is_some_and(|column| column < WIDTH) { 0 } else { start };
    let end = boundary(text, start + WIDTH);
    let (head, tail) = (if start > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    let mut shown = format!("  {number} | {head}{}{tail}", &text[start..end]);
    if let Some(column) = column.filter(|column| (start..=end).contains(column)) {
        // A tab stays one, so that the caret stands below its place whatever a tab is wide.
        let blank = |letter: char| if letter == '\t' { '\t' } else { ' ' };
        let padding: String = head.chars().chain(text[start..column].chars()).map(blank).collect();
        shown.push_str(&format!("\n  {margin} | {padding}^"));
        if !remark.is_empty() {
            shown.push(' ');
            shown.push_str(remark);
        }
    } else if !remark.is_empty() {
        shown.push_str(&format!("\n  {margin} | {remark}"));
    }
    shown
}

/// The last place at or before a byte where a letter begins.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

/// What was found where something else was needed.
fn explain(cause: &Cause) -> String {
    match cause {
        Cause::NilField { field } => format!("what should have the field {field} is null"),
        Cause::NoField { field, type_name } => format!("a value of type {type_name} has no field {field}"),
        Cause::NoKey { key } => format!("there is no key {key} here, and missingkey=error is set"),
        Cause::WrongType { expected, found: None } => {
            format!("there is no value here, but a {expected} is needed")
        }
        Cause::WrongType { expected, found: Some(found) } => {
            format!("this is a {found}, but a {expected} is needed")
        }
        Cause::Function { name, .. } => format!("{name} failed"),
        Cause::Limit(_) => "a template may not do more than that in one rendering".to_owned(),
        Cause::Syntax | Cause::Other => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_below_the_place() {
        assert_eq!(excerpt("a: {{ .b }}", 7, Some(6), "null"), "  7 | a: {{ .b }}\n    |       ^ null");
        assert_eq!(excerpt("\té: x", 10, Some(3), ""), "  10 | \té: x\n     | \t ^");
        assert_eq!(excerpt("a", 1, None, "odd"), "  1 | a\n    | odd");
        assert_eq!(excerpt("", 1, Some(5), ""), "  1 | \n    | ^");
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let long = format!("{}x{}", "é".repeat(200), "ü".repeat(200));
        let shown = excerpt(&long, 1, Some(400), "here");
        let (line, caret) = shown.split_once('\n').unwrap();
        let place = line.chars().position(|letter| letter == 'x').unwrap();
        assert_eq!(caret.chars().position(|letter| letter == '^').unwrap(), place, "{shown}");
        assert!(line.chars().count() < 140, "{shown}");
    }
}
