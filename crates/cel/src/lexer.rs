//! Text to tokens. Literals are decoded here, so that the parser sees values.

use super::source::Issue;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Ident(String),
    Int(String),
    Uint(String),
    Double(String),
    String(String),
    Bytes(Vec<u8>),
    /// Operators, brackets, and the words `in`, `true`, `false` and `null`.
    Symbol(&'static str),
    Eof,
}

/// A token, where it starts, and what was written (for messages).
#[derive(Clone, Debug)]
pub(crate) struct Spanned {
    pub token: Token,
    pub pos: usize,
    pub text: String,
}

const SYMBOLS: [&str; 23] = [
    "==", "!=", "<=", ">=", "&&", "||", "[", "]", "{", "}", "(", ")", ".", "-", "!", "?", ":", "+", "*", "/",
    "%", "<", ">",
];

pub(crate) fn lex(source: &str) -> Result<Vec<Spanned>, Vec<Issue>> {
    let mut lexer = Lexer { chars: source.chars().collect(), pos: 0, tokens: Vec::new(), issues: Vec::new() };
    while lexer.pos < lexer.chars.len() {
        lexer.next();
    }
    let end = lexer.chars.len();
    lexer.tokens.push(Spanned { token: Token::Eof, pos: end, text: "<EOF>".to_owned() });
    if lexer.issues.is_empty() { Ok(lexer.tokens) } else { Err(lexer.issues) }
}

struct Lexer {
    chars: Vec<char>,
    pos: usize,
    tokens: Vec<Spanned>,
    issues: Vec<Issue>,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.pos + ahead).copied()
    }

    fn text(&self, from: usize, to: usize) -> String {
        self.chars.get(from..to.min(self.chars.len())).unwrap_or(&[]).iter().collect()
    }

    fn push(&mut self, token: Token, from: usize) {
        let text = self.text(from, self.pos);
        self.tokens.push(Spanned { token, pos: from, text });
    }

    fn next(&mut self) {
        let Some(c) = self.peek(0) else { return };
        let from = self.pos;
        if matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}') {
            self.pos += 1;
        } else if c == '/' && self.peek(1) == Some('/') {
            while self.peek(0).is_some_and(|c| c != '\n') {
                self.pos += 1;
            }
        } else if let Some(prefix) = self.string_prefix() {
            self.string(prefix);
        } else if c.is_ascii_alphabetic() || c == '_' {
            while self.peek(0).is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                self.pos += 1;
            }
            let word = self.text(from, self.pos);
            let token = match word.as_str() {
                "in" => Token::Symbol("in"),
                "true" => Token::Symbol("true"),
                "false" => Token::Symbol("false"),
                "null" => Token::Symbol("null"),
                _ => Token::Ident(word),
            };
            self.push(token, from);
        } else if c.is_ascii_digit() || (c == '.' && self.peek(1).is_some_and(|c| c.is_ascii_digit())) {
            self.number();
        } else if let Some(symbol) = SYMBOLS.iter().find(|s| self.starts_with(s)) {
            self.pos += symbol.len();
            self.push(Token::Symbol(symbol), from);
        } else if c == ',' {
            self.pos += 1;
            self.push(Token::Symbol(","), from);
        } else {
            self.pos += 1;
            self.issues.push(Issue::new(from, format!("Syntax error: token recognition error at: '{c}'")));
        }
    }

    fn starts_with(&self, symbol: &str) -> bool {
        symbol.chars().enumerate().all(|(i, c)| self.peek(i) == Some(c))
    }

    /// How many of `r` and `b` stand before a quote here, if one follows.
    fn string_prefix(&self) -> Option<usize> {
        let quote = |i| matches!(self.peek(i), Some('"' | '\''));
        let is = |i, a, b| self.peek(i).is_some_and(|c| c == a || c == b);
        if quote(0) {
            Some(0)
        } else if quote(1) && (is(0, 'r', 'R') || is(0, 'b', 'B')) {
            Some(1)
        } else if quote(2) && is(0, 'b', 'B') && is(1, 'r', 'R') {
            Some(2)
        } else {
            None
        }
    }

    fn string(&mut self, prefix: usize) {
        let from = self.pos;
        let marks: Vec<char> = (0..prefix).filter_map(|i| self.peek(i)).collect();
        let raw = marks.iter().any(|c| matches!(c, 'r' | 'R'));
        let bytes = marks.iter().any(|c| matches!(c, 'b' | 'B'));
        self.pos += prefix;
        let Some(quote) = self.peek(0) else { return };
        let triple = self.peek(1) == Some(quote) && self.peek(2) == Some(quote);
        let width = if triple { 3 } else { 1 };
        self.pos += width;
        let start = self.pos;
        loop {
            match self.peek(0) {
                None => return self.unterminated(from),
                Some('\n' | '\r') if !triple => return self.unterminated(from),
                Some('\\') if !raw => self.pos += 2,
                Some(c) if c == quote && (0..width).all(|i| self.peek(i) == Some(quote)) => break,
                Some(_) => self.pos += 1,
            }
        }
        let body = self.text(start, self.pos);
        self.pos += width;
        let token = if bytes {
            if raw { Ok(Token::Bytes(body.into_bytes())) } else { unescape_bytes(&body).map(Token::Bytes) }
        } else if raw {
            Ok(Token::String(body))
        } else {
            unescape(&body).map(Token::String)
        };
        match token {
            Ok(token) => self.push(token, from),
            Err(message) => self.issues.push(Issue::new(from, message)),
        }
    }

    fn unterminated(&mut self, from: usize) {
        self.pos = self.chars.len();
        let text = self.text(from, self.pos);
        self.issues.push(Issue::new(from, format!("Syntax error: token recognition error at: '{text}'")));
    }

    fn digits(&mut self) {
        while self.peek(0).is_some_and(|c| c.is_ascii_digit()) {
            self.pos += 1;
        }
    }

    fn number(&mut self) {
        let from = self.pos;
        let mut double = false;
        if self.peek(0) == Some('0')
            && matches!(self.peek(1), Some('x' | 'X'))
            && self.peek(2).is_some_and(|c| c.is_ascii_hexdigit())
        {
            self.pos += 2;
            while self.peek(0).is_some_and(|c| c.is_ascii_hexdigit()) {
                self.pos += 1;
            }
        } else {
            self.digits();
            if self.peek(0) == Some('.') && self.peek(1).is_some_and(|c| c.is_ascii_digit()) {
                double = true;
                self.pos += 1;
                self.digits();
            }
            let sign = usize::from(matches!(self.peek(1), Some('+' | '-')));
            if matches!(self.peek(0), Some('e' | 'E'))
                && self.peek(1 + sign).is_some_and(|c| c.is_ascii_digit())
            {
                double = true;
                self.pos += 1 + sign;
                self.digits();
            }
        }
        let text = self.text(from, self.pos);
        if double {
            self.push(Token::Double(text), from);
        } else if matches!(self.peek(0), Some('u' | 'U')) {
            self.pos += 1;
            self.push(Token::Uint(text), from);
        } else {
            self.push(Token::Int(text), from);
        }
    }
}

/// One escape sequence: a code point, or (in bytes literals) one octet.
enum Escape {
    Char(char),
    Octet(u8),
}

fn unescape(body: &str) -> Result<String, String> {
    let mut out = String::with_capacity(body.len());
    decode(body, |escape| match escape {
        Escape::Char(c) => out.push(c),
        Escape::Octet(b) => out.push(char::from(b)),
    })?;
    Ok(out)
}

fn unescape_bytes(body: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(body.len());
    decode(body, |escape| match escape {
        Escape::Char(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        Escape::Octet(b) => out.push(b),
    })?;
    Ok(out)
}

fn decode(body: &str, mut emit: impl FnMut(Escape)) -> Result<(), String> {
    let mut chars = body.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            emit(Escape::Char(c));
            continue;
        }
        let kind = chars.next().ok_or("unable to unescape string, found '\\' as last character")?;
        let simple = match kind {
            'a' => Some('\u{7}'),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\u{b}'),
            '\\' | '\'' | '"' | '`' | '?' => Some(kind),
            _ => None,
        };
        if let Some(c) = simple {
            emit(Escape::Char(c));
            continue;
        }
        let (count, radix, first) = match kind {
            'x' | 'X' => (2, 16, None),
            'u' => (4, 16, None),
            'U' => (8, 16, None),
            '0'..='3' => (2, 8, kind.to_digit(8)),
            _ => return Err("unable to unescape string".to_owned()),
        };
        let mut value = first.unwrap_or(0);
        for _ in 0..count {
            let digit = chars.next().and_then(|c| c.to_digit(radix)).ok_or("unable to unescape string")?;
            value = value.wrapping_mul(radix) + digit;
        }
        match (count, u8::try_from(value), char::from_u32(value)) {
            (2, Ok(byte), _) => emit(Escape::Octet(byte)),
            (_, _, Some(c)) => emit(Escape::Char(c)),
            _ => return Err("invalid unicode code point".to_owned()),
        }
    }
    Ok(())
}
