//! The tests of the store through its public interface, in one binary. `tests/kill.rs`, which kills itself, is a binary of its
//! own.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod contract;
mod durability;
mod fixture;
mod model;
