//! The expression language through its public interface: our own tables and laws, and Kubernetes' tables where they are beside
//! the repository.

#![expect(clippy::unwrap_used, reason = "a malformed table should fail the test")]

mod authorization;
mod language;
mod tables;
