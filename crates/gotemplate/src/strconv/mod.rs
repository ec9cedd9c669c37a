//! Text forms of Go's basic values: numbers, floats, quoted strings, and the character classes they rest on.

pub mod float;
pub mod number;
pub mod quote;
pub mod unicode;
