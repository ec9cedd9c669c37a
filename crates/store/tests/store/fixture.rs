//! Stores to test, and shorthand for writing to them.

use std::sync::Arc;
use transom_object::Header;
use transom_store::{
    Committed, Durability, Entry, Expect, Key, Options, Put, Store, Write, WriteError, WriteOp,
};

/// Runs a test on each kind of store.
pub(crate) async fn on_every_store<F: Future<Output = ()>>(options: Options, test: impl Fn(Store) -> F) {
    test(Store::in_memory(options.clone())).await;
    test(Store::in_step(options.clone())).await;
    let dir = tempfile::tempdir().unwrap();
    test(Store::open(dir.path(), options).unwrap()).await;
}

pub(crate) fn key(name: &str) -> Key {
    Key::new("widgets.example.org", "ns", name)
}

pub(crate) fn put(text: &str) -> WriteOp {
    let head = r#"{"metadata":{"resourceVersion":""#;
    let body = format!(r#"{head}"}},"text":"{text}"}}"#).into_bytes();
    WriteOp::Put(Put { body, revision_at: u32::try_from(head.len()).unwrap(), header: Header::default() })
}

pub(crate) fn body(revision: u64, text: &str) -> String {
    format!(r#"{{"metadata":{{"resourceVersion":"{revision}"}},"text":"{text}"}}"#)
}

pub(crate) fn text(entry: &Entry) -> String {
    String::from_utf8(entry.body.to_vec()).unwrap()
}

pub(crate) async fn write(
    store: &Store,
    key: Key,
    expect: Expect,
    op: WriteOp,
) -> Result<Committed, WriteError> {
    store.commit(Write { key, expect, op, durability: Durability::Strict }).await
}

pub(crate) async fn create(store: &Store, key: Key, text: &str) -> Arc<Entry> {
    write(store, key, Expect::Absent, put(text)).await.unwrap().new.unwrap()
}

pub(crate) async fn update(store: &Store, key: Key, revision: u64, text: &str) -> Arc<Entry> {
    write(store, key, Expect::Revision(revision), put(text)).await.unwrap().new.unwrap()
}

pub(crate) async fn delete(store: &Store, key: Key, revision: u64) -> Committed {
    write(store, key, Expect::Revision(revision), WriteOp::Delete).await.unwrap()
}
