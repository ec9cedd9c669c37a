//! Changes to the text of a template.

use super::Dice;

/// The text with a few places changed: mostly as people change it, by lines and words.
pub(super) fn mutated(dice: &mut Dice, text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..=dice.below(2) {
        text = match dice.below(10) {
            0..3 => with_lines_changed(dice, &text),
            3..8 => with_word_replaced(dice, &text),
            _ => with_letters_changed(dice, &text),
        };
    }
    text
}

/// One line is taken out, doubled, or moved.
fn with_lines_changed(dice: &mut Dice, text: &str) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at = dice.below(lines.len());
    let line = if dice.percent(30) { lines.get(at).copied().unwrap_or_default() } else { lines.remove(at) };
    if dice.percent(60) {
        lines.insert(dice.below(lines.len() + 1), line);
    }
    lines.concat()
}

/// A word becomes another word of the text, or one that often stands there.
fn with_word_replaced(dice: &mut Dice, text: &str) -> String {
    const WORDS: [&str; 36] = [
        "spec",
        "status",
        "metadata",
        "missing",
        "0",
        "1",
        "-1",
        "true",
        "nil",
        "quote",
        "squote",
        "toYaml",
        "toJson",
        "int",
        "toString",
        "default",
        "len",
        "upper",
        "trim",
        "list",
        "dict",
        "eq",
        "ne",
        "and",
        "or",
        "not",
        "if",
        "with",
        "range",
        "index",
        "first",
        "last",
        "sortAlpha",
        "fromYaml",
        "b64enc",
        "kindOf",
    ];
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words: Vec<&str> = text.split(|letter| !is_word(letter)).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return text.to_owned();
    }
    let word = words[dice.below(words.len())];
    let other = if dice.percent(50) { words[dice.below(words.len())] } else { dice.pick(&WORDS) };
    let places: Vec<usize> = text.match_indices(word).map(|(at, _)| at).collect();
    let at = places[dice.below(places.len())];
    format!("{}{other}{}", &text[..at], &text[at + word.len()..])
}

/// A few letters are taken out, doubled, or put in.
fn with_letters_changed(dice: &mut Dice, text: &str) -> String {
    const PIECES: [&str; 24] = [
        " ",
        "\n",
        "  ",
        ":",
        "- ",
        "{{",
        "}}",
        "{{-",
        "-}}",
        "\"",
        "'",
        "| ",
        "| quote ",
        "| toYaml ",
        "| int ",
        "{{ end }}",
        "{{ else }}",
        "---\n",
        "nil ",
        ".x",
        "$",
        "(",
        ")",
        "| nindent 2 ",
    ];
    let mut text: Vec<char> = text.chars().collect();
    let at = dice.below(text.len() + 1);
    let to = (at + dice.below(6)).min(text.len());
    match dice.below(4) {
        0 => drop(text.drain(at..to)),
        1 => {
            let again: Vec<char> = text[at..to].to_vec();
            text.splice(at..at, again);
        }
        _ => drop(text.splice(at..at, dice.pick(&PIECES).chars())),
    }
    text.into_iter().collect()
}
