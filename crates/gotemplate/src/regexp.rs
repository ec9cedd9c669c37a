//! Go's regular expressions for code outside templates: its syntax, refused with its words, matched by the regex crate.

use regex::bytes::{Regex, RegexBuilder};

use crate::sprig::syntax;

/// A pattern's program may not grow beyond this; `(\pL{1000}){1000}` would take the machine's memory.
pub(crate) const COMPILED_SIZE: usize = 2 << 20;

/// Compiles a pattern as `regexp.Compile` reads it. The error is what Go says.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = syntax::translate(pattern)?;
    let built = RegexBuilder::new(&translated).size_limit(COMPILED_SIZE).build();
    built.map_err(|_| format!("error parsing regexp: expression too large: `{pattern}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_gos() {
        let digits = compile(r"^\d+$").unwrap();
        assert!(digits.is_match(b"42") && !digits.is_match("٤٢".as_bytes()));
        assert!(compile(r"a{,3}").unwrap().is_match(b"a{,3}"));
        assert!(compile(r"\<b>").unwrap().is_match(b"a<b>c") && compile("[a<>]").unwrap().is_match(b"<"));
        assert!(!compile("<b>").unwrap().is_match(b"b"));
        let error = compile("a(b").err().unwrap();
        assert_eq!(error, "error parsing regexp: missing closing ): `a(b`");
        assert!(compile("(?=a)").is_err());
        assert!(compile(r"((\pL{1000}){1000}){1000}").is_err());
    }
}
