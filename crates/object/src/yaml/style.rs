//! How a scalar may be written: the analysis that decides between plain, quoted and literal.

/// What a text permits. All of it follows from one pass over its characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Analysis {
    plain: bool,
    single_quoted: bool,
    literal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

/// The line breaks of YAML 1.1.
pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What upstream's writer shows as it is. Characters beyond the basic plane are always escaped.
pub(super) fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && c != '\u{feff}'
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

pub(super) fn analyze(text: &[char]) -> Analysis {
    let (Some(&first), Some(&last)) = (text.first(), text.last()) else {
        return Analysis { plain: true, single_quoted: true, literal: false };
    };
    let edge = |c: char| c == ' ' || is_break(c);
    let pair = |f: fn(char, char) -> bool| text.windows(2).any(|w| f(w[0], w[1]));
    let break_space = pair(|a, b| is_break(a) && b == ' ');
    let space_break = pair(|a, b| a == ' ' && is_break(b));
    let multiline = text.iter().any(|&c| is_break(c));
    // U+2028 and U+2029 are line breaks in YAML 1.1 and none in 1.2; escaped, every reader agrees on them.
    // (Upstream writes them as they are, for readers of 1.1 alone.)
    let special = text.iter().any(|&c| !is_printable(c) || matches!(c, '\u{2028}' | '\u{2029}'));
    Analysis {
        plain: !(edge(first) || edge(last) || multiline || space_break || special || has_indicator(text)),
        single_quoted: !(break_space || space_break || special),
        literal: last != ' ' && !space_break && !special,
    }
}

/// Whether the text holds characters that mean something in block context where they stand.
fn has_indicator(text: &[char]) -> bool {
    if text.starts_with(&['-', '-', '-']) || text.starts_with(&['.', '.', '.']) {
        return true;
    }
    text.iter().enumerate().any(|(i, &c)| {
        let before_blank = text.get(i + 1).is_none_or(|&next| is_blank(next));
        match c {
            '#' if i > 0 => is_blank(text[i - 1]) || is_break(text[i - 1]) || text[i - 1] == '\0',
            ':' => before_blank,
            '?' | '-' if i == 0 => before_blank,
            '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
            | '`' => i == 0,
            _ => false,
        }
    })
}

/// The style for a scalar that would like to have `wish`.
pub(super) fn choose(wish: Style, text: &[char], analysis: Analysis, simple_key: bool) -> Style {
    match wish {
        Style::Literal if analysis.literal && !simple_key => Style::Literal,
        Style::Plain if analysis.plain && !(text.is_empty() && simple_key) => Style::Plain,
        Style::Plain | Style::SingleQuoted if analysis.single_quoted => Style::SingleQuoted,
        _ => Style::DoubleQuoted,
    }
}
