//! The engine that controllers run on: work queues, shared watches, suppression of echoes, a dynamic client of the
//! Kubernetes API, events and metrics.
//!
//! A controller is a [`Queue`] of keys, a [`Reconciler`] and the watches that wake its keys. Watches are shared: one per
//! kind and [`Depth`], however many controllers subscribe. Everything that runs has an owner and stops when its owner is
//! dropped.
//!
//! The engine knows no kinds: objects are JSON values, and what they mean is up to the controllers. It must not depend
//! on Crossplane's types.

mod clock;
mod cluster;
mod controller;
mod dependencies;
mod engine;
mod error;
mod events;
mod following;
mod index;
mod metrics;
mod mirror;
mod queue;
mod readiness;
mod run_log;
mod seen_versions;
mod settled;
mod sighting;
mod watches;
mod worker;

pub use clock::Clock;
pub use cluster::{Cluster, DeleteOptions, Kind};
pub use controller::{Controller, ControllerBuilder};
pub use dependencies::Dependency;
pub use engine::Engine;
pub use error::{BoxError, Chain, Error, ErrorContext, ReportedError, Result, existing, found};
pub use events::Recorder;
pub use following::{Following, Matters};
pub use metrics::{CountedWatch, Metrics};
pub use mirror::{Change, Listing, Mirror, Observer, Selected, wake_itself};
pub use queue::{Counts, Key, Next, Pace, Queue};
pub use readiness::Readiness;
pub use run_log::RunLog;
pub use seen_versions::{ChangeNotice, ObjectHash, SeenVersions, Via, version};
pub use settled::{is_settled, same};
pub use sighting::{Depth, Seen};
pub use watches::{Subscription, Watches};
pub use worker::Reconciler;
