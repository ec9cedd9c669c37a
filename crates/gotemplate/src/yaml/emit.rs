//! The emitter: block style, four spaces, sequences indented under their key, nothing folded.

use super::sort;
use super::style::{self, Style};
use crate::functions::{CallError, Env};
use crate::value::{Key, MAX_DEPTH, Value};
use transom_go::encoding::base64_encode;
use transom_go::time::RFC3339_NANO;
use transom_go::yaml::{double_quoted, format_float, single_quoted};

const INDENT_SPACES: usize = 4;

pub(super) fn emit(env: &mut Env<'_>, value: &Value) -> Result<String, CallError> {
    let mut emitter = Emitter { env, out: String::new(), fresh: true, counted: 0 };
    match value {
        Value::List(_) | Value::Map(_) | Value::Struct(_) => emitter.node(value, 0, NodePosition::Root, 0)?,
        scalar => emitter.scalar(scalar, INDENT_SPACES)?,
    }
    emitter.line(0);
    Ok(emitter.out)
}

/// What a node is part of, which decides its indentation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NodePosition {
    Root,
    Item,
    Value,
    /// The value of a key too long for one line, on the line of its `:`.
    ComplexValue,
}

struct Emitter<'e, 'a> {
    env: &'e mut Env<'a>,
    out: String,
    /// The cursor is at the start of a line.
    fresh: bool,
    counted: usize,
}

impl Emitter<'_, '_> {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
        self.fresh = false;
    }

    fn line(&mut self, indent: usize) {
        if !self.fresh {
            self.out.push('\n');
        }
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.fresh = indent == 0;
    }

    fn count(&mut self) -> Result<(), CallError> {
        self.env.spend(1)?;
        let grown = self.out.len() - self.counted;
        self.counted = self.out.len();
        self.env.allocate(grown)?;
        Ok(())
    }

    /// Writes a node whose parent is indented by `indent`.
    fn node(
        &mut self,
        value: &Value,
        indent: usize,
        place: NodePosition,
        depth: usize,
    ) -> Result<(), CallError> {
        if depth > MAX_DEPTH {
            return Err(transom_go::fmt::FmtError::TooDeep.to_string().into());
        }
        self.count()?;
        let inner = match place {
            NodePosition::Root => 0,
            NodePosition::Item => indent + 2,
            NodePosition::Value | NodePosition::ComplexValue => {
                INDENT_SPACES * ((indent + INDENT_SPACES) / INDENT_SPACES)
            }
        };
        match value {
            Value::List(list) if list.is_empty() => self.after_indicator(place, "[]"),
            Value::Map(map) if map.is_empty() => self.after_indicator(place, "{}"),
            Value::List(list) => {
                for (position, item) in list.to_vec().iter().enumerate() {
                    self.begin(position, indent, inner, place);
                    self.push("-");
                    self.node(item, inner, NodePosition::Item, depth + 1)?;
                }
            }
            Value::Map(map) => {
                let entries = sort::sorted(map.to_vec());
                self.env.spend(entries.len())?;
                for (position, (key, item)) in entries.iter().enumerate() {
                    self.begin(position, indent, inner, place);
                    self.entry(key, item, inner, depth)?;
                }
            }
            Value::Struct(shape) if shape.instant().is_none() => {
                for (position, (name, item)) in shape.fields.iter().enumerate() {
                    self.begin(position, indent, inner, place);
                    self.entry(&Key::str(name.to_lowercase()), item, inner, depth)?;
                }
            }
            scalar => {
                if place != NodePosition::Root {
                    self.push(" ");
                }
                self.scalar(scalar, inner)?;
            }
        }
        Ok(())
    }

    fn after_indicator(&mut self, place: NodePosition, text: &str) {
        if place != NodePosition::Root {
            self.push(" ");
        }
        self.push(text);
    }

    /// Moves to where an element of a collection starts: the first one of an item shares the dash's line.
    fn begin(&mut self, position: usize, indent: usize, inner: usize, place: NodePosition) {
        let shares = position == 0 && matches!(place, NodePosition::Item | NodePosition::ComplexValue);
        if shares {
            self.out.extend(std::iter::repeat_n(' ', inner - indent - 1));
        } else {
            self.line(inner);
        }
    }

    fn entry(&mut self, key: &Key, value: &Value, indent: usize, depth: usize) -> Result<(), CallError> {
        let simple = match key {
            Key::Str(text) => text.len() <= 128 && !style::is_multiline(&text.lossy()),
            _ => true,
        };
        if simple {
            self.scalar(&key.to_value(), indent)?;
            self.push(":");
            return self.node(value, indent, NodePosition::Value, depth + 1);
        }
        self.push("? ");
        self.scalar(&key.to_value(), INDENT_SPACES * ((indent + INDENT_SPACES) / INDENT_SPACES))?;
        self.line(indent);
        self.push(":");
        self.node(value, indent, NodePosition::ComplexValue, depth + 1)
    }

    fn scalar(&mut self, value: &Value, indent: usize) -> Result<(), CallError> {
        match value {
            Value::Missing | Value::Nil => self.push("null"),
            Value::Bool(flag) => self.push(if *flag { "true" } else { "false" }),
            Value::Int(_, number) => self.push(&number.to_string()),
            Value::Uint(_, number) => self.push(&number.to_string()),
            Value::Float(number) => {
                self.push(&format_float(*number));
            }
            Value::Complex(..) => return Err("cannot marshal type: complex128".into()),
            Value::Str(text) => match std::str::from_utf8(text) {
                Ok(text) => self.text(text, indent),
                Err(_) => {
                    let encoded = base64_encode(text);
                    self.push(&format!("!!binary {encoded}"));
                }
            },
            Value::Named(named, number) if *named == crate::value::Named::Duration => {
                self.text(&named.text(*number), indent);
            }
            Value::Named(_, number) => self.push(&number.to_string()),
            Value::Time(time) => self.push(&time.format(RFC3339_NANO)),
            Value::Version(version) => self.text(&version.to_string(), indent),
            // A type that marshals as text, which is quoted because it reads as a timestamp.
            Value::Struct(shape) => {
                if let Some(time) = shape.instant() {
                    self.text(&time.format(RFC3339_NANO), indent);
                }
            }
            Value::List(_) | Value::Map(_) => {}
        }
        self.count()
    }

    fn text(&mut self, text: &str, indent: usize) {
        match style::style(text) {
            Style::Plain => self.push(text),
            Style::Single => self.push(&single_quoted(text)),
            Style::Double => self.push(&double_quoted(text)),
            Style::Literal => self.literal(text, indent),
        }
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.push("|");
        if text.starts_with([' ', '\n']) {
            self.push(&INDENT_SPACES.to_string());
        }
        if !text.ends_with('\n') {
            self.push("-");
        } else if text == "\n" || text.ends_with("\n\n") {
            self.push("+");
        }
        // The emitter breaks the line when it first indents; a text that begins with a break does it itself.
        let mut at_start = true;
        for rune in text.chars() {
            if rune == '\n' {
                self.out.push('\n');
                self.fresh = true;
                at_start = true;
                continue;
            }
            if std::mem::take(&mut at_start) {
                self.line(indent);
            }
            self.out.push(rune);
            self.fresh = false;
        }
    }
}
