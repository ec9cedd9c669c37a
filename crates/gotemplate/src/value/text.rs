//! Go strings: immutable bytes, usually but not always UTF-8.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Str(Arc<[u8]>);

impl Str {
    pub fn lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl Deref for Str {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", self.lossy())
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Str {
        Str(Arc::from(text.as_bytes()))
    }
}

impl From<String> for Str {
    fn from(text: String) -> Str {
        Str(Arc::from(text.into_bytes()))
    }
}

impl From<&[u8]> for Str {
    fn from(bytes: &[u8]) -> Str {
        Str(Arc::from(bytes))
    }
}

impl From<Vec<u8>> for Str {
    fn from(bytes: Vec<u8>) -> Str {
        Str(Arc::from(bytes))
    }
}

/// The first rune of `bytes` and its width; invalid UTF-8 decodes as U+FFFD of width one, as in Go.
pub fn decode_rune(bytes: &[u8]) -> (char, usize) {
    let Some(first) = bytes.first() else { return ('\u{FFFD}', 0) };
    if *first < 0x80 {
        return (char::from(*first), 1);
    }
    let width = match first {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return ('\u{FFFD}', 1),
    };
    let decoded = bytes.get(..width).and_then(|bytes| std::str::from_utf8(bytes).ok());
    match decoded.and_then(|text| text.chars().next()) {
        Some(rune) => (rune, width),
        None => ('\u{FFFD}', 1),
    }
}

/// The runes of `bytes` with the offset and width of each.
pub fn runes(bytes: &[u8]) -> impl Iterator<Item = (usize, char, usize)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= bytes.len() {
            return None;
        }
        let (rune, width) = decode_rune(&bytes[at..]);
        at += width;
        Some((at - width, rune, width))
    })
}

pub fn rune_count(bytes: &[u8]) -> usize {
    runes(bytes).count()
}
