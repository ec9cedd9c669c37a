//! Parses JSONPath templates into nodes, with kubectl's errors. Nesting is bounded.

use super::{Node, Slice};
use crate::quote::is_print;
use transom_go::strconv::unescape;

/// Filters, unions and quoted keys hold actions of their own.
const MAX_NESTING: usize = 16;

pub(super) fn parse(text: &str) -> Result<Vec<Node>, String> {
    parse_at(text, 0)
}

fn parse_at(text: &str, depth: usize) -> Result<Vec<Node>, String> {
    if depth > MAX_NESTING {
        return Err("jsonpath is nested too deeply".to_owned());
    }
    let mut root = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        if !before.is_empty() {
            root.push(Node::Literal(before.into()));
        }
        let mut action = Action { rest: after, nodes: Vec::new(), depth };
        action.parse()?;
        root.push(Node::List(action.nodes));
        rest = action.rest;
    }
    if !rest.is_empty() {
        root.push(Node::Literal(rest.into()));
    }
    Ok(root)
}

/// Parses the inside of one action; what follows its first closing brace is ignored, as upstream does.
fn parse_action(text: &str, depth: usize) -> Result<Vec<Node>, String> {
    match parse_at(&format!("{{{text}}}"), depth + 1)?.into_iter().next() {
        Some(Node::List(nodes)) => Ok(nodes),
        _ => Ok(Vec::new()),
    }
}

struct Action<'a> {
    rest: &'a str,
    nodes: Vec<Node>,
    depth: usize,
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

impl<'a> Action<'a> {
    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        taken
    }

    /// Reads up to and including the closing brace.
    fn parse(&mut self) -> Result<(), String> {
        loop {
            if let Some(rest) = self.rest.strip_prefix("[?(") {
                self.rest = rest;
                self.filter()?;
                continue;
            }
            if let Some(rest) = self.rest.strip_prefix("..") {
                self.rest = rest;
                self.recursive()?;
                continue;
            }
            match self.rest.chars().next() {
                None | Some('\r' | '\n') => return Err("unclosed action".to_owned()),
                Some('}') => {
                    self.take(1);
                    return Ok(());
                }
                Some(' ' | '@' | '$') => drop(self.take(1)),
                Some('[') => self.array()?,
                Some('"') => self.quoted(b'"')?,
                Some('\'') => self.quoted(b'\'')?,
                Some('.') => {
                    self.take(1);
                    self.field();
                }
                Some(c) if c == '+' || c == '-' || c.is_ascii_digit() => self.number()?,
                Some(c) if c == '_' || c.is_alphanumeric() => self.identifier(),
                Some(c) => {
                    let shown = if is_print(c) { format!(" '{c}'") } else { String::new() };
                    return Err(format!("unrecognized character in action: U+{:04X}{shown}", u32::from(c)));
                }
            }
        }
    }

    fn recursive(&mut self) -> Result<(), String> {
        if self.nodes.last() == Some(&Node::Recursive) {
            return Err("invalid multiple recursive descent".to_owned());
        }
        self.nodes.push(Node::Recursive);
        if self.rest.starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
            self.field();
        }
        Ok(())
    }

    fn identifier(&mut self) {
        let end = self.rest.find(is_terminator).unwrap_or(self.rest.len());
        let word = self.take(end);
        self.nodes.push(match word {
            "true" => Node::Literal(true.into()),
            "false" => Node::Literal(false.into()),
            name => Node::Identifier(name.to_owned()),
        });
    }

    /// A field up to a terminator that no backslash escapes.
    fn field(&mut self) {
        let mut end = self.rest.len();
        let mut escaped = false;
        for (i, c) in self.rest.char_indices() {
            if !escaped && is_terminator(c) {
                end = i;
                break;
            }
            escaped = !escaped && c == '\\';
        }
        let name = self.take(end);
        self.nodes.push(match name {
            "*" => Node::Wildcard,
            name => Node::Field(name.replace('\\', "")),
        });
    }

    fn number(&mut self) -> Result<(), String> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = self.rest[sign..].find(|c: char| c != '.' && !c.is_ascii_digit());
        let text = self.take(digits.map_or(self.rest.len(), |n| n + sign));
        let value = match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(n), _) => n.into(),
            (_, Ok(f)) => f.into(),
            _ => return Err(format!("cannot parse number {text}")),
        };
        self.nodes.push(Node::Literal(value));
        Ok(())
    }

    fn quoted(&mut self, quote: u8) -> Result<(), String> {
        let bytes = self.rest.as_bytes();
        let closes =
            |(i, b): (usize, &u8)| (*b == b'\n' || (*b == quote && bytes[i - 1] != b'\\')).then_some((i, *b));
        let end = match bytes.iter().enumerate().skip(1).find_map(closes) {
            Some((end, b)) if b != b'\n' => end,
            _ => return Err("unterminated quoted string".to_owned()),
        };
        let text = self.take(end + 1);
        let value = unescape(&text.as_bytes()[1..end], quote)
            .ok_or_else(|| format!("unquote string {text} error invalid syntax"))?;
        self.nodes.push(Node::Literal(String::from_utf8_lossy(&value).into()));
        Ok(())
    }

    fn array(&mut self) -> Result<(), String> {
        let end = match self.rest.find([']', '\n']) {
            Some(end) if self.rest[end..].starts_with(']') => end,
            _ => return Err("unterminated array".to_owned()),
        };
        let text = &self.take(end + 1)[1..end];
        let text = if text == "*" { ":" } else { text };
        if text.contains(',') {
            let parts =
                text.split(',').map(|p| parse_action(&format!("[{}]", p.trim_matches(' ')), self.depth));
            self.nodes.push(Node::Union(parts.collect::<Result<_, _>>()?));
            return Ok(());
        }
        let key = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')).filter(|k| !k.contains('\''));
        if let Some(key) = key {
            self.nodes.extend(parse_action(&format!(".{key}"), self.depth)?);
            return Ok(());
        }
        self.nodes.push(Node::Slice(slice(text)?));
        Ok(())
    }

    fn filter(&mut self) -> Result<(), String> {
        let end = filter_end(self.rest).ok_or("unterminated filter")?;
        let text = &self.take(end + 1)[..end];
        self.rest = self.rest.strip_prefix(']').ok_or("unclosed array expect ]")?;
        self.nodes.push(match comparison(text) {
            None => Node::Filter {
                left: parse_action(text, self.depth)?,
                operator: "exists".to_owned(),
                right: Vec::new(),
            },
            Some((left, operator, right)) => Node::Filter {
                left: parse_action(left, self.depth)?,
                operator: operator.to_owned(),
                right: parse_action(right, self.depth)?,
            },
        });
        Ok(())
    }
}

/// Where the parenthesis closes that is in no quotes. Only the first quoted text is looked at.
fn filter_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut quote, mut closed) = (None, false);
    for (i, b) in bytes.iter().enumerate() {
        match (b, quote) {
            (b'\n', _) => return None,
            (b'"' | b'\'', None) => quote = Some(*b),
            (b'"' | b'\'', Some(q)) if q == *b && i > 0 && bytes[i - 1] != b'\\' => closed = true,
            (b')', _) if quote.is_some() == closed => return Some(i),
            _ => {}
        }
    }
    None
}

/// `left op right`, the operator being the first run of `!<>=`.
fn comparison(text: &str) -> Option<(&str, &str, &str)> {
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let start = text.find(is_operator).filter(|start| *start > 0)?;
    let run = text[start..].find(|c| !is_operator(c)).unwrap_or(text.len() - start);
    // The right side needs a character, which the operator gives up if it must.
    let run = if start + run == text.len() { run - 1 } else { run };
    (run > 0).then(|| (&text[..start], &text[start..start + run], &text[start + run..]))
}

fn slice(text: &str) -> Result<Slice, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let well_formed = |p: &&str| p.strip_prefix('-').unwrap_or(p).bytes().all(|b| b.is_ascii_digit());
    if parts.len() > 3 || !parts.iter().all(well_formed) {
        return Err(format!("invalid array index {text}"));
    }
    let number = |i: usize| match parts.get(i) {
        None | Some(&"") => Ok(None),
        Some(p) => p.parse().map(Some).map_err(|_| format!("array index {p} is not a number")),
    };
    let start: Option<i64> = number(0)?;
    let single = parts.len() == 1;
    let end = if single { Some(start.unwrap_or(0).saturating_add(1)) } else { number(1)? };
    Ok(Slice { start, end, single, step: number(2)? })
}
