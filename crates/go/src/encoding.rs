//! Packages encoding/base64, encoding/base32 and encoding/hex.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// `hex.EncodeToString`: two lower-case digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// `hex.DecodeString`: digits of either case; `None` if the text is anything else.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok()).collect()
}

/// `base64.StdEncoding.EncodeToString`.
pub fn base64_encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Where a decoder gave up, as Go reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("illegal {encoding} data at input byte {at}")]
pub struct DecodeError {
    /// `base64` or `base32`.
    pub encoding: &'static str,
    /// The position of the byte.
    pub at: usize,
}

fn illegal(encoding: &'static str, at: usize) -> DecodeError {
    DecodeError { encoding, at }
}

/// `base64.StdEncoding.DecodeString`: newlines are skipped, padding is required. The error is worded as Go's.
pub fn base64_decode(text: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let (bytes, problem) = base64_prefix(text);
    problem.map_or(Ok(bytes), Err)
}

/// What can be decoded of a base64 text, up to the first group of four that is broken, and what is wrong with it.
pub fn base64_prefix(text: &[u8]) -> (Vec<u8>, Option<DecodeError>) {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let problem = decode(&mut bytes, text, (4, 6, "base64"), value).err();
    (bytes, problem)
}

/// `base32.StdEncoding.DecodeString`.
pub fn base32_decode(text: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    };
    // Go drops line breaks first here, and counts positions without them.
    let packed: Vec<u8> = text.iter().copied().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    let mut bytes = Vec::with_capacity(packed.len());
    decode(&mut bytes, &packed, (8, 5, "base32"), value)?;
    Ok(bytes)
}

/// Decodes quanta of `size` characters of `bits` bits each.
fn decode(
    out: &mut Vec<u8>,
    text: &[u8],
    (size, bits, kind): (usize, u32, &'static str),
    value: impl Fn(u8) -> Option<u8>,
) -> Result<(), DecodeError> {
    let mut input = text.iter().copied().enumerate().filter(|(_, byte)| !matches!(byte, b'\n' | b'\r'));
    loop {
        let (mut buffer, mut count) = (0u64, 0usize);
        while count < size {
            match input.next() {
                None if count == 0 => return Ok(()),
                None => return Err(illegal(kind, text.len() - count.min(text.len()))),
                Some((at, b'=')) => {
                    padding(&mut input, size, count, (at, kind, text.len()))?;
                    flush(out, buffer, count, bits);
                    return match input.next() {
                        // Only base64 refuses what follows the padding.
                        Some((at, _)) if size == 4 => Err(illegal(kind, at)),
                        _ => Ok(()),
                    };
                }
                Some((at, byte)) => match value(byte) {
                    Some(digit) => {
                        buffer = buffer << bits | u64::from(digit);
                        count += 1;
                    }
                    None => return Err(illegal(kind, at)),
                },
            }
        }
        flush(out, buffer, count, bits);
    }
}

/// Checks that the needed padding follows.
fn padding(
    input: &mut impl Iterator<Item = (usize, u8)>,
    size: usize,
    count: usize,
    (at, kind, length): (usize, &'static str, usize),
) -> Result<(), DecodeError> {
    let base32 = size == 8;
    let after = length - at - 1;
    if count < 2 || base32 && after >= size {
        return Err(illegal(kind, at));
    }
    if base32 && after + count < size - 1 {
        return Err(illegal(kind, length));
    }
    for _ in count + 1..size {
        match input.next() {
            Some((_, b'=')) => {}
            Some((at, _)) => return Err(illegal(kind, at - 1)),
            None => return Err(illegal(kind, length)),
        }
    }
    if base32 && matches!(count, 3 | 6) {
        return Err(illegal(kind, at));
    }
    Ok(())
}

fn flush(out: &mut Vec<u8>, buffer: u64, count: usize, bits: u32) {
    let total = u32::try_from(count).unwrap_or(0) * bits;
    for index in 1..=total / 8 {
        out.push((buffer >> (total - index * 8)) as u8);
    }
}

/// `base32.StdEncoding.EncodeToString`.
pub fn base32_encode(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut out = String::new();
    for chunk in bytes.chunks(5) {
        let mut buffer = [0u8; 8];
        buffer[3..3 + chunk.len()].copy_from_slice(chunk);
        let number = u64::from_be_bytes(buffer);
        let characters = (chunk.len() * 8).div_ceil(5);
        for index in 0..8 {
            let digit = (number >> (35 - index * 5) & 31) as usize;
            out.push(if index < characters { char::from(ALPHABET[digit]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits() {
        assert_eq!(hex(&[0, 0x1f, 0xff]), "001fff");
    }

    #[test]
    fn base64_is_read_as_go_reads_it() {
        assert_eq!(base64_decode(b"YW\nJj").as_deref(), Ok(b"abc".as_slice()));
        assert_eq!(base64_decode(b"YR==").as_deref(), Ok(b"a".as_slice()));
        for (text, at) in [("Y", 0), ("YWJ", 0), ("YW?j", 2), ("YWJj=", 4)] {
            let error = base64_decode(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), format!("illegal base64 data at input byte {at}"), "{text}");
        }
    }

    #[test]
    fn hexadecimal_digits_are_read_in_pairs() {
        assert_eq!(unhex("00fFa5"), Some(vec![0, 255, 165]));
        assert_eq!(unhex(&hex(&[1, 2, 254])), Some(vec![1, 2, 254]));
        for refused in ["0", "0g", "+1", "é0"] {
            assert_eq!(unhex(refused), None, "{refused}");
        }
    }
}
