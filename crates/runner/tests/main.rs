//! Tests of running and calling functions, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cache;
mod calls;
mod installing;
