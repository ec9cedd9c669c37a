//! JSON as Go's decoder reads it and Go's encoder writes it.
//!
//! Kubernetes gives meaning to details that most JSON libraries hide, so the reader is our own:
//!
//! * a number without point or exponent is an `i64`; what does not fit becomes an `f64`; a float with
//!   an integral value becomes the integer its text would be read back as (`1.0` is `1`), so that equal
//!   documents are equal values; `-0` is `0` but `-0.0` stays a float; `1e999` is an error;
//! * the last of several equal keys wins, and every repeated key is reported by its path;
//! * bytes that are not UTF-8 and lone surrogates become U+FFFD, as Go reads them;
//! * nesting is limited to [`MAX_DEPTH`], so that every recursive walk over a decoded value is safe;
//! * messages are those of Go's `encoding/json`, with line and column beside them.
//!
//! One pass, and nothing is allocated for duplicates unless there are some.

mod decode;
mod encode;
mod go;

pub(crate) use decode::push_lossy;
pub use decode::{Decoded, decode, decode_stream};
pub use encode::{encode, encode_escaped, encode_into, encode_str_into};
pub use go::{go_type, go_type_in_struct, is_empty, kind_of, strings};
pub use transom_go::json::format_float;

use serde_json::{Number, Value};

/// How deep objects and arrays may nest, in JSON and in YAML. Go allows 10,000; no API object comes near
/// 256 and our recursive walks must fit a 2 MiB stack with room to spare.
pub const MAX_DEPTH: usize = 256;

/// Upstream stops collecting strict-decoding errors here, and so do we: hostile input must not make
/// the report larger than itself.
pub const MAX_DUPLICATES: usize = 100;

/// Why bytes are not a JSON document. [`std::fmt::Display`] prints the message alone, because it becomes
/// part of API error texts; the position is for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DecodeError {
    /// What is wrong, in Go's words.
    pub message: String,
    /// Both count from one; the column counts bytes.
    pub line: usize,
    /// See `line`.
    pub column: usize,
}

/// How deep a value nests: 0 for a scalar, 1 for a flat object or list.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// A float as a JSON number, integral values as the integer they print as. `None` for infinities and NaN.
pub(crate) fn canonical_number(float: f64) -> Option<Number> {
    /// Below this every integral float is exactly one integer; above, its shortest text decides.
    const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
    let negative_zero = float == 0.0 && float.is_sign_negative();
    if float.fract() == 0.0 && !negative_zero {
        if float.abs() < MAX_EXACT_INTEGER {
            #[expect(clippy::cast_possible_truncation, reason = "integral and below 2^53")]
            return Some(Number::from(float as i64));
        }
        if float.abs() < 1e19
            && let Ok(integer) = float.to_string().parse::<i64>()
        {
            return Some(Number::from(integer));
        }
    }
    Number::from_f64(float)
}

/// Joins the path of a repeated field to the field or index it was found below.
pub(crate) fn prefix_paths(paths: &mut [String], parent: &str) {
    for path in paths {
        let dot = if path.starts_with('[') { "" } else { "." };
        *path = format!("{parent}{dot}{path}");
    }
}
