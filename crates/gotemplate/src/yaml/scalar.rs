//! How a string is written: plain, quoted or literal, decided by what it contains.

use super::resolve::{Resolved, is_old_form, resolve};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// What a style must not be used with.
#[derive(Default)]
struct Findings {
    block_indicators: bool,
    line_breaks: bool,
    special: bool,
    tabs: bool,
    edge_space: bool,
    edge_break: bool,
    trailing_space: bool,
    break_space: bool,
    space_break: bool,
}

pub fn style(text: &str) -> Style {
    let plain = matches!(resolve(text), Resolved::Text) && !is_old_form(text);
    let wanted = if text.contains('\n') {
        Style::Literal
    } else if plain {
        Style::Plain
    } else {
        Style::Double
    };
    let found = analyze(text);
    match wanted {
        Style::Plain => {
            let bad_plain = found.edge_space
                || found.edge_break
                || found.break_space
                || found.space_break
                || found.tabs
                || found.special
                || found.line_breaks
                || found.block_indicators;
            if !bad_plain {
                Style::Plain
            } else if found.break_space || found.space_break || found.tabs || found.special {
                Style::Double
            } else {
                Style::Single
            }
        }
        Style::Literal if found.trailing_space || found.space_break || found.special => Style::Double,
        other => other,
    }
}

pub fn is_multiline(text: &str) -> bool {
    text.chars().any(is_break)
}

fn is_break(rune: char) -> bool {
    matches!(rune, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Printable to yaml.v3, for which nothing beyond the basic plane is.
fn is_printable(rune: char) -> bool {
    matches!(rune, '\n' | ' '..='~' | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}') && rune != '\u{FEFF}'
}

fn analyze(text: &str) -> Findings {
    let mut found = Findings {
        block_indicators: text.starts_with("---") || text.starts_with("..."),
        ..Findings::default()
    };
    let mut after_blank = true;
    let (mut after_space, mut after_break) = (false, false);
    let mut runes = text.char_indices().peekable();
    while let Some((at, rune)) = runes.next() {
        let next = runes.peek().map(|(_, rune)| *rune);
        let before_blank = next.is_none_or(|rune| rune == ' ' || rune == '\t');
        let last = next.is_none();
        found.block_indicators |= match rune {
            '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
            | '`'
                if at == 0 =>
            {
                true
            }
            '?' | '-' if at == 0 => before_blank,
            ':' => before_blank,
            '#' => after_blank,
            _ => false,
        };
        if rune == '\t' {
            found.tabs = true;
        } else if !is_printable(rune) {
            found.special = true;
        }
        if rune == ' ' {
            found.edge_space |= at == 0 || last;
            found.trailing_space |= last;
            found.break_space |= after_break;
        } else if is_break(rune) {
            found.line_breaks = true;
            found.edge_break |= at == 0 || last;
            found.space_break |= after_space;
        }
        after_space = rune == ' ';
        after_break = is_break(rune);
        after_blank = matches!(rune, ' ' | '\t' | '\0') || is_break(rune);
    }
    found
}

pub fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

pub fn double_quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for rune in text.chars() {
        if is_printable(rune) && !is_break(rune) && rune != '"' && rune != '\\' {
            out.push(rune);
            continue;
        }
        let code = u32::from(rune);
        let escape = match rune {
            '\0' => "\\0".to_owned(),
            '\u{7}' => "\\a".to_owned(),
            '\u{8}' => "\\b".to_owned(),
            '\t' => "\\t".to_owned(),
            '\n' => "\\n".to_owned(),
            '\u{B}' => "\\v".to_owned(),
            '\u{C}' => "\\f".to_owned(),
            '\r' => "\\r".to_owned(),
            '\u{1B}' => "\\e".to_owned(),
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            '\u{85}' => "\\N".to_owned(),
            '\u{A0}' => "\\_".to_owned(),
            '\u{2028}' => "\\L".to_owned(),
            '\u{2029}' => "\\P".to_owned(),
            _ if code <= 0xFF => format!("\\x{code:02X}"),
            _ if code <= 0xFFFF => format!("\\u{code:04X}"),
            _ => format!("\\U{code:08X}"),
        };
        out.push_str(&escape);
    }
    out.push('"');
    out
}
