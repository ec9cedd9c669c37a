//! Letter case and words: `title`, `swapcase`, and the camel, snake and kebab forms of huandu/xstrings.

use super::args::text;
use crate::functions::{Native, Type, fixed};
use transom_go::unicode::{
    is_digit, is_letter, is_lower, is_number, is_punct, is_space, is_title, is_upper, to_lower, to_title,
    to_upper,
};
use transom_go::utf8::push_rune;
use transom_go::utf8::{decode_rune, runes};

const STR: &[Type] = &[Type::Str];

pub(super) const FUNCTIONS: &[Native] = &[
    fixed("upper", STR, |env, args| env.string(mapped(text(args, 0)?, to_upper))),
    fixed("lower", STR, |env, args| env.string(mapped(text(args, 0)?, to_lower))),
    fixed("title", STR, |env, args| {
        let mut before = ' ';
        let title = |rune: char| {
            let mapped = if is_separator(before) { to_title(rune) } else { rune };
            before = rune;
            mapped
        };
        env.string(mapped(text(args, 0)?, title))
    }),
    fixed("untitle", STR, |env, args| {
        let mut word_starts = true;
        let untitle = |rune: char| {
            if is_space(rune) {
                word_starts = true;
                return rune;
            }
            if std::mem::take(&mut word_starts) { to_lower(rune) } else { rune }
        };
        env.string(mapped(text(args, 0)?, untitle))
    }),
    fixed("initials", STR, |env, args| {
        let mut gap = true;
        let mut out = String::new();
        // goutils looks at bytes as if they were runes.
        for rune in text(args, 0)?.iter().map(|byte| char::from(*byte)) {
            if is_space(rune) {
                gap = true;
            } else if std::mem::take(&mut gap) {
                out.push(rune);
            }
        }
        env.string(out)
    }),
    fixed("swapcase", STR, |env, args| {
        let mut after_space = true;
        let swap = |rune: char| {
            if is_upper(rune) || is_title(rune) {
                after_space = false;
                to_lower(rune)
            } else if is_lower(rune) {
                if std::mem::take(&mut after_space) { to_title(rune) } else { to_upper(rune) }
            } else {
                after_space = is_space(rune);
                rune
            }
        };
        env.string(mapped(text(args, 0)?, swap))
    }),
    fixed("shuffle", STR, |env, args| {
        let mut shuffled: Vec<char> = runes(text(args, 0)?).map(|(_, rune, _)| rune).collect();
        for at in (1..shuffled.len()).rev() {
            let other = usize::try_from(env.random_below(at as u64 + 1)?).unwrap_or(0);
            shuffled.swap(at, other);
        }
        env.string(shuffled.into_iter().collect::<String>())
    }),
    fixed("snakecase", STR, |env, args| env.string(separated(text(args, 0)?, '_'))),
    fixed("kebabcase", STR, |env, args| env.string(separated(text(args, 0)?, '-'))),
    fixed("camelcase", STR, |env, args| env.string(pascal(text(args, 0)?))),
];

fn mapped(text: &[u8], mut map: impl FnMut(char) -> char) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for (_, rune, _) in runes(text) {
        push_rune(&mut out, map(rune));
    }
    out
}

fn is_separator(rune: char) -> bool {
    if rune.is_ascii() {
        return !rune.is_ascii_alphanumeric() && rune != '_';
    }
    !is_letter(rune) && !is_digit(rune) && is_space(rune)
}

fn is_connector(rune: char) -> bool {
    rune == '-' || rune == '_' || is_space(rune)
}

fn is_alphabet(rune: char) -> bool {
    is_letter(rune)
}

fn pascal(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut pending = runes(text).map(|(_, rune, _)| rune);
    let mut connector = None;
    let mut current = loop {
        match pending.next() {
            None => {
                // A text of connectors alone gets its last one twice.
                connector.into_iter().for_each(|rune| push_rune(&mut out, rune));
                return out;
            }
            Some(rune) if is_connector(rune) => {
                connector = Some(rune);
                push_rune(&mut out, rune);
            }
            Some(rune) => break rune,
        }
    };
    let mut first_upper = is_upper(current);
    current = to_upper(current);
    for next in pending {
        let before = std::mem::replace(&mut current, next);
        if is_connector(current) && is_connector(before) {
            push_rune(&mut out, before);
            continue;
        }
        if is_connector(before) {
            first_upper = is_upper(current);
            current = to_upper(current);
        } else {
            if first_upper {
                if is_upper(current) {
                    current = to_lower(current);
                } else {
                    first_upper = false;
                }
            }
            push_rune(&mut out, before);
        }
    }
    push_rune(&mut out, current);
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Invalid,
    Number,
    Upper,
    Alphabet,
    Connector,
    Punct,
    Other,
}

/// The next word of one class, and what follows it.
fn next_word(text: &[u8]) -> (Word, &[u8], &[u8]) {
    if text.is_empty() {
        return (Word::Invalid, text, text);
    }
    let (rune, mut end) = next_valid(text, '\u{FFFD}');
    if rune == '\u{FFFD}' {
        return (Word::Invalid, &text[..end], &text[end..]);
    }
    let run = |from: usize, belongs: &dyn Fn(char) -> bool| {
        let mut end = from;
        let mut last = rune;
        while end < text.len() {
            let (rune, size) = next_valid(&text[end..], last);
            if !belongs(rune) {
                break;
            }
            last = rune;
            end += size;
        }
        end
    };
    let word = if is_connector(rune) {
        end = run(end, &is_connector);
        Word::Connector
    } else if is_punct(rune) {
        end = run(end, &is_punct);
        Word::Punct
    } else if is_upper(rune) {
        end = upper_end(text, end, rune, &run);
        Word::Upper
    } else if is_alphabet(rune) {
        end = run(end, &|rune| is_alphabet(rune) && !is_upper(rune));
        Word::Alphabet
    } else if is_number(rune) {
        end = run(end, &is_number);
        Word::Number
    } else {
        end =
            run(end, &|rune| !(is_connector(rune) || is_alphabet(rune) || is_number(rune) || is_punct(rune)));
        Word::Other
    };
    (word, &text[..end], &text[end..])
}

/// Extends a word from a position over the runes that belong to it.
type Run<'a> = dyn Fn(usize, &dyn Fn(char) -> bool) -> usize + 'a;

/// `HTTPServer` is `HTTP` and `Server`: the last capital of a run belongs to the word it begins.
fn upper_end(text: &[u8], end: usize, first: char, run: &Run<'_>) -> usize {
    if end >= text.len() {
        return end;
    }
    let (second, _) = next_valid(&text[end..], first);
    if is_upper(second) {
        let stop = run(end, &is_upper);
        if stop < text.len() {
            let (after, _) = next_valid(&text[stop..], second);
            if is_alphabet(after) {
                let last = runes(&text[..stop]).last().map_or(0, |(_, _, width)| width);
                return stop - last;
            }
        }
        return stop;
    }
    if is_alphabet(second) { run(end, &|rune| is_alphabet(rune) && !is_upper(rune)) } else { end }
}

fn next_valid(text: &[u8], previous: char) -> (char, usize) {
    let mut size = 0;
    while size < text.len() {
        let (rune, width) = decode_rune(&text[size..]);
        size += width;
        if rune != '\u{FFFD}' {
            return (rune, size);
        }
    }
    (previous, size)
}

fn push_lower(out: &mut Vec<u8>, word: Word, text: &[u8], connector: char) {
    if word != Word::Upper && word != Word::Connector {
        out.extend_from_slice(text);
        return;
    }
    for (_, rune, _) in runes(text) {
        push_rune(out, if is_connector(rune) { connector } else { to_lower(rune) });
    }
}

fn separated(text: &[u8], connector: char) -> Vec<u8> {
    let mut out = Vec::new();
    if text.is_empty() {
        return out;
    }
    let joins = |word: Word| !matches!(word, Word::Connector | Word::Punct);
    let (mut word, mut piece, mut rest) = next_word(text);
    while !rest.is_empty() {
        if word != Word::Connector {
            push_lower(&mut out, word, piece, connector);
        }
        let (before, last) = (word, piece);
        (word, piece, rest) = next_word(rest);
        match before {
            Word::Number => {
                while matches!(word, Word::Alphabet | Word::Number) {
                    push_lower(&mut out, word, piece, connector);
                    (word, piece, rest) = next_word(rest);
                }
                if word != Word::Invalid && joins(word) {
                    push_rune(&mut out, connector);
                }
            }
            Word::Connector => push_lower(&mut out, before, last, connector),
            Word::Punct => {}
            _ if word != Word::Number => {
                if joins(word) {
                    push_rune(&mut out, connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                let digits = piece;
                (word, piece, rest) = next_word(rest);
                if word != Word::Alphabet {
                    push_lower(&mut out, Word::Number, digits, connector);
                    if joins(word) {
                        push_rune(&mut out, connector);
                    }
                    continue;
                }
                push_rune(&mut out, connector);
                push_lower(&mut out, Word::Number, digits, connector);
                while matches!(word, Word::Alphabet | Word::Number) {
                    push_lower(&mut out, word, piece, connector);
                    (word, piece, rest) = next_word(rest);
                }
                if word != Word::Invalid && joins(word) {
                    push_rune(&mut out, connector);
                }
            }
        }
    }
    push_lower(&mut out, word, piece, connector);
    out
}
