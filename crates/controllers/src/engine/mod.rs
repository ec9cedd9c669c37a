//! The engine: queues, watches and workers for controllers, of kinds that are known and of kinds born at run time.
//!
//! A controller is a [`Queue`] of keys, a [`Reconciler`] and the watches that wake it. Watches are shared: one per
//! kind, whoever is interested. Everything that runs has an owner, and stops when its owner is dropped or told to.

mod dependencies;
mod following;
mod index;
mod known;
mod mirror;
mod queue;
mod sighting;
mod watches;
mod worker;

pub use dependencies::Dependency;
pub use following::Following;
pub use known::{Known, Source, version};
pub use mirror::{Change, Listing, Mirror, Observer, Selected, wake_itself};
pub use queue::{Counts, Key, Next, Pace, Queue};
pub use sighting::{Depth, Seen};
pub use watches::{Subscription, Watches};
pub use worker::{Pass, Reconciler, Running, start};
