//! The engine that controllers run on: work queues, shared watches, suppression of echoes, a dynamic client of the
//! Kubernetes API, events and metrics.
//!
//! A controller is a [`Queue`] of keys, a [`Reconciler`] and the watches that wake its keys. Watches are shared: one per
//! kind and [`Depth`], however many controllers subscribe. Everything that runs has an owner and stops when its owner is
//! dropped.
//!
//! The engine knows no kinds: objects are JSON values, and what they mean is up to the controllers. It must not depend
//! on Crossplane's types.
//!
//! | module | what it is for |
//! |---|---|
//! | `engine`, `controller` | what every controller needs; starting and stopping a controller |
//! | `pace` | how fast the keys of a queue are tried again |
//! | `queue`, `worker` | which keys run when; running a reconciler |
//! | `watches`, `mirror`, `sighting`, `index` | one shared watch per kind, and a cache of what it reported |
//! | `dependencies`, `following` | which keys a change of an object wakes |
//! | `run_log`, `seen_versions` | suppression of echoes; `README.md` explains it with a timeline |
//! | `cluster` | the client of the API server |
//! | `definitions` | installing the definitions of kinds |
//! | `ownership`, `lease` | which keys this process reconciles, and until when; which process has which, by Leases |
//! | `noop` | whether an apply would change anything |
//! | `rng` | random numbers that can be replayed |
//! | `error`, `events`, `metrics`, `queue_metrics`, `readiness`, `clock` | what is reported, and when |

#![warn(missing_docs)]

mod clock;
mod cluster;
mod controller;
mod definitions;
mod dependencies;
#[cfg(test)]
mod echo_tests;
mod engine;
mod error;
mod events;
mod following;
mod index;
mod lease;
mod metrics;
mod mirror;
mod noop;
mod ownership;
mod pace;
mod queue;
mod queue_metrics;
mod readiness;
mod rng;
mod run_log;
mod seen_versions;
mod sighting;
mod watches;
mod worker;

pub use clock::Clock;
pub use cluster::{Cluster, DeleteOptions, Kind};
pub use controller::{Controller, ControllerBuilder};
pub use definitions::install_definitions;
pub use dependencies::Dependency;
pub use engine::{Engine, Publication};
pub use error::{BoxError, Chain, Error, ErrorContext, ReportedError, Result, existing, found};
pub use events::Recorder;
pub use following::{Following, Matters};
pub use lease::{Election, ElectionOptions, OWN_LEASE_PREFIXES};
pub use metrics::{CountedWatch, Metrics};
pub use mirror::{Change, Listing, Mirror, Observer, Selected, wake_itself};
pub use noop::{apply_is_noop, same};
pub use ownership::{LEADER_SHARD, Ownership, Term};
pub use pace::Pace;
pub use queue::{Counts, Key, Next, Queue};
pub use readiness::Readiness;
pub use rng::Rng;
pub use run_log::RunLog;
pub use seen_versions::{ChangeNotice, ObjectHash, SeenVersions, Via, version};
pub use sighting::{Depth, Seen};
pub use watches::{Subscription, Watches};
pub use worker::Reconciler;
