//! The writer. It keeps the two facts that libyaml's layout depends on: whether the line so far holds
//! nothing but indentation (`indention`), and whether the last thing written was white space.

use super::order;
use super::scalar::format_number;
use super::style::{Style, choose};
use serde_json::{Map, Value};
use transom_go::yaml::{escape, is_break, is_printable, reads_as_text};

/// Lines longer than this are folded at the next space, where the style permits.
const LINE_WIDTH_COLUMNS: usize = 80;
/// Longer keys are written in the form `? key`.
const MAX_SIMPLE_KEY_BYTES: usize = 128;

/// One document, ending in a line break.
pub fn write(value: &Value) -> String {
    let mut writer = Writer { out: String::new(), column: 0, whitespace: true, indention: true };
    writer.node(value, None, Context::Root);
    writer.indent(0);
    writer.out
}

/// What a node is part of; a sequence directly below a key is not indented.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Root,
    Sequence,
    Mapping,
}

struct Writer {
    out: String,
    column: usize,
    whitespace: bool,
    indention: bool,
}

impl Writer {
    /// `indent` is that of the collection the node is in; `None` at the root.
    fn node(&mut self, value: &Value, indent: Option<usize>, context: Context) {
        match value {
            Value::Object(map) if map.is_empty() => self.indicator("{}", false),
            Value::Array(items) if items.is_empty() => self.indicator("[]", false),
            Value::Object(map) => self.mapping(map, indent.map_or(0, |i| i + 2)),
            Value::Array(items) => {
                let indentless = context == Context::Mapping && !self.indention;
                let inner = indent.map_or(0, |i| if indentless { i } else { i + 2 });
                for item in items {
                    self.indent(inner);
                    self.indicator("-", true);
                    self.node(item, Some(inner), Context::Sequence);
                }
            }
            Value::Null => self.plain_word("null"),
            Value::Bool(true) => self.plain_word("true"),
            Value::Bool(false) => self.plain_word("false"),
            Value::Number(number) => self.plain_word(&format_number(number)),
            Value::String(text) => self.string(text, indent.map_or(2, |i| i + 2), false),
        }
    }

    fn mapping(&mut self, map: &Map<String, Value>, indent: usize) {
        let mut entries: Vec<(&str, &Value)> = map.iter().map(|(key, value)| (key.as_str(), value)).collect();
        order::sort(&mut entries);
        for (key, value) in entries {
            self.indent(indent);
            let simple = key.len() <= MAX_SIMPLE_KEY_BYTES && !key.chars().any(is_break);
            if simple {
                self.string(key, indent + 2, true);
                self.put(':');
                self.whitespace = false;
                self.indention = false;
            } else {
                self.indicator("?", true);
                self.string(key, indent + 2, false);
                self.indent(indent);
                self.indicator(":", true);
            }
            self.node(value, Some(indent), Context::Mapping);
        }
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn line_break(&mut self, c: char) {
        self.out.push(c);
        self.column = 0;
    }

    /// Goes to the column `indent` of a line that holds nothing else yet.
    fn indent(&mut self, indent: usize) {
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.line_break('\n');
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn separate(&mut self) {
        if !self.whitespace {
            self.put(' ');
        }
    }

    fn indicator(&mut self, text: &str, keeps_indention: bool) {
        self.separate();
        text.chars().for_each(|c| self.put(c));
        self.whitespace = false;
        self.indention &= keeps_indention;
    }

    fn plain_word(&mut self, text: &str) {
        self.indicator(text, false);
    }

    fn string(&mut self, text: &str, indent: usize, simple_key: bool) {
        let chars: Vec<char> = text.chars().collect();
        let wish = if text.contains('\n') {
            Style::Literal
        } else if reads_as_text(text) || (text == "<<" && !simple_key) {
            // Upstream leaves a key `<<` plain and so turns it into a merge; we do not lose it.
            Style::Plain
        } else {
            Style::DoubleQuoted
        };
        match choose(wish, text, simple_key) {
            Style::Plain => {
                self.separate();
                self.folded(&chars, indent, !simple_key, false);
            }
            Style::SingleQuoted => {
                self.indicator("'", false);
                self.folded(&chars, indent, !simple_key, true);
                self.put('\'');
            }
            Style::DoubleQuoted => self.double_quoted(&chars, indent, !simple_key),
            Style::Literal => {
                self.literal(&chars, indent);
                return;
            }
        }
        self.whitespace = false;
        self.indention = false;
    }

    /// The inside of plain and single-quoted scalars.
    fn folded(&mut self, text: &[char], indent: usize, fold: bool, quoted: bool) {
        let mut after_space = false;
        let mut after_break = false;
        for (i, &c) in text.iter().enumerate() {
            if c == ' ' {
                let inner = !quoted || (i > 0 && i + 1 < text.len());
                let before_space = text.get(i + 1) == Some(&' ');
                if fold && !after_space && self.column > LINE_WIDTH_COLUMNS && inner && !before_space {
                    self.indent(indent);
                } else {
                    self.put(c);
                }
                after_space = true;
            } else if is_break(c) {
                if !after_break && c == '\n' {
                    self.line_break('\n');
                }
                self.line_break(c);
                self.indention = true;
                after_break = true;
            } else {
                if after_break {
                    self.indent(indent);
                }
                if quoted && c == '\'' {
                    self.put('\'');
                }
                self.put(c);
                self.indention = false;
                after_space = false;
                after_break = false;
            }
        }
    }

    fn double_quoted(&mut self, text: &[char], indent: usize, fold: bool) {
        self.indicator("\"", false);
        // Upstream tests whether the text, not the character, begins with a byte order mark.
        let marked = text.first() == Some(&'\u{feff}');
        let mut after_space = false;
        for (i, &c) in text.iter().enumerate() {
            if marked || !is_printable(c) || is_break(c) || c == '"' || c == '\\' {
                self.escape(c);
                after_space = false;
            } else if c == ' ' {
                if fold && !after_space && self.column > LINE_WIDTH_COLUMNS && i > 0 && i + 1 < text.len() {
                    self.indent(indent);
                    if text[i + 1] == ' ' {
                        self.put('\\');
                    }
                } else {
                    self.put(c);
                }
                after_space = true;
            } else {
                self.put(c);
                after_space = false;
            }
        }
        self.put('"');
    }

    fn escape(&mut self, c: char) {
        escape(c).chars().for_each(|c| self.put(c));
    }

    fn literal(&mut self, text: &[char], indent: usize) {
        self.indicator("|", false);
        if text.first().is_some_and(|&c| c == ' ' || is_break(c)) {
            self.put('2');
        }
        match text {
            [.., last] if !is_break(*last) => self.put('-'),
            [.., before, _] if !is_break(*before) => {}
            _ => self.put('+'),
        }
        self.line_break('\n');
        self.whitespace = true;
        self.indention = true;
        let mut after_break = true;
        for &c in text {
            if is_break(c) {
                self.line_break(c);
                self.indention = true;
                after_break = true;
            } else {
                if after_break {
                    self.indent(indent);
                }
                self.put(c);
                self.indention = false;
                after_break = false;
            }
        }
    }
}
