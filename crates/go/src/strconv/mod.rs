//! Package strconv: numbers from and to text, and quoted texts. Results and errors are Go's, to the last digit and letter.

mod float;
mod number;
mod quote;

pub use float::{format_float, shortest_float, shortest_float32};
pub use number::{NumberError, parse_bool, parse_float, parse_int, parse_uint};
pub use quote::{
    Printable, Unit, can_backquote, quote, quote_bytes, quote_rune, unescape, unquote, unquote_char,
};
