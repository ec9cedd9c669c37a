//! What is wrong in a template, for the person who wrote it: the original's message, the line with a caret below the
//! position, and what was found there.

use transom_gotemplate::{Cause, Error};

use super::source::Source;

/// How much of a long line is shown, and how much of that before the place.
const EXCERPT_BYTES: usize = 120;
const EXCERPT_BYTES_BEFORE: usize = 60;

/// The data of a template that is not there in every reconcile.
pub(super) struct Absent {
    /// Nothing has been composed yet.
    pub observed_resources: bool,
}

/// The error with the line it is about.
pub(super) fn show(error: &Error, source: &Source, absent: &Absent) -> String {
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
    let place = error.column.map(|column| place(text, column, &error.cause));
    shown.push_str(&excerpt(text, line, place, &explain(&error.cause)));
    let depends_on_data = !matches!(error.cause, Cause::Syntax | Cause::Limit(_));
    if absent.observed_resources && depends_on_data && text.contains(OBSERVED) {
        shown.push_str(&format!(
            "\n  {} = {OBSERVED} is not there until something has been composed; write (default dict {OBSERVED})",
            " ".repeat(line.to_string().len())
        ));
    }
    shown
}

/// What a template finds the resources under that exist already.
const OBSERVED: &str = ".observed.resources";

/// Where on a line to point: the engine reports where a chain of fields begins, and the cause which of them failed.
fn place(text: &str, column: usize, cause: &Cause) -> usize {
    let (Cause::NilField { field } | Cause::NoField { field, .. } | Cause::NoKey { key: field }) = cause
    else {
        return column;
    };
    let field = format!(".{field}");
    let found = text.get(column..).and_then(|rest| {
        rest.match_indices(&field).find(|(at, _)| {
            let next = rest[at + field.len()..].chars().next();
            !next.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
        })
    });
    found.map_or(column, |(at, _)| column + at)
}

/// A message short enough for events and conditions: the middle of a longer one is left out.
pub(super) fn bounded(message: String) -> String {
    const MAX_MESSAGE_BYTES: usize = 8 << 10;
    const KEPT_END_BYTES: usize = 2 << 10;
    if message.len() <= MAX_MESSAGE_BYTES {
        return message;
    }
    let head = boundary(&message, MAX_MESSAGE_BYTES - KEPT_END_BYTES);
    let tail = boundary(&message, message.len() - KEPT_END_BYTES);
    format!("{} … {}", &message[..head], &message[tail..])
}

/// One line of a text under its number, with a caret and a remark below a byte of it.
pub(super) fn excerpt(text: &str, line: usize, column: Option<usize>, remark: &str) -> String {
    let text = text.trim_end();
    let column = column.map(|column| boundary(text, column));
    let start = column.map_or(0, |column| boundary(text, column.saturating_sub(EXCERPT_BYTES_BEFORE)));
    let start = if column.is_some_and(|column| column < EXCERPT_BYTES) { 0 } else { start };
    let end = boundary(text, start + EXCERPT_BYTES);
    let (head, tail) = (if start > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    let mut shown = format!("  {number} | {head}{}{tail}", &text[start..end]);
    if let Some(column) = column.filter(|column| (start..=end).contains(column)) {
        // A tab stays one, so that the caret is below its character at any width of tabs.
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
    fn the_field_that_failed_is_pointed_at() {
        let cause = Cause::NilField { field: "b".to_owned() };
        assert_eq!(place("{{ .bb.a.b }}", 3, &cause), 8);
        assert_eq!(place("{{ $x.b }}", 5, &cause), 5);
        assert_eq!(place("{{ .a }}", 3, &cause), 3);
        assert_eq!(place("x", 9, &cause), 9);
        assert_eq!(place("{{ .b }}", 1, &Cause::Other), 1);
    }

    #[test]
    fn the_middle_of_a_long_message_is_left_out() {
        let short = "é".repeat(4096);
        assert_eq!(bounded(short.clone()), short);
        let bounded = bounded(format!("begin{}end", "é".repeat(100_000)));
        assert!(bounded.len() < 8300 && bounded.starts_with("begin") && bounded.ends_with("end"));
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
