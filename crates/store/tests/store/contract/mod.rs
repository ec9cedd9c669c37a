//! What a store guarantees, whatever it is kept in.

mod reading;
mod watching;
mod writing;
