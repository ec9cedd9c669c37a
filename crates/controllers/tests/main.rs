//! The controllers over the embedded API server: `life` in scenarios, `simulation` in virtual time with faults.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "long tests print how much they did")]

mod life;
mod simulation;
#[path = "../../transom/src/plane/usage_protection.rs"]
mod usage_protection;

/// A fifth of the time of the simulation goes into memory otherwise.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
