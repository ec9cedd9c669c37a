//! An SDK to write Crossplane providers in Rust.
//!
//! A managed resource represents an external resource: a database, a bucket. A provider implements [`External`] for each of
//! its kinds: observe, create, update and delete external resources. Everything else is the same for all kinds, and is done here as crossplane-runtime does it: external names, a record of creations so that
//! nothing is created twice, late initialisation, management and deletion policies, pausing, references and selectors,
//! ProviderConfigs and what protects them, connection secrets, conditions, events, polling and retries.
//!
//! Decisions are pure ([`policy`], [`decide`], [`references`]); `reconcile` reads, calls them, and executes the result.
//! This crate must not know any provider.
//!
//! | module | what it is for |
//! |---|---|
//! | `external` | what a provider implements |
//! | `kind` | what a kind is: its scope, its references, its CRD |
//! | `policy`, `decide` | what may be done, and what is done next |
//! | `references`, `resolve`, `targets` | references and selectors: what they lead to; reading and waiting for it |
//! | `config` | ProviderConfigs and their usages |
//! | `reconcile` | one reconcile of one managed resource |
//! | `late` | late initialisation |
//! | `secret` | connection secrets |
//! | `pace` | polls spread over time, and the limit of all reconciles of a provider |
//! | `waking` | what else triggers a reconcile |
//! | `provider` | a provider: its kinds, started and stopped together |
//! | `run` | a provider as a process of its own |
//!
//! `examples/files.rs` is a whole provider.

#![warn(missing_docs)]

mod config;
#[cfg(debug_assertions)]
mod crash_injection;
pub mod decide;
mod external;
mod kind;
mod late;
mod pace;
pub mod policy;
mod provider;
mod reconcile;
pub mod references;
mod resolve;
mod run;
mod secret;
mod targets;
mod waking;

pub use config::{ConfigKinds, ConfigReference};
pub use external::{Creation, External, Observation, Resource, Update, late_initialize};
pub use kind::{Layout, ManagedKind, Scope};
pub use kube::Client;
pub use pace::Settings;
pub use provider::{Context, Equipment, Provider, RunningProvider};
pub use references::Reference;
pub use transom_engine::{Clock, Cluster, Dependency, Error, ErrorContext, Metrics, Ownership, Result};
pub use transom_object::GroupVersionKind;
pub use transom_xapi::connection::{Details, details as secret_data};
pub use transom_xapi::crds::{age_column, schema};
pub use transom_xapi::{Condition, conditions};
pub use waking::Waker;
