//! The edge cases that Crossplane's unit tests name, on the real binary: each test begins with the numbers of its cases
//! in `crates/controllers/tests/scenarios.txt`.

mod composing;
mod resources;
mod wishes;
