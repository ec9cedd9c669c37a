//! Disks that are full, failing, slow, or lose power.

use super::{crash_image, files};
use crate::fixture::{create, key, put, update, write};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use transom_object::error_chain::chain;
use transom_store::testing::{Faults, HostileDisk};
use transom_store::{
    BatchLimits, Durability, Expect, HistoryLimits, LogLimits, OpenError, Options, Store, Write, WriteError,
};

fn on(disk: &HostileDisk) -> Options {
    Options { disk: Arc::new(disk.clone()), ..Options::default() }
}

fn opened() -> (tempfile::TempDir, HostileDisk, Store) {
    let (dir, disk) = (tempfile::tempdir().unwrap(), HostileDisk::default());
    let store = Store::open(dir.path(), on(&disk)).unwrap();
    (dir, disk, store)
}

async fn refused(store: &Store, name: &str) -> String {
    match write(store, key(name), Expect::Absent, put("x")).await {
        Err(WriteError::Unavailable(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_goes_on_when_there_is_space() {
    let (dir, disk, store) = opened();
    let first = create(&store, key("first"), "x").await;
    for space in [0, 1, 47, 48, 60, 100] {
        disk.set(Faults { space: Some(space), ..Faults::default() });
        let reason = refused(&store, "a").await;
        assert!(reason.contains("no space left"), "{reason}");
        assert_eq!(store.revision(), first.revision);
        assert!(store.get(&key("a")).is_none() && store.get(&key("first")).is_some());
        // Nothing of the refused write may come back.
        let image = crash_image(dir.path());
        let crashed = Store::open(image.path(), Options::default()).unwrap();
        assert!(crashed.get(&key("a")).is_none() && crashed.get(&key("first")).is_some());
    }
    disk.set(Faults::default());
    let a = create(&store, key("a"), "x").await;
    assert_eq!(a.revision, first.revision + 1);
    assert_eq!(*store.failed().borrow(), None);
    store.shutdown().await;
    assert!(Store::open(dir.path(), Options::default()).unwrap().get(&key("a")).is_some());
}

/// Waits until the store says whether it refuses writes, which is `refusing`.
async fn until_refusing(store: &Store, refusing: bool) {
    let mut state = store.refusing();
    let changed = state.wait_for(|reason| reason.is_some() == refusing);
    tokio::time::timeout(Duration::from_secs(60), changed).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_store_that_refuses_writes_says_so_and_notices_by_itself_that_it_can_write_again() {
    let (dir, disk, store) = opened();
    create(&store, key("first"), "x").await;
    assert_eq!(*store.refusing().borrow(), None);
    // The second time, too, and when only a part of the write fits.
    for space in [0, 60] {
        disk.set(Faults { space: Some(space), ..Faults::default() });
        let reason = refused(&store, "a").await;
        assert_eq!(store.refusing().borrow().as_ref(), Some(&reason));
        disk.set(Faults::default());
        // Nothing is written meanwhile.
        until_refusing(&store, false).await;
    }
    assert_eq!(*store.failed().borrow(), None);
    let crashed = crash_image(dir.path());
    let crashed = Store::open(crashed.path(), Options::default()).unwrap();
    assert!(crashed.get(&key("a")).is_none() && crashed.get(&key("first")).is_some());
    disk.set(Faults { space: Some(0), ..Faults::default() });
    refused(&store, "a").await;
    disk.set(Faults::default());
    create(&store, key("a"), "x").await;
    assert_eq!(*store.refusing().borrow(), None, "a write that was accepted says so at once");
    store.shutdown().await;
    assert!(Store::open(dir.path(), Options::default()).unwrap().get(&key("a")).is_some());
}

#[tokio::test]
async fn what_a_store_writes_to_test_the_disk_never_comes_back() {
    let (dir, disk, store) = opened();
    create(&store, key("first"), "x").await;
    let len = files(dir.path(), ".seg").remove(0).metadata().unwrap().len();
    let read_only = Some(ErrorKind::ReadOnlyFilesystem);
    disk.set(Faults { space: Some(0), ..Faults::default() });
    refused(&store, "a").await;
    // From now on the test can be written, and not be cut off.
    disk.set(Faults { truncate: read_only, ..Faults::default() });
    let mut state = store.refusing();
    let cut = state.wait_for(|reason| reason.as_ref().is_some_and(|reason| reason.contains("read-only")));
    tokio::time::timeout(Duration::from_secs(60), cut).await.unwrap().unwrap();
    let image = crash_image(dir.path());
    assert!(files(image.path(), ".seg").remove(0).metadata().unwrap().len() > len, "the test was written");
    let crashed = Store::open(image.path(), Options::default()).unwrap();
    assert_eq!(crashed.snapshot("widgets.example.org").objects.len(), 1);
    disk.set(Faults::default());
    until_refusing(&store, false).await;
    create(&store, key("b"), "x").await;
}

#[tokio::test]
async fn a_write_that_could_not_be_cut_off_is_cut_off_before_the_next() {
    let (dir, disk, store) = opened();
    create(&store, key("first"), "x").await;
    let read_only = Some(ErrorKind::ReadOnlyFilesystem);
    disk.set(Faults { space: Some(70), truncate: read_only, ..Faults::default() });
    refused(&store, "a").await;
    disk.set(Faults { truncate: read_only, ..Faults::default() });
    refused(&store, "b").await;
    // A crash now finds the remains at the end, and drops them.
    let image = crash_image(dir.path());
    let crashed = Store::open(image.path(), Options::default()).unwrap();
    assert_eq!(crashed.snapshot("widgets.example.org").objects.len(), 1);
    disk.set(Faults::default());
    create(&store, key("c"), "x").await;
    store.shutdown().await;
    let reopened = Store::open(dir.path(), Options::default()).unwrap();
    assert_eq!(reopened.snapshot("widgets.example.org").objects.len(), 2);
}

#[tokio::test]
async fn write_errors_and_short_writes() {
    let (dir, disk, store) = opened();
    for kind in [ErrorKind::ReadOnlyFilesystem, ErrorKind::PermissionDenied, ErrorKind::Other] {
        disk.set(Faults { write: Some(kind), ..Faults::default() });
        assert!(refused(&store, "a").await.contains("injected"));
    }
    disk.set(Faults { longest_write: Some(7), ..Faults::default() });
    for name in ["a", "b", "c"] {
        create(&store, key(name), "short writes are continued").await;
    }
    store.shutdown().await;
    let reopened = Store::open(dir.path(), Options::default()).unwrap();
    assert_eq!(reopened.snapshot("widgets.example.org").objects.len(), 3);
}

#[tokio::test]
async fn a_failed_sync_ends_writing_for_good() {
    let (_dir, disk, store) = opened();
    create(&store, key("first"), "x").await;
    let mut failed = store.failed();
    assert_eq!(*failed.borrow_and_update(), None);
    disk.set(Faults { sync: Some(ErrorKind::Other), ..Faults::default() });
    let revision = store.revision();
    let reason = refused(&store, "a").await;
    tokio::time::timeout(Duration::from_secs(60), failed.changed()).await.unwrap().unwrap();
    assert_eq!(failed.borrow().as_deref(), Some(&*reason));
    assert!(reason.contains("may be lost"), "{reason}");
    assert_eq!(store.revision(), revision);
    // The system may report success next time without having written anything.
    disk.set(Faults::default());
    assert_eq!(refused(&store, "b").await, reason);
    assert!(store.get(&key("first")).is_some());
    store.shutdown().await;
}

#[tokio::test]
async fn a_failed_sync_of_relaxed_writes_is_reported_too() {
    let (_dir, disk, store) = opened();
    create(&store, key("first"), "x").await;
    let mut failed = store.failed();
    disk.set(Faults { sync: Some(ErrorKind::Other), ..Faults::default() });
    let relaxed =
        Write { key: key("a"), expect: Expect::Absent, op: put("x"), durability: Durability::Relaxed };
    store.commit(relaxed).await.unwrap();
    tokio::time::timeout(Duration::from_secs(60), failed.changed()).await.unwrap().unwrap();
    refused(&store, "b").await;
}

#[tokio::test]
async fn a_segment_that_cannot_be_begun_refuses_writes_until_it_can() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), HostileDisk::default());
    let options = Options { log: LogLimits { segment_bytes: 1, ..LogLimits::default() }, ..on(&disk) };
    let store = Store::open(dir.path(), options).unwrap();
    create(&store, key("a"), "x").await;
    disk.set(Faults { create: Some(ErrorKind::StorageFull), ..Faults::default() });
    refused(&store, "b").await;
    disk.set(Faults { space: Some(20), ..Faults::default() });
    refused(&store, "b").await;
    disk.set(Faults::default());
    create(&store, key("b"), "x").await;
    store.shutdown().await;
    let reopened = Store::open(dir.path(), Options::default()).unwrap();
    assert_eq!(reopened.snapshot("widgets.example.org").objects.len(), 2);
}

#[tokio::test]
async fn a_store_on_a_full_disk_opens_for_reading() {
    let (dir, disk, store) = opened();
    create(&store, key("a"), "x").await;
    let image = crash_image(dir.path());
    disk.set(Faults { space: Some(0), ..Faults::default() });
    let store = Store::open(image.path(), on(&disk)).unwrap();
    assert!(store.get(&key("a")).is_some());
    refused(&store, "b").await;
    disk.set(Faults::default());
    create(&store, key("b"), "x").await;
}

#[tokio::test]
async fn a_new_store_on_a_full_disk_says_so() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), HostileDisk::default());
    disk.set(Faults { space: Some(10), ..Faults::default() });
    let refused = Store::open(dir.path(), on(&disk)).unwrap_err();
    assert!(matches!(&refused, OpenError::Io { .. }) && chain(&refused).contains("no space"), "{refused}");
    disk.set(Faults::default());
    create(&Store::open(dir.path(), on(&disk)).unwrap(), key("a"), "x").await;
}

/// Waits until the writer is in a sync that the disk holds back.
async fn until_a_sync_is_held(disk: &HostileDisk) {
    while !disk.holds_a_sync() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn waiting_writers_share_a_slow_sync() {
    let (_dir, disk, store) = opened();
    let before = disk.syncs();
    disk.hold_syncs();
    let tasks: Vec<_> = (0..200)
        .map(|index| {
            let store = store.clone();
            tokio::spawn(async move { create(&store, key(&index.to_string()), "x").await })
        })
        .collect();
    until_a_sync_is_held(&disk).await;
    // While the disk is busy, reads are not: this one returns although no sync does.
    assert!(store.get(&key("none")).is_none());
    disk.release_syncs();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(disk.syncs() - before <= 10, "{} syncs for 200 writes", disk.syncs() - before);
}

#[tokio::test]
async fn what_is_not_durable_is_not_visible() {
    let (_dir, disk, store) = opened();
    create(&store, key("first"), "x").await;
    let mut watch = store.watch("widgets.example.org", store.revision()).unwrap();
    disk.hold_syncs();
    let writing = tokio::spawn({
        let store = store.clone();
        async move { create(&store, key("a"), "x").await }
    });
    until_a_sync_is_held(&disk).await;
    assert!(store.get(&key("a")).is_none() && watch.try_next().is_none());
    disk.release_syncs();
    let entry = writing.await.unwrap();
    assert_eq!(watch.try_next().unwrap().revision, entry.revision);
}

#[tokio::test]
async fn a_snapshot_that_cannot_be_written_holds_up_nothing() {
    for faults in [
        Faults { space: Some(100), only: ".snap", ..Faults::default() },
        Faults { sync: Some(ErrorKind::Other), only: ".snap", ..Faults::default() },
        Faults { create: Some(ErrorKind::PermissionDenied), only: ".snap", ..Faults::default() },
    ] {
        let (dir, disk) = (tempfile::tempdir().unwrap(), HostileDisk::default());
        disk.set(faults);
        let options = Options {
            history: HistoryLimits { max_events: 2, ..HistoryLimits::default() },
            log: LogLimits { segment_bytes: 300, compact_bytes: 300 },
            ..on(&disk)
        };
        let store = Store::open(dir.path(), options).unwrap();
        let mut revision = create(&store, key("a"), "x").await.revision;
        for _ in 0..30 {
            revision = update(&store, key("a"), revision, "y").await.revision;
        }
        assert_eq!(*store.failed().borrow(), None);
        store.shutdown().await;
        assert!(files(dir.path(), ".snap").is_empty() && files(dir.path(), ".tmp").is_empty());
        let reopened = Store::open(dir.path(), Options::default()).unwrap();
        assert_eq!(reopened.get(&key("a")).unwrap().revision, revision);
    }
}

#[tokio::test]
async fn unsynced_batches_may_be_missing_in_any_order() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), HostileDisk::default());
    let batch = BatchLimits { relaxed_delay: Duration::from_secs(600), ..BatchLimits::default() };
    let store = Store::open(dir.path(), Options { batch, ..on(&disk) }).unwrap();
    create(&store, key("durable"), "x").await;
    let log = files(dir.path(), ".seg").remove(0);
    let mut ends = vec![usize::try_from(log.metadata().unwrap().len()).unwrap()];
    for name in ["b", "c", "d"] {
        let op = put("x");
        let write = Write { key: key(name), expect: Expect::Absent, op, durability: Durability::Relaxed };
        store.commit(write).await.unwrap();
        ends.push(usize::try_from(log.metadata().unwrap().len()).unwrap());
    }
    for (index, range) in ends.windows(2).enumerate() {
        let image = crash_image(dir.path());
        let log = files(image.path(), ".seg").remove(0);
        let mut bytes = std::fs::read(&log).unwrap();
        bytes[range[0]..range[1]].fill(0);
        std::fs::write(&log, bytes).unwrap();
        let crashed = Store::open(image.path(), Options::default()).unwrap();
        assert_eq!(crashed.snapshot("widgets.example.org").objects.len(), 1 + index);
        assert!(crashed.revision() > store.revision());
    }
}

#[tokio::test]
async fn the_first_write_after_a_clean_restart_cannot_be_lost_and_its_revision_given_out_again() {
    let (dir, _, store) = opened();
    create(&store, key("a"), "x").await;
    store.shutdown().await;
    let disk = HostileDisk::default();
    let store = Store::open(dir.path(), on(&disk)).unwrap();
    let mut seen = 0;
    for name in ["b", "c"] {
        let op = put("x");
        let write = Write { key: key(name), expect: Expect::Absent, op, durability: Durability::Relaxed };
        seen = store.commit(write).await.unwrap().revision;
    }
    disk.set(Faults { sync: Some(ErrorKind::Other), write: Some(ErrorKind::Other), ..Faults::default() });
    store.shutdown().await;
    disk.lose_power().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    assert!(store.get(&key("c")).is_none(), "the disk kept what it was to lose");
    assert!(create(&store, key("d"), "x").await.revision > seen);
}

#[tokio::test]
async fn power_loss_takes_no_strict_write_and_gives_no_revision_twice() {
    let dir = tempfile::tempdir().unwrap();
    let mut seen = 0;
    let mut strict: Vec<String> = Vec::new();
    for round in 0..6 {
        let disk = HostileDisk::default();
        let options = Options { log: LogLimits { segment_bytes: 1500, compact_bytes: 1500 }, ..on(&disk) };
        let store = Store::open(dir.path(), options).unwrap();
        for name in &strict {
            assert!(store.get(&key(name)).is_some(), "{name} was durable");
        }
        assert!(store.revision() >= seen);
        for index in 0..20 {
            let name = format!("{round}-{index}");
            // Rounds end with relaxed writes, of which some are lost.
            let durability =
                if index % 3 == 0 && index < 15 { Durability::Strict } else { Durability::Relaxed };
            let write = Write { key: key(&name), expect: Expect::Absent, op: put("x"), durability };
            let committed = store.commit(write).await.unwrap();
            assert!(committed.revision > seen, "revision {} again", committed.revision);
            seen = committed.revision;
            if durability == Durability::Strict {
                strict.push(name);
            }
        }
        // The disk dies first: nothing the dying store still does may reach it.
        disk.set(Faults {
            write: Some(ErrorKind::Other),
            sync: Some(ErrorKind::Other),
            create: Some(ErrorKind::Other),
            ..Faults::default()
        });
        store.shutdown().await;
        disk.lose_power().unwrap();
    }
}
