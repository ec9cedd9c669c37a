//! The providers that come with the binary, on an API server in the process of the test, which is also the cluster that they
//! manage objects of.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod collections;
mod objects;
mod references;
mod rights;
mod stand;
