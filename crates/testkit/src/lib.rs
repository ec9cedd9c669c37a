//! What the tests of several crates share. Only dev-dependencies name this crate.

pub mod tables;
