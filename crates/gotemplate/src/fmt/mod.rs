//! Go's package fmt over template values: `Sprint`, `Sprintln`, `Sprintf` with every verb, flag and error form.
//!
//! `format` reads the directive, `print` walks the value, `field` lays out one number or string. Output is bounded:
//! a width of a million repeated a thousand times fails with [`FmtError::TooLong`] instead of exhausting memory.

mod field;
mod format;
mod print;

use std::fmt;

use crate::value::{MAX_DEPTH, Value};

/// Why text could not be produced. Go has no such errors; it would exhaust memory or stack instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FmtError {
    /// The text exceeds the limit.
    TooLong,
    /// The value nests too deeply, or contains itself.
    TooDeep,
}

impl fmt::Display for FmtError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FmtError::TooLong => write!(out, "formatted text is too long"),
            FmtError::TooDeep => write!(out, "value nests deeper than {MAX_DEPTH} levels or contains itself"),
        }
    }
}

impl std::error::Error for FmtError {}

/// Enough for any manifest; callers with a budget of their own pass it to the `try_` forms.
const DEFAULT_MAX_BYTES: usize = 16 << 20;

/// `fmt.Sprintf`. Text beyond 16 MiB, or of data nested too deeply, is cut.
pub fn sprintf(format: &str, args: &[Value]) -> String {
    let mut printer = Printer::new(DEFAULT_MAX_BYTES);
    printer.printf(format.as_bytes(), args);
    String::from_utf8_lossy(&printer.out).into_owned()
}

/// `fmt.Sprintf` of at most `limit` bytes.
pub fn try_sprintf(format: &[u8], args: &[Value], limit: usize) -> Result<Vec<u8>, FmtError> {
    let mut printer = Printer::new(limit);
    printer.printf(format, args);
    printer.finish()
}

/// `fmt.Sprint`: spaces between operands when neither is a string.
pub fn sprint(args: &[Value]) -> Vec<u8> {
    let mut printer = Printer::new(DEFAULT_MAX_BYTES);
    printer.print(args);
    printer.out
}

/// `fmt.Sprint` of at most `limit` bytes.
pub fn try_sprint(args: &[Value], limit: usize) -> Result<Vec<u8>, FmtError> {
    let mut printer = Printer::new(limit);
    printer.print(args);
    printer.finish()
}

/// `fmt.Sprintln` of at most `limit` bytes.
pub fn try_sprintln(args: &[Value], limit: usize) -> Result<Vec<u8>, FmtError> {
    let mut printer = Printer::new(limit);
    printer.println(args);
    printer.finish()
}

/// Writes `Sprint` of one value at the end of `out`, which may grow to `limit`.
pub fn append(out: &mut Vec<u8>, value: &Value, limit: usize) -> Result<(), FmtError> {
    let mut printer = Printer::new(limit);
    printer.out = std::mem::take(out);
    printer.arg(value, 'v');
    *out = std::mem::take(&mut printer.out);
    printer.failure.map_or(Ok(()), Err)
}

#[derive(Clone, Copy, Default)]
struct Flags {
    width: Option<usize>,
    precision: Option<usize>,
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    /// `%+v` and `%#v`, kept apart from the flags of numbers inside the value.
    plus_v: bool,
    sharp_v: bool,
}

struct Printer {
    out: Vec<u8>,
    flags: Flags,
    limit: usize,
    failure: Option<FmtError>,
    /// Inside a `%!verb(…)` report, where `String` methods are not used.
    erroring: bool,
}

impl Printer {
    fn new(limit: usize) -> Printer {
        Printer { out: Vec::new(), flags: Flags::default(), limit, failure: None, erroring: false }
    }

    fn finish(self) -> Result<Vec<u8>, FmtError> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(self.out),
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.room(bytes.len()) {
            self.out.extend_from_slice(bytes);
        }
    }

    fn write_str(&mut self, text: &str) {
        self.write(text.as_bytes());
    }

    fn write_rune(&mut self, rune: char) {
        self.write(rune.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn room(&mut self, more: usize) -> bool {
        if self.out.len().saturating_add(more) > self.limit {
            self.failure.get_or_insert(FmtError::TooLong);
        }
        self.failure.is_none()
    }
}
