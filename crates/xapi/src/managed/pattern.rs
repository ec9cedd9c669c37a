//! Go's `filepath.Match`, by which policies name the definitions that they activate. Its time is bounded by the product of both
//! lengths.

use std::iter::Peekable;
use std::str::Chars;

/// One character or one star of a pattern.
enum Element {
    Star,
    Any,
    Literal(char),
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Element {
    /// Whether it stands for this character. Like Go, a class can stand for a slash.
    fn stands_for(&self, c: char) -> bool {
        match self {
            Self::Star => false,
            Self::Any => c != '/',
            Self::Literal(literal) => *literal == c,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

/// The time is bounded by the product of both lengths: after a mismatch only the last star takes one more character.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let Some(elements) = parse(pattern) else { return false };
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut position) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while position < name.len() || at < elements.len() {
        match (elements.get(at), name.get(position)) {
            (Some(Element::Star), _) => {
                last_star = Some((at + 1, position));
                at += 1;
                continue;
            }
            (Some(element), Some(c)) if element.stands_for(*c) => {
                (at, position) = (at + 1, position + 1);
                continue;
            }
            _ => {}
        }
        match last_star {
            Some((after, taken)) if name.get(taken).is_some_and(|c| *c != '/') => {
                last_star = Some((after, taken + 1));
                (at, position) = (after, taken + 1);
            }
            _ => return false,
        }
    }
    true
}

/// The elements of a pattern, unless it is malformed.
fn parse(pattern: &str) -> Option<Vec<Element>> {
    let mut elements = Vec::new();
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        elements.push(match c {
            '*' => Element::Star,
            '?' => Element::Any,
            '\\' => Element::Literal(rest.next()?),
            '[' => class(&mut rest)?,
            literal => Element::Literal(literal),
        });
    }
    Some(elements)
}

/// A class, after its opening bracket. It must not be empty.
fn class(rest: &mut Peekable<Chars<'_>>) -> Option<Element> {
    let negated = rest.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    while ranges.is_empty() || rest.next_if_eq(&']').is_none() {
        let low = bound(rest)?;
        let high = if rest.next_if_eq(&'-').is_some() { bound(rest)? } else { low };
        ranges.push((low, high));
    }
    Some(Element::Class { negated, ranges })
}

/// A character of a class; a dash and a bracket only after a backslash.
fn bound(rest: &mut Peekable<Chars<'_>>) -> Option<char> {
    match rest.next()? {
        '\\' => rest.next(),
        '-' | ']' => None,
        c => Some(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of Go's own `TestMatch` that concern more than plain text.
    #[test]
    fn patterns_match_as_in_go() {
        for (pattern, name, expected) in [
            ("abc", "abc", true),
            ("*", "abc", true),
            ("*c", "abc", true),
            ("a*", "a", true),
            ("a*", "ab/c", false),
            ("a*/b", "abc/b", true),
            ("a*/b", "a/c/b", false),
            ("a*b*c*d*e*/f", "axbxcxdxe/f", true),
            ("a*b*c*d*e*/f", "axbxcxdxexxx/f", true),
            ("a*b*c*d*e*/f", "axbxcxdxe/xxx/f", false),
            ("a*b?c*x", "abxbbxdbxebxczzx", true),
            ("a*b?c*x", "abxbbxdbxebxczzy", false),
            ("ab[c]", "abc", true),
            ("ab[b-d]", "abc", true),
            ("ab[e-g]", "abc", false),
            ("ab[^c]", "abc", false),
            ("ab[^e-g]", "abc", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "ab", false),
            ("a???b", "a☺b", false),
            ("a[^a]b", "a☺b", true),
            ("[a-ζ]*", "α", true),
            ("*[a-ζ]", "A", false),
            ("a?b", "a/b", false),
            ("a*b", "a/b", false),
            ("[\\]a]", "]", true),
            ("[\\-x]", "-", true),
            ("[x\\-]", "z", false),
            ("[]a]", "]", false),
            ("[-]", "-", false),
            ("[x-]", "x", false),
            ("[-x]", "x", false),
            ("[a-b-c]", "a", false),
            ("[", "a", false),
            ("[^bc", "a", false),
            ("a[", "a", false),
            ("\\", "a", false),
            ("*x", "xxx", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
