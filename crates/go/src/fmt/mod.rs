//! Go's package fmt: `Sprint`, `Sprintln`, `Sprintf` with every verb, flag and error form.
//!
//! What is formatted is anything that implements [`Operand`]: the values of templates do. `format` reads the directive,
//! `print` walks the value, `field` lays out one number or string. Output is bounded: a width of a million repeated a
//! thousand times fails with [`FmtError::TooLong`] instead of exhausting memory.

mod field;
mod format;
mod print;

use std::borrow::Cow;
use std::fmt;

/// How deep a value may nest before formatting it fails; Go would exhaust its stack on a value that contains itself.
pub const MAX_DEPTH: usize = 512;

/// A value of Go that can be formatted.
pub trait Operand: Sized {
    /// What it is.
    fn view(&self) -> View<'_>;

    /// The dynamic type as `%T` prints it, `<nil>` when there is none.
    fn type_name(&self) -> Cow<'_, str>;

    /// What its `String` method returns, if its type has one.
    fn string_method(&self) -> Option<String>;

    /// The bytes of a list whose elements are all of the type `uint8`.
    fn bytes(&self) -> Option<Vec<u8>>;

    /// Calls `visit` with the elements of a list, the entries of a map by their keys, or the fields of a struct, until it
    /// returns false.
    fn elements(&self, visit: &mut dyn FnMut(Element<'_, Self>) -> bool);
}

/// What a value is, by the distinctions of package fmt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum View<'a> {
    /// No value, or the nil interface.
    Nil,
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A `float64`.
    Float(f64),
    /// A `complex128`.
    Complex(f64, f64),
    /// A string.
    Str(&'a [u8]),
    /// A slice.
    List {
        /// Whether it is nil, not only empty.
        is_nil: bool,
        /// Whether its type is `[]uint8`.
        is_bytes: bool,
    },
    /// A map.
    Map {
        /// Whether it is nil, not only empty.
        is_nil: bool,
    },
    /// A struct whose fields are printed.
    Struct,
    /// A struct that has a `String` method, and whose fields are not known.
    Opaque,
}

/// A part of a value.
#[derive(Clone, Copy, Debug)]
pub enum Element<'a, V> {
    /// An element of a list.
    Item(&'a V),
    /// A key of a map, and its value.
    Entry(&'a V, &'a V),
    /// A field of a struct by its name, and its value.
    Field(&'a str, &'a V),
}

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
pub fn sprintf<V: Operand>(format: &str, args: &[V]) -> String {
    let mut printer = Printer::new(DEFAULT_MAX_BYTES);
    printer.printf(format.as_bytes(), args);
    String::from_utf8_lossy(&printer.out).into_owned()
}

/// `fmt.Sprintf` of at most `limit` bytes.
pub fn try_sprintf<V: Operand>(format: &[u8], args: &[V], limit: usize) -> Result<Vec<u8>, FmtError> {
    let mut printer = Printer::new(limit);
    printer.printf(format, args);
    printer.finish()
}

/// `fmt.Sprint`: spaces between operands when neither is a string.
pub fn sprint<V: Operand>(args: &[V]) -> Vec<u8> {
    let mut printer = Printer::new(DEFAULT_MAX_BYTES);
    printer.print(args);
    printer.out
}

/// `fmt.Sprint` of at most `limit` bytes.
pub fn try_sprint<V: Operand>(args: &[V], limit: usize) -> Result<Vec<u8>, FmtError> {
    let mut printer = Printer::new(limit);
    printer.print(args);
    printer.finish()
}

/// `fmt.Sprintln` of at most `limit` bytes.
pub fn try_sprintln<V: Operand>(args: &[V], limit: usize) -> Result<Vec<u8>, FmtError> {
    let mut printer = Printer::new(limit);
    printer.println(args);
    printer.finish()
}

/// Writes `Sprint` of one value at the end of `out`, which may grow to `limit`.
pub fn append<V: Operand>(out: &mut Vec<u8>, value: &V, limit: usize) -> Result<(), FmtError> {
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

#[cfg(test)]
mod tests;
