//! The end-to-end scenarios of Crossplane that need no provider but NopResources, on the real binary. The names are
//! Crossplane's; `crates/controllers/tests/scenarios.txt` has the whole list, with reasons for those that are not here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod activation;
mod claims;
mod composing;
#[cfg(target_os = "linux")]
mod containers;
mod definitions;
mod edges;
mod faulty;
mod guide;
mod managed;
mod manifests;
mod mutual_tls;
mod packages;
mod required;
mod rollout;
mod usages;
mod user;
mod waves;
