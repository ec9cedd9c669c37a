//! Base64 and base32, with the decoders' errors as their answers.

use ::base64::Engine;
use ::base64::engine::general_purpose::STANDARD;

use super::args::text;
use crate::functions::{Native, Type, fixed};

const STR: &[Type] = &[Type::Str];

pub const FUNCTIONS: &[Native] = &[
    fixed("b64enc", STR, |env, args| env.string(base64(text(args, 0)?))),
    fixed("b64dec", STR, |env, args| match base64_decode(text(args, 0)?) {
        Ok(bytes) => env.string(bytes),
        Err(problem) => env.string(problem),
    }),
    fixed("b32enc", STR, |env, args| env.string(base32(text(args, 0)?))),
    fixed("b32dec", STR, |env, args| match base32_decode(text(args, 0)?) {
        Ok(bytes) => env.string(bytes),
        Err(problem) => env.string(problem),
    }),
];

pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Where a decoder gave up, as Go reports it.
fn illegal(kind: &str, at: usize) -> String {
    format!("illegal {kind} data at input byte {at}")
}

/// Go's standard base64: newlines are skipped, padding is required.
pub fn base64_decode(text: &[u8]) -> Result<Vec<u8>, String> {
    let (bytes, problem) = base64_prefix(text);
    problem.map_or(Ok(bytes), Err)
}

/// What can be decoded of a base64 text, up to the first group of four that is broken, and what is wrong with it.
pub fn base64_prefix(text: &[u8]) -> (Vec<u8>, Option<String>) {
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

fn base32_decode(text: &[u8]) -> Result<Vec<u8>, String> {
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
    (size, bits, kind): (usize, u32, &str),
    value: impl Fn(u8) -> Option<u8>,
) -> Result<(), String> {
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
                        // Only base64 minds what follows the padding.
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
    (at, kind, length): (usize, &str, usize),
) -> Result<(), String> {
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

fn base32(bytes: &[u8]) -> String {
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
