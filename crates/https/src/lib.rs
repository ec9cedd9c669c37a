//! What clients of other servers share: how certificates of servers are verified, and one HTTP exchange over one
//! connection.
//!
//! It must not know which servers these are. Where trusted authorities come from, addresses, time limits and the wording
//! of errors are up to the clients.

#![warn(missing_docs)]

mod exchange;
mod verify;

pub use exchange::{ExchangeError, exchange, post};
pub use verify::Verifier;
