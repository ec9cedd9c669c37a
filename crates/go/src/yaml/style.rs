//! What a text contains that forbids writing it plain, in single quotes or literally, and how quotes are written.

/// What was found in a text. The two versions of yaml draw different conclusions from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Characters that mean something in block context where they stand.
    pub block_indicators: bool,
    /// Line breaks.
    pub line_breaks: bool,
    /// Characters that cannot be written as they are, tabs excepted.
    pub special: bool,
    /// Tabs.
    pub tabs: bool,
    /// A space at one of its ends.
    pub edge_space: bool,
    /// A line break at one of its ends.
    pub edge_break: bool,
    /// A space at its end.
    pub trailing_space: bool,
    /// A space after a line break.
    pub break_space: bool,
    /// A line break after a space.
    pub space_break: bool,
}

/// The line breaks of YAML 1.1.
pub fn is_break(rune: char) -> bool {
    matches!(rune, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What the writer shows as it is: nothing beyond the basic plane.
pub fn is_printable(rune: char) -> bool {
    matches!(rune, '\n' | ' '..='~' | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}') && rune != '\u{FEFF}'
}

/// Looks a text over once.
pub fn analyze(text: &str) -> Findings {
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

/// The text in single quotes.
pub fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The text in double quotes.
pub fn double_quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for rune in text.chars() {
        if is_printable(rune) && !is_break(rune) && rune != '"' && rune != '\\' {
            out.push(rune);
        } else {
            out.push_str(&escape(rune));
        }
    }
    out.push('"');
    out
}

/// A character as an escape inside double quotes.
pub fn escape(rune: char) -> String {
    let code = u32::from(rune);
    match rune {
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
    }
}
