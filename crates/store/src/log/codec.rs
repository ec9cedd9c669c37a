//! Records and entries as bytes: little-endian integers, strings with a length before them.
//!
//! The header of an object is written beside its body although it could be read out of it: opening a store
//! then parses no JSON.

use crate::model::{Entry, Event, Key, MAX_BODY_BYTES, ObjectKey};
use bytes::Bytes;
use std::sync::Arc;
use transom_object::{Header, OwnerReference};

const PUT: u8 = 1;
const DELETE: u8 = 2;

/// Bytes with a valid checksum that cannot be decoded.
#[derive(Debug)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// One change as the log has it: without the old entry, which is in the state.
pub(crate) struct Record {
    pub(crate) key: Key,
    /// The revision that was replaced; 0 if there was none.
    pub(crate) replaced: u64,
    pub(crate) new: Option<Entry>,
}

pub(crate) fn put_record(out: &mut Vec<u8>, event: &Event) {
    out.push(if event.new.is_some() { PUT } else { DELETE });
    out.extend_from_slice(&event.old.as_ref().map_or(0, |old| old.revision).to_le_bytes());
    put_key(out, &event.key.resource, &event.key.object);
    if let Some(entry) = &event.new {
        put_entry(out, entry);
    }
}

/// An object of a snapshot.
pub(crate) fn put_object(out: &mut Vec<u8>, resource: &str, object: &ObjectKey, entry: &Entry) {
    put_key(out, resource, object);
    put_entry(out, entry);
}

fn put_key(out: &mut Vec<u8>, resource: &str, object: &ObjectKey) {
    put_bytes(out, resource.as_bytes());
    put_bytes(out, object.namespace.as_bytes());
    put_bytes(out, object.name.as_bytes());
}

fn put_entry(out: &mut Vec<u8>, entry: &Entry) {
    out.extend_from_slice(&entry.revision.to_le_bytes());
    out.extend_from_slice(&entry.revision_at.start.to_le_bytes());
    out.extend_from_slice(&entry.revision_at.end.to_le_bytes());
    put_header(out, &entry.header);
    put_bytes(out, &entry.body);
}

fn put_header(out: &mut Vec<u8>, header: &Header) {
    put_bytes(out, header.name.as_bytes());
    put_bytes(out, header.namespace.as_bytes());
    put_bytes(out, header.uid.as_bytes());
    out.push(u8::from(header.deleting));
    put_len(out, header.labels.len());
    for (name, value) in &header.labels {
        put_bytes(out, name.as_bytes());
        put_bytes(out, value.as_bytes());
    }
    put_len(out, header.owners.len());
    for owner in &header.owners {
        for text in [&owner.api_version, &owner.kind, &owner.name, &owner.uid] {
            put_bytes(out, text.as_bytes());
        }
        out.push(put_choice(owner.controller));
        out.push(put_choice(owner.block_owner_deletion));
    }
    put_len(out, header.finalizers.len());
    for finalizer in &header.finalizers {
        put_bytes(out, finalizer.as_bytes());
    }
}

fn put_choice(choice: Option<bool>) -> u8 {
    choice.map_or(2, u8::from)
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    // Writes are checked against `MAX_BODY_BYTES`, which bounds every part of them far below this.
    out.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
}

/// Reads what the functions above wrote. Neighbouring keys share their resource and namespace.
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
    resource: Arc<str>,
    namespace: Arc<str>,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, resource: "".into(), namespace: "".into() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn record(&mut self) -> Result<Record, Malformed> {
        let op = self.byte()?;
        let replaced = self.u64()?;
        let key = self.key()?;
        let new = match op {
            PUT => Some(self.entry()?),
            DELETE => None,
            _ => return Err(Malformed("unknown kind of record")),
        };
        Ok(Record { key, replaced, new })
    }

    pub(crate) fn object(&mut self) -> Result<(Key, Entry), Malformed> {
        Ok((self.key()?, self.entry()?))
    }

    fn key(&mut self) -> Result<Key, Malformed> {
        let resource = self.text()?;
        if *self.resource != *resource {
            self.resource = resource.into();
        }
        let namespace = self.text()?;
        if *self.namespace != *namespace {
            self.namespace = namespace.into();
        }
        let name = self.text()?.into();
        let object = ObjectKey { namespace: Arc::clone(&self.namespace), name };
        Ok(Key { resource: Arc::clone(&self.resource), object })
    }

    fn entry(&mut self) -> Result<Entry, Malformed> {
        let revision = self.u64()?;
        let revision_at = self.u32()?..self.u32()?;
        let header = self.header()?;
        let body = self.bytes()?;
        // One revision is spliced into a body that was at most this large.
        if body.len() > MAX_BODY_BYTES + 20 {
            return Err(Malformed("object too large"));
        }
        if revision_at.start > revision_at.end || revision_at.end as usize > body.len() {
            return Err(Malformed("resourceVersion outside of the object"));
        }
        Ok(Entry { revision, header, body: Bytes::copy_from_slice(body), revision_at })
    }

    fn header(&mut self) -> Result<Header, Malformed> {
        let mut header = Header {
            name: self.text()?.to_owned(),
            namespace: self.text()?.to_owned(),
            uid: self.text()?.to_owned(),
            deleting: self.byte()? != 0,
            ..Header::default()
        };
        for _ in 0..self.u32()? {
            header.labels.insert(self.text()?.to_owned(), self.text()?.to_owned());
        }
        for _ in 0..self.u32()? {
            header.owners.push(OwnerReference {
                api_version: self.text()?.to_owned(),
                kind: self.text()?.to_owned(),
                name: self.text()?.to_owned(),
                uid: self.text()?.to_owned(),
                controller: self.choice()?,
                block_owner_deletion: self.choice()?,
            });
        }
        for _ in 0..self.u32()? {
            header.finalizers.push(self.text()?.to_owned());
        }
        Ok(header)
    }

    fn choice(&mut self) -> Result<Option<bool>, Malformed> {
        match self.byte()? {
            0 => Ok(Some(false)),
            1 => Ok(Some(true)),
            2 => Ok(None),
            _ => Err(Malformed("neither true, false nor unset")),
        }
    }

    fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("text that is not UTF-8"))
    }

    fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.u32()? as usize;
        self.take(len)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(self.take(4)?.try_into().map_or(0, u32::from_le_bytes))
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(self.take(8)?.try_into().map_or(0, u64::from_le_bytes))
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Malformed("record cut short"))?;
        self.rest = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> impl Strategy<Value = Header> {
        let owner = (".{0,9}", ".{0,9}", any::<Option<bool>>(), any::<Option<bool>>()).prop_map(
            |(name, uid, controller, block_owner_deletion)| OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Kind".to_owned(),
                name,
                uid,
                controller,
                block_owner_deletion,
            },
        );
        let labels = prop::collection::btree_map(".{0,9}", ".{0,9}", 0..4);
        let owners = prop::collection::vec(owner, 0..3);
        let finalizers = prop::collection::vec(".{0,9}", 0..3);
        (".{0,9}", ".{0,9}", ".{0,9}", labels, owners, finalizers, any::<bool>()).prop_map(
            |(name, namespace, uid, labels, owners, finalizers, deleting)| Header {
                name,
                namespace,
                uid,
                labels,
                owners,
                finalizers,
                deleting,
            },
        )
    }

    fn event(header: &Header, body: &[u8], replaced: Option<u64>) -> Event {
        let entry = |revision| {
            let body = Bytes::copy_from_slice(body);
            Arc::new(Entry { revision, header: header.clone(), revision_at: 0..0, body })
        };
        let key = Key::new("widgets.example.org", &header.namespace, &header.name);
        Event { revision: 9, at: 5, key, old: replaced.map(entry), new: Some(entry(9)) }
    }

    proptest! {
        #[test]
        fn records_read_back(header in header(), body: Vec<u8>, replaced in prop::option::of(1..9u64)) {
            let event = event(&header, &body, replaced);
            let mut bytes = Vec::new();
            put_record(&mut bytes, &event);
            let mut decoder = Decoder::new(&bytes);
            let record = decoder.record().unwrap();
            prop_assert!(decoder.is_empty());
            prop_assert_eq!((&record.key, record.replaced), (&event.key, replaced.unwrap_or(0)));
            let (found, expected) = (record.new.unwrap(), event.new.unwrap());
            prop_assert_eq!(&found.header, &expected.header);
            prop_assert_eq!((found.revision, &found.body), (9, &expected.body));
        }

        #[test]
        fn a_record_cut_short_is_refused(header in header(), cut: prop::sample::Index) {
            let mut bytes = Vec::new();
            put_record(&mut bytes, &event(&header, b"body", None));
            prop_assert!(Decoder::new(&bytes[..cut.index(bytes.len())]).record().is_err());
        }

        #[test]
        fn any_bytes_are_read_without_panic(mut bytes: Vec<u8>) {
            let _ = Decoder::new(&bytes).object();
            if let Some(op) = bytes.first_mut() {
                *op = PUT;
            }
            let _ = Decoder::new(&bytes).record();
        }
    }
}
