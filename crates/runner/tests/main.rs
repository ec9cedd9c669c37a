//! Tests of running and calling functions, in one binary.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod cache;
pub(crate) mod calls;
mod installing;
mod spreading;
mod traces;
