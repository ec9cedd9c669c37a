//! Go's regular expression syntax, rewritten for the regex crate.

use super::Error;

/// Repetitions larger than this are refused.
const MAX_REPEATS: u32 = 1000;

struct Translator<'a> {
    pattern: &'a str,
    at: usize,
    out: String,
    /// Starts of open groups.
    groups: Vec<usize>,
    /// Whether something precedes that a repetition can apply to.
    repeatable: bool,
    /// Where the repetition just read starts, if one was.
    repeated: Option<usize>,
}

/// The pattern in the syntax of the regex crate.
pub(super) fn translate(pattern: &str) -> Result<String, Error> {
    let mut translator = Translator {
        pattern,
        at: 0,
        out: String::new(),
        groups: Vec::new(),
        repeatable: false,
        repeated: None,
    };
    while translator.at < pattern.len() {
        translator.step()?;
    }
    if !translator.groups.is_empty() {
        return problem("missing closing )", pattern);
    }
    Ok(translator.out)
}

fn problem<T>(code: &'static str, part: &str) -> Result<T, Error> {
    Err(Error::new(code, part))
}

/// Writes a literal so that no crate syntax can arise from it, inside of a class or not.
fn push_literal(out: &mut String, rune: char) {
    // To the crate `\<` and `\>` are the edges of words.
    if rune.is_ascii_punctuation() && !matches!(rune, '<' | '>') {
        out.push('\\');
    }
    out.push(rune);
}

impl Translator<'_> {
    fn rest(&self) -> &str {
        &self.pattern[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn step(&mut self) -> Result<(), Error> {
        let Some(rune) = self.peek() else { return Ok(()) };
        match rune {
            '(' => return self.open(),
            ')' => {
                if self.groups.pop().is_none() {
                    return problem("unexpected )", self.pattern);
                }
                self.out.push(')');
                self.at += 1;
                self.atom();
            }
            '|' => {
                self.out.push('|');
                self.at += 1;
                self.repeatable = false;
                self.repeated = None;
            }
            '*' | '+' | '?' => return self.repeat(self.at + 1),
            '{' => {
                if let Some((end, low, high)) = self.counted() {
                    if low > MAX_REPEATS || high.is_some_and(|high| high > MAX_REPEATS || high < low) {
                        return problem("invalid repeat count", &self.pattern[self.at..end]);
                    }
                    return self.repeat(end);
                }
                self.literal(rune);
            }
            '[' => return self.class(),
            '\\' => return self.escape(),
            '^' | '$' | '.' => {
                self.out.push(rune);
                self.at += 1;
                self.atom();
            }
            _ => self.literal(rune),
        }
        Ok(())
    }

    fn atom(&mut self) {
        self.repeatable = true;
        self.repeated = None;
    }

    fn literal(&mut self, rune: char) {
        push_literal(&mut self.out, rune);
        self.at += rune.len_utf8();
        self.atom();
    }

    fn open(&mut self) -> Result<(), Error> {
        self.repeatable = false;
        self.repeated = None;
        if !self.rest().starts_with("(?") {
            self.groups.push(self.at);
            self.out.push('(');
            self.at += 1;
            return Ok(());
        }
        for prefix in ["(?P<", "(?<"] {
            if let Some(name) = self.rest().strip_prefix(prefix) {
                let Some(end) = name.find('>') else { return problem("invalid named capture", self.rest()) };
                let name = &name[..end];
                let length = prefix.len() + end + 1;
                if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                    return problem("invalid named capture", &self.rest()[..length]);
                }
                let group = format!("(?P<{name}>");
                if self.out.contains(&group) {
                    return problem("duplicate capture group name", name);
                }
                self.groups.push(self.at);
                self.out.push_str(&group);
                self.at += length;
                return Ok(());
            }
        }
        self.flags()
    }

    fn flags(&mut self) -> Result<(), Error> {
        let mut negative = false;
        let mut flag_seen = false;
        let body = &self.pattern[self.at + 2..];
        for (offset, rune) in body.char_indices() {
            let end = self.at + 2 + offset + rune.len_utf8();
            let text = &self.pattern[self.at..end];
            match rune {
                'i' | 'm' | 's' | 'U' => flag_seen = true,
                '-' if !negative => {
                    negative = true;
                    flag_seen = false;
                }
                ':' | ')' if !negative || flag_seen => {
                    self.out.push_str(text);
                    self.at = end;
                    if rune == ':' {
                        self.groups.push(self.at);
                    }
                    return Ok(());
                }
                _ => return problem("invalid or unsupported Perl syntax", text),
            }
        }
        problem("missing closing )", self.pattern)
    }

    /// `{n}`, `{n,}` or `{n,m}` at the current position: its end and bounds.
    fn counted(&self) -> Option<(usize, u32, Option<u32>)> {
        let body = self.rest().strip_prefix('{')?;
        let close = body.find('}')?;
        let number = |text: &str| {
            let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let leading_zero = text.len() > 1 && text.starts_with('0');
            (plain && !leading_zero).then(|| text.parse().unwrap_or(u32::MAX))
        };
        let (low, high) = match body[..close].split_once(',') {
            None => (number(&body[..close])?, None),
            Some((low, "")) => (number(low)?, None),
            Some((low, high)) => (number(low)?, Some(number(high)?)),
        };
        Some((self.at + close + 2, low, high))
    }

    fn repeat(&mut self, end: usize) -> Result<(), Error> {
        let start = self.at;
        let lazy = self.pattern[end..].starts_with('?');
        let end = end + usize::from(lazy);
        if !self.repeatable {
            return problem(
                "missing argument to repetition operator",
                self.pattern[start..end].trim_end_matches('?'),
            );
        }
        if let Some(before) = self.repeated {
            return problem("invalid nested repetition operator", &self.pattern[before..end]);
        }
        self.out.push_str(&self.pattern[start..end]);
        self.at = end;
        self.repeated = Some(start);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Error> {
        let Some(rune) = self.rest().chars().nth(1) else {
            return problem("trailing backslash at end of expression", "");
        };
        let simple = match rune {
            'A' => Some(r"\A"),
            'z' => Some(r"\z"),
            'b' => Some(r"(?-u:\b)"),
            'B' => Some(r"(?-u:\B)"),
            'C' => Some(r"(?s-u:.)"),
            _ => perl_class(rune),
        };
        if let Some(text) = simple {
            self.out.push_str(text);
            self.at += 2;
        } else if rune == 'Q' {
            let body = &self.pattern[self.at + 2..];
            let (quoted, skip) = match body.find("\\E") {
                Some(end) => (&body[..end], end + 2),
                None => (body, body.len()),
            };
            quoted.chars().for_each(|rune| push_literal(&mut self.out, rune));
            self.at += 2 + skip;
            self.repeatable |= !quoted.is_empty();
            self.repeated = if quoted.is_empty() { self.repeated } else { None };
            return Ok(());
        } else if rune == 'p' || rune == 'P' {
            let (text, end) = self.unicode_class()?;
            self.out.push_str(&text);
            self.at = end;
        } else {
            let literal = self.escaped_rune()?;
            push_literal(&mut self.out, literal);
        }
        self.atom();
        Ok(())
    }

    fn unicode_class(&self) -> Result<(String, usize), Error> {
        let body = &self.pattern[self.at + 2..];
        let length = match body.chars().next() {
            Some('{') => body.find('}').map(|end| end + 1),
            Some(rune) => Some(rune.len_utf8()),
            None => None,
        };
        let Some(length) = length else { return problem("invalid character class range", self.rest()) };
        let end = self.at + 2 + length;
        let text = &self.pattern[self.at..end];
        if regex::bytes::Regex::new(text).is_err() {
            return problem("invalid character class range", text);
        }
        Ok((text.to_owned(), end))
    }

    /// A one-character escape, consumed.
    fn escaped_rune(&mut self) -> Result<char, Error> {
        let body = &self.pattern[self.at + 1..];
        let Some(rune) = body.chars().next() else {
            return problem("trailing backslash at end of expression", "");
        };
        let digits = |text: &str, most: usize, radix: u32| {
            text.chars().take(most).take_while(|rune| rune.is_digit(radix)).count()
        };
        let bad = |length: usize| {
            let text: String = self.rest().chars().take(length).collect();
            problem("invalid escape sequence", &text)
        };
        let (literal, length) = match rune {
            'a' => ('\u{7}', 1),
            'f' => ('\u{C}', 1),
            'n' => ('\n', 1),
            'r' => ('\r', 1),
            't' => ('\t', 1),
            'v' => ('\u{B}', 1),
            '1'..='7' if digits(body, 3, 8) < 2 => return bad(2),
            '0'..='7' => {
                let length = digits(body, 3, 8);
                let code = u32::from_str_radix(&body[..length], 8).unwrap_or(0);
                (char::from_u32(code).unwrap_or('\u{FFFD}'), length)
            }
            'x' if body[1..].starts_with('{') => {
                let length = digits(&body[2..], 8, 16);
                let code = u32::from_str_radix(&body[2..2 + length], 16).ok().and_then(char::from_u32);
                match code.filter(|_| body[2 + length..].starts_with('}')) {
                    Some(literal) => (literal, length + 3),
                    None => return bad(2 + length),
                }
            }
            'x' => match digits(&body[1..], 2, 16) {
                2 => (char::from(u8::from_str_radix(&body[1..3], 16).unwrap_or(0)), 3),
                found => return bad(2 + found),
            },
            _ if rune.is_ascii() && !rune.is_ascii_alphanumeric() => (rune, 1),
            _ => return bad(2),
        };
        self.at += 1 + length;
        Ok(literal)
    }

    fn class(&mut self) -> Result<(), Error> {
        let start = self.at;
        let unclosed = |translator: &Self| problem("missing closing ]", &translator.pattern[start..]);
        let mut text = String::from("[");
        self.at += 1;
        if self.rest().starts_with('^') {
            text.push('^');
            self.at += 1;
        }
        let mut first = true;
        loop {
            match self.peek() {
                None => return unclosed(self),
                Some(']') if !first => break,
                _ => {}
            }
            first = false;
            if let Some(set) = self.class_set()? {
                text.push_str(&set);
                continue;
            }
            let from = self.at;
            let low = self.class_rune(start)?;
            let range =
                self.rest().starts_with('-') && !self.rest().starts_with("-]") && self.rest().len() > 1;
            push_literal(&mut text, low);
            if range {
                self.at += 1;
                let high = self.class_rune(start)?;
                if high < low {
                    return problem("invalid character class range", &self.pattern[from..self.at]);
                }
                text.push('-');
                push_literal(&mut text, high);
            }
        }
        self.at += 1;
        text.push(']');
        self.out.push_str(&text);
        self.atom();
        Ok(())
    }

    /// A set inside a class: `[:alpha:]`, `\d`, `\pL`.
    fn class_set(&mut self) -> Result<Option<String>, Error> {
        if self.rest().starts_with("[:")
            && let Some(end) = self.rest().find(":]")
        {
            const NAMES: [&str; 14] = [
                "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
                "space", "upper", "word", "xdigit",
            ];
            let set = &self.rest()[..end + 2];
            let name = set[2..end].trim_start_matches('^');
            if !NAMES.contains(&name) {
                return problem("invalid character class range", set);
            }
            let set = set.to_owned();
            self.at += set.len();
            return Ok(Some(set));
        }
        let Some(rune) = self.rest().strip_prefix('\\').and_then(|rest| rest.chars().next()) else {
            return Ok(None);
        };
        if let Some(set) = perl_class(rune) {
            self.at += 2;
            return Ok(Some(set.to_owned()));
        }
        if rune == 'p' || rune == 'P' {
            let (set, end) = self.unicode_class()?;
            self.at = end;
            return Ok(Some(set));
        }
        Ok(None)
    }

    fn class_rune(&mut self, start: usize) -> Result<char, Error> {
        match self.peek() {
            None => problem("missing closing ]", &self.pattern[start..]),
            Some('\\') => self.escaped_rune(),
            Some(rune) => {
                self.at += rune.len_utf8();
                Ok(rune)
            }
        }
    }
}

fn perl_class(rune: char) -> Option<&'static str> {
    Some(match rune {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        's' => "[\\t\\n\\f\\r ]",
        'S' => "[^\\t\\n\\f\\r ]",
        _ => return None,
    })
}
