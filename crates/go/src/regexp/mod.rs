//! Package regexp: RE2's syntax, matched by the `regex` crate.
//!
//! Both match in linear time and by the same rules, but they read patterns differently: to Go `\d`, `\w`, `\s` and `\b`
//! are ASCII; a bracket or `&&` inside a class is literal; a brace that is not a repetition is literal; repeating a
//! repetition is an error; `\Q…\E` quotes. Patterns are rewritten, and what Go refuses is refused with its words.

mod syntax;

use std::fmt;

/// What compiling a pattern may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The size of the compiled program. Go bounds it too: `(\pL{1000}){1000}` would take the machine's memory.
    pub program_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { program_bytes: 4 << 20 }
    }
}

/// Why a pattern is refused: Go's `syntax.Error`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: &'static str,
    expression: String,
}

impl Error {
    fn new(code: &'static str, expression: &str) -> Self {
        Error { code, expression: expression.to_owned() }
    }

    /// What is wrong, without the expression: Go's `syntax.ErrorCode`.
    pub fn code(&self) -> &'static str {
        self.code
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "error parsing regexp: {}: `{}`", self.code, self.expression)
    }
}

impl std::error::Error for Error {}

/// `regexp.Compile`, to match text.
pub fn compile(pattern: &str, limits: Limits) -> Result<regex::Regex, Error> {
    let translated = syntax::translate(pattern)?;
    let built = regex::RegexBuilder::new(&translated).size_limit(limits.program_bytes).build();
    built.map_err(|_| Error::new("expression too large", pattern))
}

/// `regexp.Compile`, to match bytes. Unlike in Go, a byte that is not part of a character matches nothing: callers that must
/// match as Go does replace such bytes by U+FFFD first.
pub fn compile_bytes(pattern: &str, limits: Limits) -> Result<regex::bytes::Regex, Error> {
    let translated = syntax::translate(pattern)?;
    let built = regex::bytes::RegexBuilder::new(&translated).size_limit(limits.program_bytes).build();
    built.map_err(|_| Error::new("expression too large", pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        compile(pattern, Limits::default()).unwrap_or_else(|e| panic!("{pattern}: {e}")).is_match(text)
    }

    #[test]
    fn perl_classes_are_ascii() {
        assert!(matches(r"^\d+$", "42") && !matches(r"^\d+$", "٤٢"));
        assert!(matches(r"^\w+$", "a_1") && !matches(r"^\w+$", "é"));
        assert!(matches(r"^[\w.-]+$", "a.b-c") && !matches(r"^[\w.-]+$", "é"));
        assert!(matches(r"^[^\s]$", "x") && !matches(r"^\S$", " "));
        assert!(matches(r"^[\D]$", "x") && !matches(r"^[\D]$", "1"));
        assert!(matches(r"\bfoo\b", "a foo b"));
        assert!(matches(r"^.$", "é") && matches(r"^\p{L}$", "é"));
    }

    #[test]
    fn literals_that_the_crate_would_read_otherwise() {
        for (pattern, text) in [
            ("^{{.+}}$", "{{x}}"),
            ("^a{$", "a{"),
            ("^a{,2}$", "a{,2}"),
            ("^[[]x$", "[x"),
            ("^[a&&b]+$", "a&b"),
            ("^[+--]+$", "+,-"),
            ("^[a-z-]+$", "a-z"),
            ("^[]a]+$", "]a"),
            (r"^\Qa.b\E$", "a.b"),
            (r"^[[:alpha:]]+$", "ab"),
            (r"^\/\-\#\ $", "/-# "),
            (r"^\<\>$", "<>"),
            (r"^\101\0$", "A\0"),
            ("^[~]$", "~"),
        ] {
            assert!(matches(pattern, text), "{pattern} should match {text:?}");
        }
        assert!(!matches("^[a&&b]$", "c"));
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for pattern in [
            "(", "a**", "a{1001}", "a{2,1}", "(?=a)", "(?x)a", "(?<!a)b", r"\1", r"\y", "[a", "*", r"a\",
            "(?P<a", "[z-a]",
        ] {
            assert!(compile(pattern, Limits::default()).is_err(), "{pattern}");
        }
    }

    #[test]
    fn bytes_are_matched_as_text_is() {
        let bytes = |pattern: &str| compile_bytes(pattern, Limits::default()).unwrap();
        let digits = bytes(r"^\d+$");
        assert!(digits.is_match(b"42") && !digits.is_match("٤٢".as_bytes()));
        assert!(bytes(r"a{,3}").is_match(b"a{,3}"));
        assert!(bytes(r"\<b>").is_match(b"a<b>c") && bytes("[a<>]").is_match(b"<"));
        assert!(!bytes("<b>").is_match(b"b"));
    }

    #[test]
    fn errors_are_worded_as_gos() {
        let error = |pattern: &str| compile(pattern, Limits::default()).unwrap_err().to_string();
        for (pattern, want) in [
            (")", "unexpected ): `)`"),
            ("(", "missing closing ): `(`"),
            ("a(b", "missing closing ): `a(b`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("[a", "missing closing ]: `[a`"),
            (r"a\", "trailing backslash at end of expression: ``"),
            (r"\y", r"invalid escape sequence: `\y`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            (r"((\pL{1000}){1000}){1000}", r"expression too large: `((\pL{1000}){1000}){1000}`"),
        ] {
            assert_eq!(error(pattern), format!("error parsing regexp: {want}"));
        }
    }
}
