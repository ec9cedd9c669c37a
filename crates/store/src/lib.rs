//! A revisioned, watchable log of objects with compare-and-swap, durable before it acknowledges.
//!
//! [`Store`] keeps every live object in memory as encoded bytes with a small decoded header, ordered by
//! resource, namespace and name. One writer assigns revisions, checks preconditions, appends the batch to a
//! backend, syncs once for all waiting writers, and only then publishes to readers and watchers.
//!
//! What is acknowledged survives the end of the process and of the machine, readers never see what may still be lost, and damage
//! is reported and never skipped; `README.md` has the guarantees and the format of the files. The store must not know what the
//! objects mean: it knows keys, revisions and bytes.

#![warn(missing_docs)]

mod backend;
mod disk;
mod log;
mod model;
mod open_error;
mod options;
mod sequencer;
mod state;
mod store;
pub mod testing;
mod watch;

pub use disk::{Disk, DiskFile, SystemDisk};
pub use log::check::{Report, repair, verify};
pub use log::copy::copy;
pub use model::{
    Committed, Compacted, Durability, Entry, Event, Expect, Key, MAX_BODY_BYTES, ObjectKey, Put, Snapshot,
    Write, WriteError, WriteOp,
};
pub use open_error::OpenError;
pub use options::{BatchLimits, HistoryLimits, LogLimits, Options};
pub use store::Store;
pub use watch::Watch;
