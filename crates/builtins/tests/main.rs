//! Tests of the built-in functions from outside, in one binary.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod conformance;
mod documented;
mod generated;
mod go_templating;
mod properties;
