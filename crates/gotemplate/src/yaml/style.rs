//! How a string is written: plain, quoted or literal, decided by what it contains.

use transom_go::yaml::{analyze, is_break, reads_as_text};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// The style that yaml.v3 chooses.
pub(super) fn style(text: &str) -> Style {
    let found = analyze(text);
    if text.contains('\n') {
        let literal = !(found.trailing_space || found.space_break || found.special);
        return if literal { Style::Literal } else { Style::Double };
    }
    if !reads_as_text(text) {
        return Style::Double;
    }
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

pub(super) fn is_multiline(text: &str) -> bool {
    text.chars().any(is_break)
}
