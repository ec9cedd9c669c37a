//! What the tests of several crates share. Only dev-dependencies name this crate.
//!
//! | module | what it holds |
//! |---|---|
//! | [`tables`] | tables of test cases from upstream projects, and what happens where they are missing |
//! | [`rng`] | the one source of pseudo-random choices, from a seed |
//! | [`manifests`] | definitions, Compositions and Functions that tests apply |
//! | `embedded` (feature) | the API server in the process of the test, and clients for it; with the feature `kube` also for controllers |
//! | `process` (feature) | a control plane as a process of the binary, and HTTPS clients for it |
//!
//! A failed expectation of the harness fails the test that uses it: this code panics on purpose.
//!
//! It must not know what is tested: expectations belong into the tests.
#![warn(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

#[cfg(feature = "embedded")]
pub mod embedded;
pub mod manifests;
#[cfg(feature = "process")]
pub mod process;
pub mod rng;
pub mod tables;
