//! What a store promises, whatever it is kept in.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fixture;
mod reading;
mod watching;
mod writing;
