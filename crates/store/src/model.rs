//! The values that go in and out of a store.

use bytes::Bytes;
use std::sync::Arc;
use transom_object::Header;

/// An object within one resource. Orders by namespace, then name, bytewise, as clients expect of lists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    /// Unique within the namespace.
    pub name: Arc<str>,
}

/// The key of an object in the store: a resource such as `configmaps` or `widgets.example.org`, and the object in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The resource that the object belongs to.
    pub resource: Arc<str>,
    /// The object within the resource.
    pub object: ObjectKey,
}

/// One stored object. `body` is complete JSON, resourceVersion included.
#[derive(Debug)]
pub struct Entry {
    /// The revision that wrote this body; its resourceVersion.
    pub revision: u64,
    /// The decoded metadata.
    pub header: Header,
    /// The encoded object.
    pub body: Bytes,
    /// Byte range of the resourceVersion's digits within `body`, so that a deletion event can restamp it.
    pub revision_at: std::ops::Range<u32>,
}

/// What must be true of the key for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// There is no such object.
    Absent,
    /// The object was last written by this revision.
    Revision(u64),
}

/// How long an acknowledged write may take to be safe on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Synced before it is acknowledged.
    #[default]
    Strict,
    /// Acknowledged after it is handed to the system, synced soon after. For Events and Leases.
    Relaxed,
}

/// A new body. The store splices the resourceVersion's digits in at `revision_at`, an offset into `body`
/// where an empty string literal's content is expected: `…"resourceVersion":"▮","uid":…`.
#[derive(Debug)]
pub struct Put {
    /// The encoded object, without the digits of its resourceVersion.
    pub body: Vec<u8>,
    /// Where in `body` the digits go.
    pub revision_at: u32,
    /// The decoded metadata.
    pub header: Header,
}

/// What a write does to its key.
#[derive(Debug)]
pub enum WriteOp {
    /// Creates or replaces the object.
    Put(Put),
    /// Removes the object.
    Delete,
}

/// A write of one object.
#[derive(Debug)]
pub struct Write {
    /// The object to write.
    pub key: Key,
    /// The precondition.
    pub expect: Expect,
    /// What happens to it.
    pub op: WriteOp,
    /// When it is acknowledged.
    pub durability: Durability,
}

/// A write that happened.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The revision of the write.
    pub revision: u64,
    /// What the key held before.
    pub old: Option<Arc<Entry>>,
    /// What it holds now; `None` after a deletion.
    pub new: Option<Arc<Entry>>,
}

/// One change, as watchers see it.
#[derive(Clone, Debug)]
pub struct Event {
    /// The revision of the change.
    pub revision: u64,
    /// When it was committed, in milliseconds since the Unix epoch. Only ages history; revisions order it.
    pub at: u64,
    /// The object that changed.
    pub key: Key,
    /// What the key held before.
    pub old: Option<Arc<Entry>>,
    /// What it holds since; `None` after a deletion.
    pub new: Option<Arc<Entry>>,
}

/// Why a write did not happen.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WriteError {
    /// The precondition failed; the key's present entry lets the caller try again without another read.
    #[error("the object changed since it was read")]
    Mismatch(Option<Arc<Entry>>),
    /// The disk refused the write. Nothing was changed; reads continue.
    #[error("the store cannot write: {0}")]
    Unavailable(String),
    /// The write is malformed, regardless of the value of the key.
    #[error("invalid write: {0}")]
    Invalid(&'static str),
}

/// The history no longer reaches back to the requested revision; the caller has to list again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {requested} ({oldest})")]
pub struct Compacted {
    /// The requested revision.
    pub requested: u64,
    /// The oldest revision that is still kept.
    pub oldest: u64,
}

/// All objects of one resource as they were at one revision. Shares its nodes with the store: cloning is O(1).
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The revision of the snapshot.
    pub revision: u64,
    /// The objects, in the order of their keys.
    pub objects: imbl::OrdMap<ObjectKey, Arc<Entry>>,
}

/// No object may be larger than this, however it got here.
pub const MAX_BODY_BYTES: usize = 16 << 20;
const MAX_NAME_BYTES: usize = 4096;

impl Key {
    /// The key of an object; `namespace` is empty for cluster-scoped ones.
    pub fn new(resource: impl Into<Arc<str>>, namespace: &str, name: &str) -> Self {
        Self {
            resource: resource.into(),
            object: ObjectKey { namespace: namespace.into(), name: name.into() },
        }
    }
}

impl Write {
    /// Refuses what no state of the store could accept, so that the log never holds it.
    pub(crate) fn check(&self) -> Result<(), WriteError> {
        let ObjectKey { namespace, name } = &self.key.object;
        if self.key.resource.is_empty() || name.is_empty() {
            return Err(WriteError::Invalid("resource and name must not be empty"));
        }
        if self.key.resource.len() > MAX_NAME_BYTES
            || namespace.len() > MAX_NAME_BYTES
            || name.len() > MAX_NAME_BYTES
        {
            return Err(WriteError::Invalid("resource, namespace or name is too long"));
        }
        match &self.op {
            WriteOp::Put(put) if put.body.len() > MAX_BODY_BYTES => {
                Err(WriteError::Invalid("the object is too large"))
            }
            WriteOp::Put(put) if put.revision_at as usize > put.body.len() => {
                Err(WriteError::Invalid("the resourceVersion's offset lies outside of the body"))
            }
            WriteOp::Delete if self.expect == Expect::Absent => {
                Err(WriteError::Invalid("a deletion must expect a revision"))
            }
            _ => Ok(()),
        }
    }
}

impl Put {
    /// The entry this becomes at `revision`.
    pub(crate) fn stamp(self, revision: u64) -> Entry {
        let (body, revision_at) = splice(&self.body, self.revision_at..self.revision_at, revision);
        Entry { revision, header: self.header, body, revision_at }
    }
}

impl Entry {
    /// The body with another resourceVersion: a deletion event carries the last object, stamped with the
    /// revision of its deletion.
    pub fn body_at(&self, revision: u64) -> Bytes {
        if revision == self.revision {
            return self.body.clone();
        }
        splice(&self.body, self.revision_at.clone(), revision).0
    }
}

fn splice(body: &[u8], at: std::ops::Range<u32>, revision: u64) -> (Bytes, std::ops::Range<u32>) {
    let digits = revision.to_string();
    let (head, tail) = (&body[..at.start as usize], &body[at.end as usize..]);
    // Exactly as large as needed: a vector with spare room would be kept for the life of the object.
    let mut spliced = Vec::with_capacity(head.len() + digits.len() + tail.len());
    spliced.extend_from_slice(head);
    spliced.extend_from_slice(digits.as_bytes());
    spliced.extend_from_slice(tail);
    let end = at.start + u32::try_from(digits.len()).unwrap_or(u32::MAX);
    (Bytes::from(spliced), at.start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_stamped_and_restamped() {
        let body = br#"{"metadata":{"resourceVersion":"","uid":"u"}}"#.to_vec();
        let entry = Put { body, revision_at: 32, header: Header::default() }.stamp(99);
        assert_eq!(&entry.body[..], br#"{"metadata":{"resourceVersion":"99","uid":"u"}}"#);
        assert_eq!(entry.revision_at, 32..34);
        assert_eq!(&entry.body_at(1000)[..], br#"{"metadata":{"resourceVersion":"1000","uid":"u"}}"#);
        assert_eq!(entry.body_at(99), entry.body);
    }
}
