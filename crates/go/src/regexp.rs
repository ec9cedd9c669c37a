//! Regular expressions as Go's `regexp` (RE2) reads them, on the `regex` crate.
//!
//! Both have the same semantics and linear time, but not the same syntax: `\d`, `\w`, `\s` and `\b` are ASCII in
//! Go; a `{` that starts no repetition is a literal; inside a class `[`, `&&`, `--` and `~~` mean nothing; `\Q…\E`
//! quotes. [`compile`] rewrites the one into the other and refuses what Go refuses.

use regex::{Regex, RegexBuilder};

/// The compiled program may take this many bytes. A pattern such as `(a{1000}){1000}` is refused, as Go does.
const SIZE_LIMIT: usize = 4 << 20;

/// Go's limit on a counted repetition.
const MAX_REPEAT: u32 = 1000;

/// Compiles a pattern in Go syntax. The error is worded as Go words such errors.
pub fn compile(source: &str) -> Result<Regex, String> {
    let translated = Translator::new(source).run().map_err(|e| format!("error parsing regexp: {e}"))?;
    RegexBuilder::new(&translated).size_limit(SIZE_LIMIT).build().map_err(|e| {
        let text = e.to_string();
        let reason = text.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
        let reason = match reason {
            "unclosed group" => "missing closing )",
            "unopened group" => "unexpected )",
            other => other,
        };
        format!("error parsing regexp: {reason}: `{source}`")
    })
}

struct Translator<'a> {
    rest: &'a str,
    out: String,
    last: Last,
}

/// What was written last, as far as a repetition operator after it cares.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Operand,
    Repetition,
}

impl<'a> Translator<'a> {
    fn new(source: &'a str) -> Self {
        Self { rest: source, out: String::with_capacity(source.len() + 8), last: Last::Nothing }
    }

    fn run(mut self) -> Result<String, String> {
        while let Some(c) = self.rest.chars().next() {
            let repetition = match c {
                '*' | '+' | '?' => Some(1),
                '{' => counted(self.rest)?,
                _ => None,
            };
            if let Some(len) = repetition {
                self.repetition(len)?;
                continue;
            }
            self.last = if matches!(c, '(' | '|') { Last::Nothing } else { Last::Operand };
            match c {
                '\\' => self.escape(false)?,
                '[' => self.class()?,
                '(' => self.group()?,
                '{' | '}' | ']' => {
                    self.out.push('\\');
                    self.take(1);
                }
                _ => self.take(c.len_utf8()),
            }
        }
        Ok(self.out)
    }

    /// Copies the next `len` bytes.
    fn take(&mut self, len: usize) {
        let (head, tail) = self.rest.split_at(len);
        self.out.push_str(head);
        self.rest = tail;
    }

    fn skip(&mut self, len: usize) {
        self.rest = &self.rest[len..];
    }

    fn repetition(&mut self, len: usize) -> Result<(), String> {
        let lazy = usize::from(self.rest[len..].starts_with('?'));
        let operator = &self.rest[..len + lazy];
        match self.last {
            Last::Nothing => return Err(format!("missing argument to repetition operator: `{operator}`")),
            Last::Repetition => return Err(format!("invalid nested repetition operator: `{operator}`")),
            Last::Operand => {}
        }
        self.take(len + lazy);
        self.last = Last::Repetition;
        Ok(())
    }

    /// `(?…)`: Go knows the flags `imsU` and named groups; look-around and the rest are errors.
    fn group(&mut self) -> Result<(), String> {
        let Some(after) = self.rest.strip_prefix("(?") else {
            self.take(1);
            return Ok(());
        };
        if let Some(name) = after.strip_prefix("P<").or_else(|| after.strip_prefix('<')) {
            let end = name.find('>').unwrap_or(0);
            let valid = end > 0 && name[..end].bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if !valid {
                return Err(format!("invalid named capture: `{}`", self.rest));
            }
            let len = self.rest.len() - name.len() + end + 1;
            self.take(len);
            return Ok(());
        }
        let end = after.find([':', ')']).unwrap_or(after.len());
        if after[..end].is_empty() && !after.starts_with(':')
            || after[..end].contains(|c| !"imsU-".contains(c))
        {
            let start: String = self.rest.chars().take(3).collect();
            return Err(format!("invalid or unsupported Perl syntax: `{start}`"));
        }
        self.take(2 + end);
        Ok(())
    }

    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let Some(c) = self.rest[1..].chars().next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        let class = |body: &str, negated: bool| match (in_class, negated) {
            (true, false) => body.to_owned(),
            (_, false) => format!("[{body}]"),
            (_, true) => format!("[^{body}]"),
        };
        let replacement = match c {
            'd' => class("0-9", false),
            'D' => class("0-9", true),
            'w' => class("0-9A-Za-z_", false),
            'W' => class("0-9A-Za-z_", true),
            's' => class(r"\t\n\f\r ", false),
            'S' => class(r"\t\n\f\r ", true),
            'b' if !in_class => r"(?-u:\b)".to_owned(),
            'B' if !in_class => r"(?-u:\B)".to_owned(),
            'A' | 'z' if !in_class => format!("\\{c}"),
            'a' | 'f' | 't' | 'n' | 'r' | 'v' => format!("\\{c}"),
            'Q' if !in_class => return self.quoted(),
            'p' | 'P' | 'x' => {
                let braced = self.rest[2..].starts_with('{').then(|| self.rest.find('}')).flatten();
                self.take(braced.map_or(2, |end| end + 1));
                return Ok(());
            }
            '0'..='7' => return self.octal(),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => regex::escape(c.encode_utf8(&mut [0; 4])),
            c => return Err(format!("invalid escape sequence: `\\{c}`")),
        };
        self.out.push_str(&replacement);
        self.skip(1 + c.len_utf8());
        Ok(())
    }

    /// `\123` or `\0`: a single digit other than zero would be a back-reference, which Go refuses.
    fn octal(&mut self) -> Result<(), String> {
        let digits = &self.rest[1..];
        let len = digits.bytes().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
        let code = u32::from_str_radix(&digits[..len], 8).ok().and_then(char::from_u32);
        match code {
            Some(c) if len > 1 || c == '\0' => {
                self.out.push_str(&format!("\\x{{{:x}}}", u32::from(c)));
                self.skip(1 + len);
                Ok(())
            }
            _ => Err(format!("invalid escape sequence: `\\{}`", &digits[..len])),
        }
    }

    fn quoted(&mut self) -> Result<(), String> {
        let body = &self.rest[2..];
        let end = body.find(r"\E").unwrap_or(body.len());
        self.out.push_str(&regex::escape(&body[..end]));
        self.rest = body[end..].strip_prefix(r"\E").unwrap_or_default();
        Ok(())
    }

    fn class(&mut self) -> Result<(), String> {
        let start = self.rest;
        let missing = || format!("missing closing ]: `{start}`");
        self.take(1);
        if self.rest.starts_with('^') {
            self.take(1);
        }
        let mut first = true;
        // Whether a dash would make a range of what was written last.
        let mut low_end = false;
        loop {
            let c = self.rest.chars().next().ok_or_else(missing)?;
            let ends_range = low_end && c == '-' && !self.rest.starts_with("-]");
            match c {
                ']' if !first => {
                    self.take(1);
                    return Ok(());
                }
                '[' if self.rest.starts_with("[:") && self.rest.contains(":]") => {
                    let len = self.rest.find(":]").unwrap_or_default() + 2;
                    self.take(len);
                }
                '-' if ends_range => {
                    self.take(1);
                    self.class_literal(self.rest.chars().next().ok_or_else(missing)?)?;
                }
                _ => self.class_literal(c)?,
            }
            low_end = !ends_range && c != '[';
            first = false;
        }
    }

    /// One character of a class, with an escape where the crate would see an operator.
    fn class_literal(&mut self, c: char) -> Result<(), String> {
        match c {
            '\\' => self.escape(true)?,
            ']' | '[' | '&' | '~' | '-' | '^' => {
                self.out.push('\\');
                self.take(1);
            }
            _ => self.take(c.len_utf8()),
        }
        Ok(())
    }
}

/// The length of a counted repetition at the start of `text`; `None` when the brace is a literal.
fn counted(text: &str) -> Result<Option<usize>, String> {
    let Some(end) = text.find('}') else { return Ok(None) };
    let mut bounds = text[1..end].splitn(2, ',');
    let (low, high) = (bounds.next().unwrap_or_default(), bounds.next());
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(low) || high.is_some_and(|h| !h.is_empty() && !digits(h)) {
        return Ok(None);
    }
    let parse = |s: &str| s.parse::<u32>().unwrap_or(u32::MAX);
    let (low, high) = (parse(low), high.filter(|h| !h.is_empty()).map_or(parse(low), parse));
    if low > MAX_REPEAT || high > MAX_REPEAT || low > high {
        return Err(format!("invalid repeat count: `{}`", &text[..=end]));
    }
    Ok(Some(end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        compile(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}")).is_match(text)
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
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }
}
