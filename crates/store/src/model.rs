//! The values that go in and out of a store.

use bytes::Bytes;
use std::sync::Arc;
use transom_object::Header;

/// An object within one resource. Orders by namespace, then name, bytewise, as clients expect of lists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

/// Where an object lives: a resource such as `configmaps` or `widgets.example.org`, and the object in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub resource: Arc<str>,
    pub object: ObjectKey,
}

/// One stored object. `body` is complete JSON, resourceVersion included.
#[derive(Debug)]
pub struct Entry {
    /// The revision that wrote this body; its resourceVersion.
    pub revision: u64,
    pub header: Header,
    pub body: Bytes,
    /// Byte range of the resourceVersion's digits within `body`, so that a deletion event can restamp it.
    pub revision_at: std::ops::Range<u32>,
}

/// What must be true of the key for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    Absent,
    Revision(u64),
}

/// How long an acknowledged write may take to be safe on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Synced before the answer.
    #[default]
    Strict,
    /// Acknowledged after it is handed to the system, synced soon after. For Events and Leases.
    Relaxed,
}

/// A new body. The store splices the resourceVersion's digits in at `revision_at`, an offset into `body`
/// where an empty string literal's content is expected: `…"resourceVersion":"▮","uid":…`.
#[derive(Debug)]
pub struct Put {
    pub body: Vec<u8>,
    pub revision_at: u32,
    pub header: Header,
}

#[derive(Debug)]
pub enum WriteOp {
    Put(Put),
    Delete,
}

#[derive(Debug)]
pub struct Write {
    pub key: Key,
    pub expect: Expect,
    pub op: WriteOp,
    pub durability: Durability,
}

/// A write that happened.
#[derive(Clone, Debug)]
pub struct Committed {
    pub revision: u64,
    /// What the key held before.
    pub old: Option<Arc<Entry>>,
    /// What it holds now; `None` after a deletion.
    pub new: Option<Arc<Entry>>,
}

/// One change, as watchers see it.
#[derive(Clone, Debug)]
pub struct Event {
    pub revision: u64,
    pub key: Key,
    pub old: Option<Arc<Entry>>,
    pub new: Option<Arc<Entry>>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum WriteError {
    /// The precondition failed; the key's present entry lets the caller try again without another read.
    #[error("the object changed since it was read")]
    Mismatch(Option<Arc<Entry>>),
    /// The disk refused the write. Nothing was changed; reads go on.
    #[error("the store cannot write: {0}")]
    Unavailable(String),
}

impl Key {
    pub fn new(resource: impl Into<Arc<str>>, namespace: &str, name: &str) -> Self {
        Self { resource: resource.into(), object: ObjectKey { namespace: namespace.into(), name: name.into() } }
    }
}
