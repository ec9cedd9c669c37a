//! Protobuf's wire format, the part that is needed here, and YAML that is also JSON.

use serde_json::Value;
use std::fmt::Write;

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

fn tag(out: &mut Vec<u8>, number: u32, wire_type: u32) {
    varint(out, u64::from(number << 3 | wire_type));
}

/// A string, unless it is empty.
pub(super) fn text(out: &mut Vec<u8>, number: u32, value: &str) {
    if !value.is_empty() {
        element(out, number, value);
    }
}

/// A string of a repeated field.
pub(super) fn element(out: &mut Vec<u8>, number: u32, value: &str) {
    tag(out, number, BYTES);
    varint(out, value.len() as u64);
    out.extend_from_slice(value.as_bytes());
}

/// An `int64` or `bool`, unless it is zero. Negative numbers take ten bytes, as two's complement.
pub(super) fn integer(out: &mut Vec<u8>, number: u32, value: i64) {
    if value != 0 {
        tag(out, number, VARINT);
        varint(out, value.cast_unsigned());
    }
}

/// A `bool` whose presence selects the alternative.
pub(super) fn chosen_flag(out: &mut Vec<u8>, number: u32, value: bool) {
    tag(out, number, VARINT);
    out.push(value.into());
}

pub(super) fn double(out: &mut Vec<u8>, number: u32, value: f64) {
    if value.to_bits() != 0 {
        tag(out, number, FIXED64);
        out.extend_from_slice(&value.to_le_bytes());
    }
}

/// A message. Its length stands before it and is known after it, so what was written moves by the length's size.
pub(super) fn nested(out: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
    tag(out, number, BYTES);
    let start = out.len();
    write(out);
    let mut length = Vec::with_capacity(5);
    varint(&mut length, (out.len() - start) as u64);
    out.splice(start..start, length);
}

/// The value as JSON that YAML readers take for the same value. They refuse or fold some characters that JSON
/// allows in strings as they are.
pub(super) fn yaml(value: &Value) -> String {
    let json = value.to_string();
    if json.is_ascii() && !json.contains('\u{7f}') {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}
