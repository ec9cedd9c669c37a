//! A revisioned, watchable log of objects with compare-and-swap, durable before it answers.
//!
//! [`Store`] keeps every live object in memory as encoded bytes with a small decoded header, ordered by
//! resource, namespace and name. One writer task assigns revisions, checks preconditions, appends the batch to
//! a [`Backend`], syncs once for all waiting writers, and only then publishes to readers and watchers.

mod model;

pub use model::{Committed, Durability, Entry, Event, Expect, Key, ObjectKey, Put, Write, WriteError, WriteOp};
