//! Property names that are not CEL identifiers, and the identifiers that stand for them.

/// Words that the grammar sets aside: no identifiers, though they mean nothing yet.
pub(super) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether the grammar gives or reserves a meaning to the word.
pub(crate) fn is_keyword(name: &str) -> bool {
    matches!(name, "true" | "false" | "null" | "in") || RESERVED.contains(&name)
}

/// The identifier for a property name, or `None` when it has none.
///
/// `__` becomes `__underscores__`, `.` `__dot__`, `-` `__dash__`, `/` `__slash__`, and a keyword is wrapped in
/// double underscores.
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_keyword(name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '_' if chars.peek() == Some(&'_') => {
                chars.next();
                out.push_str("__underscores__");
            }
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            c if c.is_ascii_alphanumeric() || c == '_' => out.push(c),
            _ => return None,
        }
    }
    Some(out)
}

/// The property name that an identifier stands for, or `None` when it is not an escaped name.
pub fn unescape(identifier: &str) -> Option<String> {
    if !identifier.contains("__") {
        return Some(identifier.to_owned());
    }
    let mut out = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while let Some(start) = rest.find("__") {
        let (before, marked) = rest.split_at(start);
        out.push_str(before);
        // A sequence is two underscores, something without underscores, and two underscores.
        let inner = &marked[2..];
        let end = inner.find('_').unwrap_or(inner.len());
        let (word, after) = inner.split_at(end);
        let Some(after) = after.strip_prefix("__").filter(|_| !word.is_empty()) else {
            out.push('_');
            rest = &marked[1..];
            continue;
        };
        match word {
            "underscores" => out.push_str("__"),
            "dot" => out.push('.'),
            "dash" => out.push('-'),
            "slash" => out.push('/'),
            word if is_keyword(word) && identifier.len() == word.len() + 4 => out.push_str(word),
            _ => return None,
        }
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_identifiers() {
        for (name, identifier) in [
            ("a", "a"),
            ("a_b", "a_b"),
            ("a__b", "a__underscores__b"),
            ("a.b-c/d", "a__dot__b__dash__c__slash__d"),
            ("namespace", "__namespace__"),
            ("_", "_"),
            ("___", "__underscores___"),
        ] {
            assert_eq!(escape(name).as_deref(), Some(identifier), "{name}");
            assert_eq!(unescape(identifier).as_deref(), Some(name), "{identifier}");
        }
        for name in ["", "1a", "a b", "a$", "ü"] {
            assert_eq!(escape(name), None, "{name}");
        }
        for identifier in ["__illegal__", "a__if__", "x__dots__y"] {
            assert_eq!(unescape(identifier), None, "{identifier}");
        }
    }

    proptest! {
        #[test]
        fn escaping_is_undone(name in "[a-zA-Z_./-][a-zA-Z0-9_./-]{0,12}") {
            let escaped = escape(&name).unwrap();
            prop_assert_eq!(unescape(&escaped), Some(name));
        }
    }
}
