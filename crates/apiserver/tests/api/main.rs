//! The server as its clients see it: requests in, responses out, over a store in memory.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod authorization;
mod client;
mod health;
mod namespaces;
mod services;
mod warnings;
