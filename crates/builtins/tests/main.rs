//! The built-in functions from outside, in one binary: recorded responses of the originals, properties that hold for any request,
//! and the examples of the documentation.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod conformance;
mod documented;
mod generated;
mod go_templating;
mod properties;
