//! The providers on an API server in the process of the test.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod collections;
mod objects;
mod references;
mod rights;
mod stand;
