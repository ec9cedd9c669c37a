//! Package unicode: categories of runes and their simple case mappings. ASCII is decided without the tables.

use std::sync::LazyLock;

use regex::Regex;

macro_rules! class {
    ($(#[$doc:meta])* $name:ident, $table:ident, $pattern:literal, $ascii:expr) => {
        static $table: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(concat!("^", $pattern, "$")).ok());

        $(#[$doc])*
        pub fn $name(rune: char) -> bool {
            if rune.is_ascii() {
                let ascii: fn(char) -> bool = $ascii;
                return ascii(rune);
            }
            let mut buffer = [0; 4];
            $table.as_ref().is_some_and(|class| class.is_match(rune.encode_utf8(&mut buffer)))
        }
    };
}

class!(
    /// `unicode.IsLetter`: category L.
    is_letter, LETTER, r"\p{L}", |rune| rune.is_ascii_alphabetic());
class!(
    /// `unicode.IsDigit`: category Nd.
    is_digit, DIGIT, r"\p{Nd}", |rune| rune.is_ascii_digit());
class!(
    /// `unicode.IsNumber`: category N.
    is_number, NUMBER, r"\p{N}", |rune| rune.is_ascii_digit());
class!(
    /// `unicode.IsUpper`: category Lu.
    is_upper, UPPER, r"\p{Lu}", |rune| rune.is_ascii_uppercase());
class!(
    /// `unicode.IsLower`: category Ll.
    is_lower, LOWER, r"\p{Ll}", |rune| rune.is_ascii_lowercase());
class!(
    /// `unicode.IsTitle`: category Lt.
    is_title, TITLE, r"\p{Lt}", |_| false);
class!(
    /// `unicode.IsPunct`: category P.
    is_punct, PUNCT, r"\p{P}", |rune| rune.is_ascii_punctuation() && !"$+<=>^`|~".contains(rune));

/// `unicode.IsPrint` and `strconv.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub fn is_print(rune: char) -> bool {
    if rune.is_ascii() {
        return (' '..='~').contains(&rune);
    }
    // Rust escapes exactly what is not printable, except that it also escapes a combining mark that comes first;
    // hence the letter before it.
    let mut probe = *b"a\0\0\0\0";
    let end = 1 + rune.encode_utf8(&mut probe[1..]).len();
    std::str::from_utf8(&probe[..end]).is_ok_and(|probe| probe.escape_debug().count() == 2)
}

/// `unicode.IsSpace`.
pub fn is_space(rune: char) -> bool {
    matches!(rune, '\t' | '\n' | '\u{B}' | '\u{C}' | '\r' | ' ' | '\u{85}' | '\u{A0}')
        || (!rune.is_ascii() && rune.is_whitespace())
}

/// `unicode.ToUpper`. Single-rune mapping: a rune whose full mapping is longer maps to itself, as Go's simple case tables do.
pub fn to_upper(rune: char) -> char {
    let mut mapped = rune.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(upper), None) => upper,
        _ => rune,
    }
}

/// `unicode.ToLower`.
pub fn to_lower(rune: char) -> char {
    if rune == '\u{130}' {
        return 'i';
    }
    let mut mapped = rune.to_lowercase();
    match (mapped.next(), mapped.next()) {
        (Some(lower), None) => lower,
        _ => rune,
    }
}

/// `unicode.ToTitle`. Title case differs from upper case for the four digraph letters only.
pub fn to_title(rune: char) -> char {
    match rune {
        '\u{1C4}'..='\u{1C6}' => '\u{1C5}',
        '\u{1C7}'..='\u{1C9}' => '\u{1C8}',
        '\u{1CA}'..='\u{1CC}' => '\u{1CB}',
        '\u{1F1}'..='\u{1F3}' => '\u{1F2}',
        _ => to_upper(rune),
    }
}
