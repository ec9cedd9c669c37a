//! Percent-encoding, by the part of a URL that a byte is in.

use super::quoted;

/// A part of a URL, each with its own set of bytes that need no escape.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Path,
    Host,
    /// The zone of an IPv6 address.
    Zone,
    User,
    /// A key or a value of a query.
    Query,
    Fragment,
}

/// Decodes `%xx`, and in a query `+`. The error is worded as Go's.
pub(super) fn unescape(text: &[u8], part: Part) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            b'%' => {
                let bad = |length: usize| format!("invalid URL escape {}", quoted(&rest[..length]));
                let decoded = after.get(..2).and_then(hexadecimal).ok_or_else(|| bad(rest.len().min(3)))?;
                if !may_be_escaped(decoded, part) {
                    return Err(bad(3));
                }
                out.push(decoded);
                rest = &after[2..];
                continue;
            }
            b'+' if part == Part::Query => out.push(b' '),
            _ if matches!(part, Part::Host | Part::Zone) && byte < 0x80 && should_escape(byte, part) => {
                return Err(format!("invalid character {} in host name", quoted(&[byte])));
            }
            _ => out.push(byte),
        }
        rest = after;
    }
    Ok(out)
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(digits[0])? << 4 | digit(digits[1])?)
}

/// In a host only bytes outside ASCII and the percent sign may be escaped; in a zone what a host may contain, and the
/// space, which Windows puts there.
fn may_be_escaped(byte: u8, part: Part) -> bool {
    match part {
        Part::Host => byte >= 0x80 || byte == b'%',
        Part::Zone => matches!(byte, b'%' | b' ') || !should_escape(byte, Part::Host),
        _ => true,
    }
}

fn should_escape(byte: u8, part: Part) -> bool {
    if byte.is_ascii_alphanumeric() {
        return false;
    }
    if matches!(part, Part::Host | Part::Zone) && b"!$&'()*+,;=:[]<>\"".contains(&byte) {
        return false;
    }
    match byte {
        b'-' | b'_' | b'.' | b'~' => false,
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match part {
            Part::Path => byte == b'?',
            Part::User => matches!(byte, b'@' | b'/' | b'?' | b':'),
            Part::Fragment => false,
            Part::Host | Part::Zone | Part::Query => true,
        },
        b'!' | b'(' | b')' | b'*' if part == Part::Fragment => false,
        _ => true,
    }
}

/// Encodes what may not stand in a part.
pub(super) fn escape(text: &[u8], part: Part) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        if should_escape(*byte, part) {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            out.push(*byte);
        }
    }
    out
}

/// Whether an encoded text can be kept as it is, although it would be encoded otherwise.
pub(super) fn valid_encoded(text: &[u8], part: Part) -> bool {
    text.iter().all(|byte| b"!$&'()*+,;=:@[]%".contains(byte) || !should_escape(*byte, part))
}
