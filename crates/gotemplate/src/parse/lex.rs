//! The lexer: template text into items, with Go's rules for trim markers, comments and what ends a word.

use crate::value::Value;
use transom_go::fmt::sprintf;
use transom_go::unicode::{is_digit, is_letter};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) enum ItemKind {
    Error,
    Bool,
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    String,
    Text,
    Variable,
    /// Everything after this one is a keyword.
    Keyword,
    Block,
    Break,
    Continue,
    Dot,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

#[derive(Clone, Debug)]
pub(super) struct Item {
    pub kind: ItemKind,
    pub pos: usize,
    pub text: String,
    pub line: usize,
}

impl Item {
    /// How error messages name the item.
    pub(super) fn describe(&self) -> String {
        match self.kind {
            ItemKind::Eof => "EOF".to_owned(),
            ItemKind::Error => self.text.clone(),
            kind if kind > ItemKind::Keyword => format!("<{}>", self.text),
            _ if self.text.len() > 10 => sprintf("%.10q...", &[Value::str(self.text.as_str())]),
            _ => sprintf("%q", &[Value::str(self.text.as_str())]),
        }
    }
}

fn keyword(word: &str) -> Option<ItemKind> {
    Some(match word {
        "." => ItemKind::Dot,
        "block" => ItemKind::Block,
        "break" => ItemKind::Break,
        "continue" => ItemKind::Continue,
        "define" => ItemKind::Define,
        "else" => ItemKind::Else,
        "end" => ItemKind::End,
        "if" => ItemKind::If,
        "range" => ItemKind::Range,
        "nil" => ItemKind::Nil,
        "template" => ItemKind::Template,
        "with" => ItemKind::With,
        _ => return None,
    })
}

const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];
const TRIM_MARKER_LEN: usize = 2;

pub(super) struct Lexer<'a> {
    input: &'a str,
    left: &'a str,
    right: &'a str,
    pos: usize,
    start: usize,
    inside_action: bool,
    paren_depth: i64,
    /// Where lines were last counted to, so that counting stays linear.
    counted: (usize, usize),
    /// `break` and `continue` are keywords unless a function has the name.
    pub break_is_keyword: bool,
    pub continue_is_keyword: bool,
}

/// A lexing step either produced an item or moved on.
type Step = Option<Item>;

impl<'a> Lexer<'a> {
    pub(super) fn new(input: &'a str, left: &'a str, right: &'a str) -> Lexer<'a> {
        Lexer {
            input,
            left: if left.is_empty() { "{{" } else { left },
            right: if right.is_empty() { "}}" } else { right },
            pos: 0,
            start: 0,
            inside_action: false,
            paren_depth: 0,
            counted: (0, 1),
            break_is_keyword: true,
            continue_is_keyword: true,
        }
    }

    pub(super) fn next_item(&mut self) -> Item {
        loop {
            let step = if self.inside_action { self.inside_action() } else { self.text() };
            if let Some(item) = step {
                return item;
            }
        }
    }

    fn rest(&self) -> &'a str {
        &self.input[self.pos..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let rune = self.peek()?;
        self.pos += rune.len_utf8();
        Some(rune)
    }

    fn accept(&mut self, valid: &str) -> bool {
        let found = self.peek().is_some_and(|rune| valid.contains(rune));
        if found {
            self.pos += 1;
        }
        found
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    fn line_at(&mut self, pos: usize) -> usize {
        let (from, line) = self.counted;
        let newlines = self.input.as_bytes()[from..pos].iter().filter(|byte| **byte == b'\n').count();
        self.counted = (pos, line + newlines);
        self.counted.1
    }

    fn emit(&mut self, kind: ItemKind) -> Step {
        let line = self.line_at(self.start);
        let item = Item { kind, pos: self.start, text: self.input[self.start..self.pos].to_owned(), line };
        self.start = self.pos;
        Some(item)
    }

    fn ignore(&mut self) {
        self.start = self.pos;
    }

    fn error(&mut self, message: String) -> Step {
        let line = self.line_at(self.start);
        let item = Item { kind: ItemKind::Error, pos: self.start, text: message, line };
        // Nothing sensible can follow: the rest of the input is dropped.
        self.pos = self.input.len();
        self.start = self.pos;
        self.inside_action = false;
        Some(item)
    }

    fn text(&mut self) -> Step {
        let Some(at) = self.rest().find(self.left) else {
            self.pos = self.input.len();
            let kind = if self.pos > self.start { ItemKind::Text } else { ItemKind::Eof };
            return self.emit(kind);
        };
        if at > 0 {
            let delim = self.pos + at;
            self.pos = delim;
            if has_left_trim(&self.input[delim + self.left.len()..]) {
                self.pos = self.start + self.input[self.start..delim].trim_end_matches(SPACES).len();
            }
            let item = (self.pos > self.start).then(|| self.emit(ItemKind::Text)).flatten();
            self.pos = delim;
            self.ignore();
            if item.is_some() {
                return item;
            }
        }
        self.left_delim()
    }

    fn left_delim(&mut self) -> Step {
        self.pos += self.left.len();
        let marker = if has_left_trim(self.rest()) { TRIM_MARKER_LEN } else { 0 };
        if self.input[self.pos + marker..].starts_with("/*") {
            self.pos += marker;
            self.ignore();
            return self.comment();
        }
        let item = self.emit(ItemKind::LeftDelim);
        self.inside_action = true;
        self.pos += marker;
        self.ignore();
        self.paren_depth = 0;
        item
    }

    fn comment(&mut self) -> Step {
        let Some(end) = self.input[self.pos + 2..].find("*/") else {
            return self.error("unclosed comment".to_owned());
        };
        self.pos += 2 + end + 2;
        match self.at_right_delim() {
            None => self.error("comment ends before closing delimiter".to_owned()),
            Some(trim) => {
                self.skip_right_delim(trim);
                None
            }
        }
    }

    /// Whether the right delimiter starts here, and if so whether a trim marker precedes it.
    fn at_right_delim(&self) -> Option<bool> {
        let rest = self.rest();
        if has_right_trim(rest) && rest[TRIM_MARKER_LEN..].starts_with(self.right) {
            return Some(true);
        }
        rest.starts_with(self.right).then_some(false)
    }

    fn skip_right_delim(&mut self, trim: bool) {
        if trim {
            self.pos += TRIM_MARKER_LEN;
        }
        self.pos += self.right.len();
        if trim {
            let rest = self.rest();
            self.pos += rest.len() - rest.trim_start_matches(SPACES).len();
        }
        self.ignore();
    }

    fn right_delim(&mut self, trim: bool) -> Step {
        if trim {
            self.pos += TRIM_MARKER_LEN;
            self.ignore();
        }
        self.pos += self.right.len();
        let item = self.emit(ItemKind::RightDelim);
        if trim {
            let rest = self.rest();
            self.pos += rest.len() - rest.trim_start_matches(SPACES).len();
            self.ignore();
        }
        self.inside_action = false;
        item
    }

    fn inside_action(&mut self) -> Step {
        if let Some(trim) = self.at_right_delim() {
            if self.paren_depth == 0 {
                return self.right_delim(trim);
            }
            return self.error("unclosed left paren".to_owned());
        }
        let Some(rune) = self.next() else { return self.error("unclosed action".to_owned()) };
        match rune {
            _ if SPACES.contains(&rune) => {
                self.pos -= 1;
                self.space()
            }
            '=' => self.emit(ItemKind::Assign),
            ':' if self.next() == Some('=') => self.emit(ItemKind::Declare),
            ':' => self.error("expected :=".to_owned()),
            '|' => self.emit(ItemKind::Pipe),
            '"' => self.quoted('"', ItemKind::String, "unterminated quoted string"),
            '`' => self.raw_quoted(),
            '$' => self.field_or_variable(ItemKind::Variable),
            '\'' => self.quoted('\'', ItemKind::CharConstant, "unterminated character constant"),
            '.' if !self.rest().is_empty() && !self.rest().as_bytes()[0].is_ascii_digit() => {
                self.field_or_variable(ItemKind::Field)
            }
            '.' | '+' | '-' | '0'..='9' => {
                self.pos -= 1;
                self.number()
            }
            _ if is_alphanumeric(rune) => {
                self.pos -= rune.len_utf8();
                self.identifier()
            }
            '(' => {
                self.paren_depth += 1;
                self.emit(ItemKind::LeftParen)
            }
            ')' => {
                self.paren_depth -= 1;
                if self.paren_depth < 0 {
                    return self.error("unexpected right paren".to_owned());
                }
                self.emit(ItemKind::RightParen)
            }
            ' '..='~' => self.emit(ItemKind::Char),
            _ => self.error(format!("unrecognized character in action: {}", code_point(Some(rune)))),
        }
    }

    fn space(&mut self) -> Step {
        let mut count = 0;
        while self.peek().is_some_and(|rune| SPACES.contains(&rune)) {
            self.pos += 1;
            count += 1;
        }
        let last = &self.input[self.pos - 1..];
        if has_right_trim(last) && last[TRIM_MARKER_LEN..].starts_with(self.right) {
            self.pos -= 1;
            if count == 1 {
                return self.right_delim(true);
            }
        }
        self.emit(ItemKind::Space)
    }

    fn identifier(&mut self) -> Step {
        while self.peek().is_some_and(is_alphanumeric) {
            self.next();
        }
        if !self.at_terminator() {
            return self.error(format!("bad character {}", code_point(self.peek())));
        }
        let word = &self.input[self.start..self.pos];
        let kind = match keyword(word) {
            Some(ItemKind::Break) if !self.break_is_keyword => ItemKind::Identifier,
            Some(ItemKind::Continue) if !self.continue_is_keyword => ItemKind::Identifier,
            Some(kind) => kind,
            None if word == "true" || word == "false" => ItemKind::Bool,
            None => ItemKind::Identifier,
        };
        self.emit(kind)
    }

    fn field_or_variable(&mut self, kind: ItemKind) -> Step {
        if self.at_terminator() {
            return self.emit(if kind == ItemKind::Variable { kind } else { ItemKind::Dot });
        }
        while self.peek().is_some_and(is_alphanumeric) {
            self.next();
        }
        if !self.at_terminator() {
            return self.error(format!("bad character {}", code_point(self.peek())));
        }
        self.emit(kind)
    }

    fn at_terminator(&self) -> bool {
        match self.peek() {
            None | Some('.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(rune) => SPACES.contains(&rune) || self.rest().starts_with(self.right),
        }
    }

    fn quoted(&mut self, quote: char, kind: ItemKind, unterminated: &str) -> Step {
        loop {
            match self.next() {
                Some('\\') if self.next().is_some_and(|rune| rune != '\n') => {}
                Some('\\' | '\n') | None => return self.error(unterminated.to_owned()),
                Some(rune) if rune == quote => return self.emit(kind),
                Some(_) => {}
            }
        }
    }

    fn raw_quoted(&mut self) -> Step {
        match self.rest().find('`') {
            Some(end) => {
                self.pos += end + 1;
                self.emit(ItemKind::RawString)
            }
            None => self.error("unterminated raw quoted string".to_owned()),
        }
    }

    fn number(&mut self) -> Step {
        if self.scan_number() {
            if !matches!(self.peek(), Some('+' | '-')) {
                return self.emit(ItemKind::Number);
            }
            if self.scan_number() && self.input.as_bytes()[self.pos - 1] == b'i' {
                return self.emit(ItemKind::Complex);
            }
        }
        let text = Value::str(&self.input[self.start..self.pos]);
        self.error(sprintf("bad number syntax: %q", &[text]))
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
        let mut digits = "0123456789_";
        if self.accept("0") {
            if self.accept("xX") {
                digits = "0123456789abcdefABCDEF_";
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        let exponent = match digits.len() {
            11 => "eE",
            23 => "pP",
            _ => "",
        };
        if self.accept(exponent) {
            self.accept("+-");
            self.accept_run("0123456789_");
        }
        self.accept("i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.next();
            return false;
        }
        true
    }
}

fn is_alphanumeric(rune: char) -> bool {
    rune == '_' || is_letter(rune) || is_digit(rune)
}

fn has_left_trim(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 2 && bytes[0] == b'-' && SPACES.contains(&char::from(bytes[1]))
}

fn has_right_trim(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 2 && SPACES.contains(&char::from(bytes[0])) && bytes[1] == b'-'
}

/// `%#U` of a rune, or of the end of input.
fn code_point(rune: Option<char>) -> String {
    match rune {
        Some(rune) => sprintf("%#U", &[Value::int(i64::from(u32::from(rune)))]),
        None => "U+FFFFFFFFFFFFFFFF".to_owned(),
    }
}
