//! The reconciler of managed resources on the real API server, with an external system that is slow, fails, shows changes
//! late and limits requests, and with providers that are killed at any point.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod cloud;
mod events;
mod example;
mod faults;
mod life;
mod references;
