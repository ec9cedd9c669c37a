//! The end-to-end scenarios of Crossplane that need no provider but NopResources, on the real binary. The names are
//! Crossplane's; `crates/controllers/tests/scenarios.txt` has the whole list, with reasons for those that are not here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod accounts;
mod activation;
mod builtin_providers;
mod claims;
mod composing;
#[cfg(target_os = "linux")]
mod containers;
mod conversion;
mod definitions;
mod edges;
mod faulty;
mod first_design;
mod guide;
#[cfg(target_os = "linux")]
mod killed_functions;
mod managed;
mod manifests;
mod mutual_tls;
pub(crate) mod packages;
#[cfg(target_os = "linux")]
mod providers;
mod required;
mod rollout;
#[cfg(target_os = "linux")]
mod threads;
mod traces;
mod usages;
mod user;
mod waves;
mod web_functions;
mod webhooks;
