//! Everything that uses the binary as a process, or all crates together in this process, in one test binary.
//! Tests that kill planes at chosen writes are apart: `crash` and `crash_matrix`.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod authoring;
mod bench;
mod client;
mod cluster;
mod first_design;
mod fuzz;
mod hostile;
mod pages;
mod platform;
mod readme;
mod render;
mod scenarios;
mod startup;
mod xpkg;
