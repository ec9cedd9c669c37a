//! The directive: flags, width, precision, argument indexes, and what is printed when they are wrong.

use super::{Flags, Operand, Printer, View};
use crate::utf8::decode_rune;

/// The position of the reader in one format string.
struct Cursor<'a> {
    format: &'a [u8],
    at: usize,
    next_arg: usize,
    /// The previous thing read was an index such as `[2]`.
    after_index: bool,
    reordered: bool,
    good_index: bool,
}

impl Printer {
    pub(super) fn print<V: Operand>(&mut self, args: &[V]) {
        let mut after_string = false;
        for (position, arg) in args.iter().enumerate() {
            let is_string = matches!(arg.view(), View::Str(_));
            if position > 0 && !is_string && !after_string {
                self.write(b" ");
            }
            self.arg(arg, 'v');
            after_string = is_string;
        }
    }

    pub(super) fn println<V: Operand>(&mut self, args: &[V]) {
        for (position, arg) in args.iter().enumerate() {
            if position > 0 {
                self.write(b" ");
            }
            self.arg(arg, 'v');
        }
        self.write(b"\n");
    }

    pub(super) fn printf<V: Operand>(&mut self, format: &[u8], args: &[V]) {
        let mut cursor =
            Cursor { format, at: 0, next_arg: 0, after_index: false, reordered: false, good_index: true };
        while cursor.at < format.len() && self.failure.is_none() {
            let rest = &format[cursor.at..];
            let text = rest.iter().position(|byte| *byte == b'%').unwrap_or(rest.len());
            self.write(&rest[..text]);
            cursor.at += text;
            if cursor.at < format.len() {
                cursor.at += 1;
                self.directive(&mut cursor, args);
            }
        }
        if !cursor.reordered && cursor.next_arg < args.len() {
            self.extra(&args[cursor.next_arg..]);
        }
    }

    fn directive<V: Operand>(&mut self, cursor: &mut Cursor<'_>, args: &[V]) {
        cursor.good_index = true;
        self.flags = Flags::default();
        cursor.after_index = false;
        self.read_flags(cursor);
        cursor.read_index(args.len());
        self.read_width(cursor, args);
        self.read_precision(cursor, args);
        if !cursor.after_index {
            cursor.read_index(args.len());
        }
        if cursor.at >= cursor.format.len() {
            self.write(b"%!(NOVERB)");
            return;
        }
        let (verb, width) = decode_rune(&cursor.format[cursor.at..]);
        cursor.at += width;
        if verb == '%' {
            self.write(b"%");
        } else if !cursor.good_index {
            self.report(verb, "(BADINDEX)");
        } else if let Some(arg) = args.get(cursor.next_arg) {
            if verb == 'v' || verb == 'w' {
                self.flags.sharp_v = std::mem::take(&mut self.flags.sharp);
                self.flags.plus_v = std::mem::take(&mut self.flags.plus);
            }
            self.arg(arg, verb);
            cursor.next_arg += 1;
        } else {
            self.report(verb, "(MISSING)");
        }
    }

    fn read_flags(&mut self, cursor: &mut Cursor<'_>) {
        while let Some(byte) = cursor.format.get(cursor.at) {
            match byte {
                b'#' => self.flags.sharp = true,
                b'0' => self.flags.zero = true,
                b'+' => self.flags.plus = true,
                b'-' => self.flags.minus = true,
                b' ' => self.flags.space = true,
                _ => break,
            }
            cursor.at += 1;
        }
    }

    fn read_width<V: Operand>(&mut self, cursor: &mut Cursor<'_>, args: &[V]) {
        if cursor.format.get(cursor.at) == Some(&b'*') {
            cursor.at += 1;
            match cursor.star(args) {
                Some(width) => {
                    if width < 0 {
                        self.flags.minus = true;
                        self.flags.zero = false;
                    }
                    self.flags.width = usize::try_from(width.unsigned_abs()).ok();
                }
                None => self.write(b"%!(BADWIDTH)"),
            }
            cursor.after_index = false;
        } else {
            self.flags.width = cursor.number();
            if cursor.after_index && self.flags.width.is_some() {
                cursor.good_index = false;
            }
        }
    }

    fn read_precision<V: Operand>(&mut self, cursor: &mut Cursor<'_>, args: &[V]) {
        // A trailing dot is left for the verb, where it shows as a bad one.
        if cursor.at + 1 >= cursor.format.len() || cursor.format[cursor.at] != b'.' {
            return;
        }
        cursor.at += 1;
        if cursor.after_index {
            cursor.good_index = false;
        }
        cursor.read_index(args.len());
        if cursor.format.get(cursor.at) == Some(&b'*') {
            cursor.at += 1;
            match cursor.star(args).and_then(|precision| usize::try_from(precision).ok()) {
                Some(precision) => self.flags.precision = Some(precision),
                None => self.write(b"%!(BADPREC)"),
            }
            cursor.after_index = false;
        } else {
            self.flags.precision = Some(cursor.number().unwrap_or(0));
        }
    }

    fn report(&mut self, verb: char, problem: &str) {
        self.write(b"%!");
        self.write_rune(verb);
        self.write_str(problem);
    }

    fn extra<V: Operand>(&mut self, args: &[V]) {
        self.flags = Flags::default();
        self.write(b"%!(EXTRA ");
        for (position, arg) in args.iter().enumerate() {
            if position > 0 {
                self.write(b", ");
            }
            if arg.view() == View::Nil {
                self.write(b"<nil>");
            } else {
                self.write_str(&arg.type_name());
                self.write(b"=");
                self.arg(arg, 'v');
            }
        }
        self.write(b")");
    }
}

/// Go ignores widths, precisions and indexes beyond a million.
const MAX_WIDTH: i64 = 1_000_000;

impl Cursor<'_> {
    fn number(&mut self) -> Option<usize> {
        let start = self.at;
        let mut value: i64 = 0;
        while let Some(digit) = self.format.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            if value > MAX_WIDTH {
                // Too large: Go gives up on the directive and resumes at its end.
                self.at = self.format.len();
                return None;
            }
            value = value * 10 + i64::from(digit - b'0');
            self.at += 1;
        }
        if self.at == start { None } else { usize::try_from(value).ok() }
    }

    /// Reads `[n]` if present; a bad one spoils the directive.
    fn read_index(&mut self, count: usize) {
        self.after_index = false;
        if self.format.get(self.at) != Some(&b'[') {
            return;
        }
        self.reordered = true;
        let rest = &self.format[self.at..];
        let Some(close) = rest.iter().position(|byte| *byte == b']').filter(|_| rest.len() >= 3) else {
            self.good_index = false;
            self.at += 1;
            return;
        };
        let digits = &rest[1..close];
        let index = std::str::from_utf8(digits)
            .ok()
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse::<usize>().ok())
            .filter(|index| *index <= MAX_WIDTH as usize);
        self.at += close + 1;
        match index {
            Some(index) if index >= 1 && index <= count => {
                self.next_arg = index - 1;
                self.after_index = true;
            }
            index => {
                self.good_index = false;
                self.after_index = index.is_some();
            }
        }
    }

    fn star<V: Operand>(&mut self, args: &[V]) -> Option<i64> {
        let arg = args.get(self.next_arg)?;
        self.next_arg += 1;
        let value = match arg.view() {
            View::Int(value) => value,
            View::Uint(value) => i64::try_from(value).ok()?,
            _ => return None,
        };
        (-MAX_WIDTH..=MAX_WIDTH).contains(&value).then_some(value)
    }
}
