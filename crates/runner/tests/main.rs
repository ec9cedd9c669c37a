//! Running and calling functions: installing revisions, calls over gRPC and in the process, the cache of responses, replicas,
//! traces. One binary.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod cache;
pub(crate) mod calls;
mod installing;
mod spreading;
mod traces;
