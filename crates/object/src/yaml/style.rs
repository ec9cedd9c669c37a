//! How a scalar may be written: plain, quoted or literal.

use transom_go::yaml;

/// What a text permits.
#[derive(Clone, Copy, Debug)]
struct Analysis {
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

fn analyze(text: &str) -> Analysis {
    if text.is_empty() {
        return Analysis { plain: true, single_quoted: true, literal: false };
    }
    let found = yaml::analyze(text);
    // U+2028 and U+2029 are line breaks in YAML 1.1 and not in 1.2; escaped, every reader agrees on them.
    // (Upstream writes them as they are, for readers of 1.1 alone.)
    let special = found.special || found.tabs || text.contains(['\u{2028}', '\u{2029}']);
    let edge = found.edge_space || found.edge_break;
    Analysis {
        plain: !(edge || found.line_breaks || found.space_break || special || found.block_indicators),
        single_quoted: !(found.break_space || found.space_break || special),
        literal: !(found.trailing_space || found.space_break || special),
    }
}

/// The style for a scalar whose preferred style is `wish`.
pub(super) fn choose(wish: Style, text: &str, simple_key: bool) -> Style {
    let analysis = analyze(text);
    match wish {
        Style::Literal if analysis.literal && !simple_key => Style::Literal,
        Style::Plain if analysis.plain && !(text.is_empty() && simple_key) => Style::Plain,
        Style::Plain | Style::SingleQuoted if analysis.single_quoted => Style::SingleQuoted,
        _ => Style::DoubleQuoted,
    }
}
