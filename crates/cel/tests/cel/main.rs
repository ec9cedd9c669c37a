//! The expression language, by our own tables and laws and by Kubernetes' tables.

#![expect(clippy::unwrap_used, reason = "a malformed table should fail the test")]

mod authorization;
mod language;
mod tables;
