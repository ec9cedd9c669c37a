//! One field of output: integers, floats and strings laid out by width, precision and flags.

use super::Printer;
use crate::strconv::{Printable, can_backquote, format_float, quote_bytes, quote_rune};
use crate::unicode;
use crate::utf8::{rune_count, runes};

impl Printer {
    fn padding(&mut self, count: usize) {
        // Zero padding only ever goes to the left.
        let fill = if self.flags.zero && !self.flags.minus { b'0' } else { b' ' };
        if self.room(count) {
            self.out.resize(self.out.len() + count, fill);
        }
    }

    pub(super) fn pad(&mut self, text: &[u8]) {
        let missing = self.flags.width.unwrap_or(0).saturating_sub(rune_count(text));
        if missing == 0 {
            self.write(text);
        } else if self.flags.minus {
            self.write(text);
            self.padding(missing);
        } else {
            self.padding(missing);
            self.write(text);
        }
    }

    fn pad_with_spaces(&mut self, text: &[u8]) {
        let zero = std::mem::take(&mut self.flags.zero);
        self.pad(text);
        self.flags.zero = zero;
    }

    fn truncate<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        match self.flags.precision {
            Some(limit) => {
                let end = runes(text).nth(limit).map_or(text.len(), |(at, _, _)| at);
                &text[..end]
            }
            None => text,
        }
    }

    pub(super) fn string_s(&mut self, text: &[u8]) {
        let text = self.truncate(text);
        self.pad(text);
    }

    /// `%+q` writes ASCII alone.
    fn runes_as_they_are(&self) -> Printable {
        if self.flags.plus { Printable::Ascii } else { Printable::Unicode }
    }

    pub(super) fn string_q(&mut self, text: &[u8]) {
        let text = self.truncate(text);
        if self.flags.sharp && can_backquote(text) {
            self.pad(&[b"`", text, b"`"].concat());
        } else {
            self.pad(quote_bytes(text, self.runes_as_they_are()).as_bytes());
        }
    }

    /// `%x` of bytes, with a space between and `0x` before as the flags ask.
    pub(super) fn hex(&mut self, bytes: &[u8], upper: bool) {
        let bytes = &bytes[..self.flags.precision.unwrap_or(bytes.len()).min(bytes.len())];
        if bytes.is_empty() {
            if let Some(width) = self.flags.width {
                self.padding(width);
            }
            return;
        }
        if !self.room(bytes.len() * 5) {
            return;
        }
        let mut text = Vec::with_capacity(bytes.len() * 2);
        for (position, byte) in bytes.iter().enumerate() {
            if self.flags.space && position > 0 {
                text.push(b' ');
            }
            if self.flags.sharp && (position == 0 || self.flags.space) {
                text.extend_from_slice(if upper { b"0X" } else { b"0x" });
            }
            let pair = if upper { format!("{byte:02X}") } else { format!("{byte:02x}") };
            text.extend_from_slice(pair.as_bytes());
        }
        self.pad(&text);
    }

    /// Writes an integer; false if it has no form under the verb.
    pub(super) fn integer(&mut self, magnitude: u64, negative: bool, signed: bool, verb: char) -> bool {
        let code = if negative { u64::MAX } else { magnitude };
        match verb {
            'v' if self.flags.sharp_v && !signed => {
                let sharp = std::mem::replace(&mut self.flags.sharp, true);
                self.digits(magnitude, negative, 16, verb);
                self.flags.sharp = sharp;
            }
            'v' | 'd' => self.digits(magnitude, negative, 10, verb),
            'b' => self.digits(magnitude, negative, 2, verb),
            'o' | 'O' => self.digits(magnitude, negative, 8, verb),
            'x' | 'X' => self.digits(magnitude, negative, 16, verb),
            'c' => {
                let rune = u32::try_from(code).ok().and_then(char::from_u32).unwrap_or('\u{FFFD}');
                self.pad(rune.encode_utf8(&mut [0; 4]).as_bytes());
            }
            'q' => self.pad(quote_rune(code, self.runes_as_they_are()).as_bytes()),
            'U' => self.unicode(if negative { magnitude.wrapping_neg() } else { magnitude }),
            _ => return false,
        }
        true
    }

    fn digits(&mut self, magnitude: u64, negative: bool, base: u32, verb: char) {
        let signed = negative || self.flags.plus || self.flags.space;
        let least = match self.flags.precision {
            Some(0) if magnitude == 0 => {
                let width = self.flags.width.unwrap_or(0);
                let zero = std::mem::take(&mut self.flags.zero);
                self.padding(width);
                self.flags.zero = zero;
                return;
            }
            Some(precision) => precision,
            None if self.flags.zero && !self.flags.minus => {
                self.flags.width.unwrap_or(0).saturating_sub(usize::from(signed))
            }
            None => 0,
        };
        if !self.room(least) {
            return;
        }
        let digits = match (base, verb) {
            (2, _) => format!("{magnitude:b}"),
            (8, _) => format!("{magnitude:o}"),
            (16, 'X') => format!("{magnitude:X}"),
            (16, _) => format!("{magnitude:x}"),
            _ => magnitude.to_string(),
        };
        let mut text = digits;
        if text.len() < least {
            text.insert_str(0, &"0".repeat(least - text.len()));
        }
        if self.flags.sharp {
            match base {
                2 => text.insert_str(0, "0b"),
                8 if !text.starts_with('0') => text.insert(0, '0'),
                16 => text.insert_str(0, if verb == 'X' { "0X" } else { "0x" }),
                _ => {}
            }
        }
        if verb == 'O' {
            text.insert_str(0, "0o");
        }
        if negative {
            text.insert(0, '-');
        } else if self.flags.plus {
            text.insert(0, '+');
        } else if self.flags.space {
            text.insert(0, ' ');
        }
        self.pad_with_spaces(text.as_bytes());
    }

    fn unicode(&mut self, code: u64) {
        let least = self.flags.precision.filter(|precision| *precision > 4).unwrap_or(4);
        if !self.room(least) {
            return;
        }
        let mut text = format!("U+{code:0least$X}");
        let rune = u32::try_from(code).ok().and_then(char::from_u32);
        if let Some(rune) = rune.filter(|rune| self.flags.sharp && unicode::is_print(*rune)) {
            text.push_str(&format!(" '{rune}'"));
        }
        self.pad_with_spaces(text.as_bytes());
    }

    /// Writes a float; false if it has no form under the verb.
    pub(super) fn float(&mut self, number: f64, verb: char) -> bool {
        let (form, default) = match verb {
            'v' => (b'g', -1),
            'b' | 'g' | 'G' | 'x' | 'X' => (verb as u8, -1),
            'f' | 'e' | 'E' => (verb as u8, 6),
            'F' => (b'f', 6),
            _ => return false,
        };
        self.float_as(number, form, default);
        true
    }

    fn float_as(&mut self, number: f64, form: u8, default: i32) {
        let precision = match self.flags.precision {
            Some(precision) => i32::try_from(precision).unwrap_or(i32::MAX),
            None => default,
        };
        if !self.room(precision.max(0) as usize) {
            return;
        }
        let mut text = format_float(number, form, precision);
        if !text.starts_with(['-', '+']) {
            text.insert(0, if self.flags.space && !self.flags.plus { ' ' } else { '+' });
        } else if self.flags.space && !self.flags.plus && text.starts_with('+') {
            text.replace_range(..1, " ");
        }
        if !number.is_finite() {
            if number.is_nan() && !self.flags.space && !self.flags.plus {
                text.remove(0);
            }
            // Go drops the sign of +Inf only through the general path below.
            if number.is_infinite() || self.flags.space || self.flags.plus || number.is_nan() {
                return self.pad_with_spaces(text.as_bytes());
            }
        }
        if self.flags.sharp && form != b'b' {
            text = keep_point(&text, form, precision);
        }
        if self.flags.plus || !text.starts_with('+') {
            let missing = self.flags.width.unwrap_or(0).saturating_sub(text.len());
            if self.flags.zero && !self.flags.minus && missing > 0 {
                let (sign, digits) = text.split_at(1);
                self.write_str(sign);
                self.padding(missing);
                self.write_str(digits);
            } else {
                self.pad(text.as_bytes());
            }
            return;
        }
        self.pad(&text.as_bytes()[1..]);
    }
}

/// `%#g`: always a decimal point, and trailing zeros up to the precision.
fn keep_point(text: &str, form: u8, precision: i32) -> String {
    let mut wanted = match form {
        b'g' | b'G' | b'x' => {
            if precision == -1 {
                6
            } else {
                precision
            }
        }
        _ => 0,
    };
    let hex = matches!(form, b'x' | b'X');
    let is_tail = |rune: char| matches!(rune, 'p' | 'P') || !hex && matches!(rune, 'e' | 'E');
    let tail_at = text[1..].find(is_tail).map_or(text.len(), |at| at + 1);
    let (number, tail) = text.split_at(tail_at);
    let mut seen = false;
    for digit in number[1..].chars().filter(|rune| *rune != '.') {
        seen |= digit != '0';
        wanted -= i32::from(seen);
    }
    let mut out = number.to_owned();
    if !number.contains('.') {
        if number.len() == 2 && number.ends_with('0') {
            wanted -= 1;
        }
        out.push('.');
    }
    out.push_str(&"0".repeat(usize::try_from(wanted).unwrap_or(0)));
    out.push_str(tail);
    out
}
