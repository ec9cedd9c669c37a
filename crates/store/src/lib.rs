//! A revisioned, watchable log of objects with compare-and-swap, durable before it answers.
//!
//! [`Store`] keeps every live object in memory as encoded bytes with a small decoded header, ordered by
//! resource, namespace and name. One writer assigns revisions, checks preconditions, appends the batch to a
//! backend, syncs once for all waiting writers, and only then publishes to readers and watchers.

#[expect(dead_code, reason = "the log on disk comes next")]
mod backend;
mod model;
mod options;
mod sequencer;
#[expect(dead_code, reason = "the log on disk comes next")]
mod state;
mod store;
mod watch;

pub use model::{
    Committed, Compacted, Durability, Entry, Event, Expect, Key, MAX_BODY, ObjectKey, Put, Snapshot, Write,
    WriteError, WriteOp,
};
pub use options::{BatchLimits, HistoryLimits, Options};
pub use store::Store;
pub use watch::Watch;
