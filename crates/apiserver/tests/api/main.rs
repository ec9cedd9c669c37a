//! The API server as its clients see it: requests in, responses out, over a store in memory. No socket is opened, and no
//! controller runs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod admission;
mod auditing;
mod authorization;
mod autoscalers;
mod certificates;
mod client;
mod costs;
mod create;
mod delete;
mod health;
mod list;
mod namespaces;
mod overload;
mod patch;
mod pods;
mod policies;
mod quotas;
mod rbac;
mod services;
mod subresources;
mod update;
mod warnings;
mod watch;
mod webhooks;
