//! Schemas and values against the tables in the conformance folder next to the repository, when it is there.
//!
//! A case that is known to differ stands in `known_differences.txt` with its reason; the run
//! fails when such a case starts to pass, as it fails for any other case that does not.

#![expect(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test reports by failing")]

mod crd;
mod laws;
mod metadata;
mod normalize;
mod own;
mod ratcheting;
mod tables;
mod validate;
