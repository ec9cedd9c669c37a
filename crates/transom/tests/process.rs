//! Everything that uses the binary as a process, or the server in this process as its clients do, in one test binary.
//! Tests that kill planes at chosen writes are apart: `crash` and `crash_matrix`.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bench;
mod client;
mod hostile;
mod platform;
mod readme;
mod render;
mod scenarios;
mod startup;
