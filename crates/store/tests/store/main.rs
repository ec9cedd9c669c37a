//! The tests of the store in one binary; `tests/kill.rs`, which kills itself, is apart.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod contract;
mod durability;
mod fixture;
mod model;
