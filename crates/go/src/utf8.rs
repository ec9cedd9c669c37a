//! UTF-8 as Go decodes it: each invalid byte becomes U+FFFD.

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

/// Writes a rune at the end of `out`.
pub fn push_rune(out: &mut Vec<u8>, rune: char) {
    out.extend_from_slice(rune.encode_utf8(&mut [0; 4]).as_bytes());
}

/// How many runes `bytes` decode to.
pub fn rune_count(bytes: &[u8]) -> usize {
    runes(bytes).count()
}
