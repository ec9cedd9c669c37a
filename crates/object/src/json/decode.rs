//! The reader: recursive descent over bytes.

use super::{DecodeError, MAX_DEPTH, MAX_DUPLICATES, canonical_number, prefix_paths};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

/// A document and what a strict reader complains about.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The document.
    pub value: Value,
    /// Paths of fields given more than once, such as `spec.containers[0].name`, in the order their
    /// second occurrence was read; at most [`MAX_DUPLICATES`].
    pub duplicates: Vec<String>,
}

/// Reads exactly one document; anything but white space after it is an error.
pub fn decode(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let mut reader = Reader { bytes, at: 0, depth: 0, duplicates: Vec::new() };
    let value = reader.document().map_err(|fault| reader.locate(&fault))?;
    Ok(Decoded { value, duplicates: reader.duplicates })
}

/// Reads documents that follow each other with nothing but white space between, as `kubectl` accepts them.
pub fn decode_stream(bytes: &[u8]) -> Result<Vec<Decoded>, DecodeError> {
    let mut reader = Reader { bytes, at: 0, depth: 0, duplicates: Vec::new() };
    let mut documents = Vec::new();
    reader.skip_space();
    while reader.at < bytes.len() {
        let value = reader.value().map_err(|fault| reader.locate(&fault))?;
        documents.push(Decoded { value, duplicates: std::mem::take(&mut reader.duplicates) });
        reader.skip_space();
    }
    Ok(documents)
}

/// What went wrong at `Reader::at`; the message is made once, outside the hot path.
enum Fault {
    /// The byte at the position is wrong here; the text names what was expected.
    Unexpected(&'static str),
    /// The byte at the position is not the one that this word has there.
    Misspelt(&'static str, u8),
    OutOfRange(String),
    TooDeep,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    duplicates: Vec<String>,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Value, Fault> {
        let value = self.value()?;
        self.skip_space();
        if self.at < self.bytes.len() { Err(Fault::Unexpected("after top-level value")) } else { Ok(value) }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Value, Fault> {
        self.skip_space();
        match self.peek() {
            Some(b'"') => self.string().map(Value::String),
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'-' | b'0'..=b'9') => self.number().map(Value::Number),
            Some(b't') => self.literal("true").map(|()| Value::Bool(true)),
            Some(b'f') => self.literal("false").map(|()| Value::Bool(false)),
            Some(b'n') => self.literal("null").map(|()| Value::Null),
            _ => Err(Fault::Unexpected("looking for beginning of value")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, Fault>) -> Result<Value, Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault::TooDeep);
        }
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Value, Fault> {
        let mut map = Map::new();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(map));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(Fault::Unexpected("looking for beginning of object key string"));
            }
            let key = self.string()?;
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(Fault::Unexpected("after object key"));
            }
            self.at += 1;
            let known = self.duplicates.len();
            let value = self.value()?;
            if self.duplicates.len() > known {
                prefix_paths(&mut self.duplicates[known..], &key);
            }
            self.insert(&mut map, key, value);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Object(map));
                }
                _ => return Err(Fault::Unexpected("after object key:value pair")),
            }
        }
    }

    fn insert(&mut self, map: &mut Map<String, Value>, key: String, value: Value) {
        match map.entry(key) {
            Entry::Vacant(place) => {
                place.insert(value);
            }
            Entry::Occupied(mut place) => {
                if self.duplicates.len() < MAX_DUPLICATES && !self.duplicates.contains(place.key()) {
                    self.duplicates.push(place.key().clone());
                }
                place.insert(value);
            }
        }
    }

    fn array(&mut self) -> Result<Value, Fault> {
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            let known = self.duplicates.len();
            items.push(self.value()?);
            if self.duplicates.len() > known {
                let index = items.len() - 1;
                prefix_paths(&mut self.duplicates[known..], &format!("[{index}]"));
            }
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                _ => return Err(Fault::Unexpected("after array element")),
            }
        }
    }

    fn literal(&mut self, word: &'static str) -> Result<(), Fault> {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                return Err(Fault::Misspelt(word, expected));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Number, Fault> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits("in numeric literal")?,
            _ => return Err(Fault::Unexpected("in numeric literal")),
        }
        let mut integral = true;
        if self.peek() == Some(b'.') {
            integral = false;
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            integral = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        // The grammar above admits ASCII only.
        let text = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
        if integral && let Ok(integer) = text.parse::<i64>() {
            return Ok(Number::from(integer));
        }
        let float = text.parse::<f64>().ok().and_then(canonical_number);
        float.ok_or_else(|| Fault::OutOfRange(text.chars().take(40).collect()))
    }

    fn digits(&mut self, place: &'static str) -> Result<(), Fault> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(Fault::Unexpected(place));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    /// Reads the string whose opening quote is at the position.
    fn string(&mut self) -> Result<String, Fault> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let run = &self.bytes[self.at..];
            let stop = run.iter().position(|&b| b == b'"' || b == b'\\' || b < 0x20).unwrap_or(run.len());
            push_lossy(&mut text, &run[..stop]);
            self.at += stop;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.at += 1;
                    let c = self.escape()?;
                    text.push(c);
                }
                _ => return Err(Fault::Unexpected("in string literal")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let c = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode_escape();
            }
            _ => return Err(Fault::Unexpected("in string escape code")),
        };
        self.at += 1;
        Ok(c)
    }

    /// `\uXXXX`, joined with a following low surrogate if it is a high one. Halves become U+FFFD.
    fn unicode_escape(&mut self) -> Result<char, Fault> {
        let first = self.hex4()?;
        if let Some(c) = char::from_u32(first) {
            return Ok(c);
        }
        let after_first = self.at;
        if first < 0xdc00 && self.bytes[self.at..].starts_with(b"\\u") {
            self.at += 2;
            let second = self.hex4()?;
            if (0xdc00..0xe000).contains(&second) {
                let joined = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = after_first;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex4(&mut self) -> Result<u32, Fault> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|b| char::from(b).to_digit(16));
            value = value * 16 + digit.ok_or(Fault::Unexpected("in \\u hexadecimal character escape"))?;
            self.at += 1;
        }
        Ok(value)
    }

    fn locate(&self, fault: &Fault) -> DecodeError {
        let message = match (fault, self.peek()) {
            (Fault::TooDeep, _) => "exceeded max depth".to_owned(),
            (Fault::OutOfRange(text), _) => format!("number {text} is out of the range of a float64"),
            (Fault::Unexpected(_) | Fault::Misspelt(..), None) => "unexpected end of JSON input".to_owned(),
            (Fault::Unexpected(place), Some(byte)) => format!("invalid character {} {place}", quote(byte)),
            (Fault::Misspelt(word, expected), Some(byte)) => {
                format!(
                    "invalid character {} in literal {word} (expecting {})",
                    quote(byte),
                    quote(*expected)
                )
            }
        };
        let before = &self.bytes[..self.at.min(self.bytes.len())];
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|&&b| b != b'\n').count();
        DecodeError { message, line, column }
    }
}

/// Appends bytes as Go does: every byte that is not part of a character becomes one U+FFFD.
pub(crate) fn push_lossy(text: &mut String, bytes: &[u8]) {
    if let Ok(valid) = std::str::from_utf8(bytes) {
        text.push_str(valid);
        return;
    }
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
}

/// A byte as Go quotes it in these messages.
fn quote(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        0x07 => r"'\a'".to_owned(),
        0x08 => r"'\b'".to_owned(),
        0x0b => r"'\v'".to_owned(),
        0x0c => r"'\f'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        0..0x20 | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}
