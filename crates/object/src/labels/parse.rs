//! The grammar of label selectors, read in one pass over the bytes.
//!
//! ```text
//! selector    = [ requirement { "," requirement } ]
//! requirement = [ "!" ] key [ set | exact ]
//! set         = ( "in" | "notin" ) "(" [ value ] { "," [ value ] } ")"
//! exact       = ( "=" | "==" | "!=" | "<" | ">" ) [ value ]
//! ```
//! `in` and `notin` are keywords only where an operator can stand.

use super::{Operator, Requirement, key_error};
use crate::field::{self, Path};
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Error,
    End,
    ClosedParen,
    Comma,
    Not,
    DoubleEquals,
    Equals,
    GreaterThan,
    Identifier,
    In,
    LessThan,
    NotEquals,
    NotIn,
    OpenParen,
}

/// Splits the text into tokens, one at a time.
struct Lexer<'a> {
    rest: &'a str,
}

fn is_symbol(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn symbol(s: &str) -> Option<Token> {
    Some(match s {
        ")" => Token::ClosedParen,
        "," => Token::Comma,
        "!" => Token::Not,
        "==" => Token::DoubleEquals,
        "=" => Token::Equals,
        ">" => Token::GreaterThan,
        "<" => Token::LessThan,
        "!=" => Token::NotEquals,
        "(" => Token::OpenParen,
        _ => return None,
    })
}

impl<'a> Lexer<'a> {
    fn new(s: &'a str) -> Self {
        Self { rest: s }
    }

    fn next(&mut self) -> (Token, &'a str) {
        self.rest = self.rest.trim_start_matches(is_space);
        // Upstream's scanner takes a NUL for the end of the text, or of the token it is in the middle of.
        let Some(first) = self.rest.chars().next().filter(|c| *c != '\0') else { return (Token::End, "") };
        if is_symbol(first) {
            // Every symbol is one byte or two, and the longer one is taken.
            let two = self.rest.get(..2).and_then(|s| symbol(s).map(|token| (token, 2)));
            let (token, len) = two.unwrap_or_else(|| (symbol(&self.rest[..1]).unwrap_or(Token::Error), 1));
            return (token, self.take(len));
        }
        let ends = |c| is_symbol(c) || is_space(c) || c == '\0';
        let len = self.rest.find(ends).unwrap_or(self.rest.len());
        match self.take(len) {
            "in" => (Token::In, "in"),
            "notin" => (Token::NotIn, "notin"),
            word => (Token::Identifier, word),
        }
    }

    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest.strip_prefix('\0').unwrap_or(rest);
        taken
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    ahead: (Token, &'a str),
}

pub(super) fn parse(selector: &str) -> Result<Vec<Requirement>, String> {
    let mut lexer = Lexer::new(selector);
    let ahead = lexer.next();
    Parser { lexer, ahead }.selector()
}

impl<'a> Parser<'a> {
    /// The next token where a keyword cannot stand: `in` and `notin` are plain words.
    fn peek(&self) -> (Token, &'a str) {
        match self.ahead {
            (Token::In | Token::NotIn, word) => (Token::Identifier, word),
            other => other,
        }
    }

    fn next(&mut self) -> (Token, &'a str) {
        let token = self.peek();
        self.ahead = self.lexer.next();
        token
    }

    fn next_operator(&mut self) -> (Token, &'a str) {
        let token = self.ahead;
        self.ahead = self.lexer.next();
        token
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                (Token::Identifier | Token::Not, _) => {
                    let one = self.requirement();
                    requirements.push(one.map_err(|e| format!("unable to parse requirement: {e}"))?);
                }
                (Token::End, _) => return Ok(requirements),
                (_, found) => {
                    return Err(format!("found '{found}', expected: !, identifier, or 'end of string'"));
                }
            }
            match self.next() {
                (Token::End, _) => return Ok(requirements),
                (Token::Comma, _) => match self.peek() {
                    (Token::Identifier | Token::Not, _) => {}
                    (_, found) => return Err(format!("found '{found}', expected: identifier after ','")),
                },
                (_, found) => return Err(format!("found '{found}', expected: ',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.peek().0 == Token::Not;
        if negated {
            self.next();
        }
        let (Token::Identifier, key) = self.peek() else {
            return Err(format!("found '{}', expected: identifier", self.peek().1));
        };
        self.next();
        if let Some(error) = key_error(key, &Path::root()) {
            return Err(error.to_string());
        }
        // After `!key` anything is ignored here and rejected, or not, by the caller.
        let (operator, values) = if negated {
            (Operator::DoesNotExist, BTreeSet::new())
        } else if matches!(self.peek().0, Token::End | Token::Comma) {
            (Operator::Exists, BTreeSet::new())
        } else {
            let operator = self.operator()?;
            match operator {
                Operator::In | Operator::NotIn => (operator, self.set()?),
                _ => (operator, self.exact()?),
            }
        };
        let values = values.into_iter().map(str::to_owned).collect();
        Requirement::new(key, operator, values).map_err(|errors| field::aggregate(&errors))
    }

    fn operator(&mut self) -> Result<Operator, String> {
        Ok(match self.next_operator() {
            (Token::In, _) => Operator::In,
            (Token::NotIn, _) => Operator::NotIn,
            (Token::Equals, _) => Operator::Equals,
            (Token::DoubleEquals, _) => Operator::DoubleEquals,
            (Token::NotEquals, _) => Operator::NotEquals,
            (Token::GreaterThan, _) => Operator::GreaterThan,
            (Token::LessThan, _) => Operator::LessThan,
            (_, found) => {
                return Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt"));
            }
        })
    }

    /// `(a,b)`: empty places count as the empty string, so `()` holds one value.
    fn set(&mut self) -> Result<BTreeSet<&'a str>, String> {
        if let (token, found) = self.next()
            && token != Token::OpenParen
        {
            return Err(format!("found '{found}' expected: '('"));
        }
        if let (token, found) = self.peek()
            && !matches!(token, Token::Identifier | Token::Comma | Token::ClosedParen)
        {
            return Err(format!("found '{found}', expected: ',', ')' or identifier"));
        }
        let mut values = BTreeSet::new();
        loop {
            // At a place where a value can stand.
            match self.peek() {
                (Token::Identifier, value) => {
                    self.next();
                    values.insert(value);
                }
                (Token::Comma | Token::ClosedParen, _) => {
                    values.insert("");
                }
                (_, found) => return Err(format!("found '{found}', expected: ',', or identifier")),
            }
            match self.peek() {
                (Token::Comma, _) => self.next(),
                (Token::ClosedParen, _) => {
                    self.next();
                    return Ok(values);
                }
                (_, found) => return Err(format!("found '{found}', expected: ',' or ')'")),
            };
        }
    }

    fn exact(&mut self) -> Result<BTreeSet<&'a str>, String> {
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Ok(BTreeSet::from([""]));
        }
        match self.next() {
            (Token::Identifier, value) => Ok(BTreeSet::from([value])),
            (_, found) => Err(format!("found '{found}', expected: identifier")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_symbol_wins() {
        let tokens = |s: &'static str| {
            let mut lexer = Lexer::new(s);
            std::iter::from_fn(move || Some(lexer.next().0).filter(|t| *t != Token::End)).collect::<Vec<_>>()
        };
        assert_eq!(tokens("a == b"), [Token::Identifier, Token::DoubleEquals, Token::Identifier]);
        assert_eq!(tokens("!a!=b"), [Token::Not, Token::Identifier, Token::NotEquals, Token::Identifier]);
        assert_eq!(tokens("()"), [Token::OpenParen, Token::ClosedParen]);
        assert_eq!(tokens("a notin(in)").len(), 5);
        assert_eq!(tokens("é\0b \0c"), [Token::Identifier, Token::Identifier]);
    }
}
