//! Text forms of Go's basic values: numbers, floats, quoted strings, base64, and the character classes they rest on.

pub mod float;
pub mod number;
pub mod quote;
pub mod unicode;

pub use crate::sprig::{decode_base64, encode_base64};
