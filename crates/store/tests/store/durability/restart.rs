//! Closing, crashing and opening again; the log growing and shrinking.

use super::{crash_image, files};
use crate::fixture::{body, create, delete, key, put, text, update};
use std::collections::BTreeMap;
use std::time::Duration;
use transom_object::{Header, OwnerReference};
use transom_store::{
    Durability, Expect, HistoryLimits, Key, LogLimits, OpenError, Options, Put, Store, Write, WriteOp, verify,
};

const WIDGETS: &str = "widgets.example.org";

/// Limits so small that a few writes need several segments and snapshots.
fn tight() -> Options {
    Options {
        history: HistoryLimits { max_events: 10, ..HistoryLimits::default() },
        log: LogLimits { segment_bytes: 1000, compact_bytes: 2000 },
        ..Options::default()
    }
}

#[tokio::test]
async fn a_clean_restart_changes_nothing_and_watches_resume() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let start = store.revision();
    let a = create(&store, key("a"), "1").await.revision;
    let b = create(&store, key("b"), "1").await.revision;
    let c = update(&store, key("a"), a, "2").await.revision;
    let d = delete(&store, key("b"), b).await.revision;
    store.shutdown().await;

    let store = Store::open(dir.path(), Options::default()).unwrap();
    assert_eq!(store.revision(), d);
    assert_eq!(text(&store.get(&key("a")).unwrap()), body(c, "2"));
    assert!(store.get(&key("b")).is_none());
    let mut watch = store.watch(WIDGETS, start).unwrap();
    let seen: Vec<_> = std::iter::from_fn(|| watch.try_next()).collect();
    assert_eq!(seen.iter().map(|event| event.revision).collect::<Vec<_>>(), [a, b, c, d]);
    assert_eq!(text(seen[2].old.as_ref().unwrap()), body(a, "1"));
    assert_eq!(text(seen[3].old.as_ref().unwrap()), body(b, "1"));
    assert_eq!(store.snapshot_at(WIDGETS, b).unwrap().objects.len(), 2);
    let e = create(&store, key("b"), "again").await.revision;
    assert_eq!(e, d + 1);
}

#[tokio::test]
async fn headers_survive() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let owner = |controller, block_owner_deletion| OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: "ö".into(),
        uid: "u-2".into(),
        controller,
        block_owner_deletion,
    };
    let header = Header {
        name: "a".into(),
        namespace: "ns".into(),
        uid: "u-1".into(),
        labels: BTreeMap::from([("k".into(), "v".into()), ("empty".into(), String::new())]),
        owners: vec![owner(None, Some(true)), owner(Some(false), None)],
        finalizers: vec!["example.org/f".into()],
        deleting: true,
    };
    let op = WriteOp::Put(Put { body: b"\"\"".to_vec(), revision_at: 1, header: header.clone() });
    store
        .commit(Write { key: key("a"), expect: Expect::Absent, op, durability: Durability::Relaxed })
        .await
        .unwrap();
    store.shutdown().await;
    let store = Store::open(dir.path(), Options::default()).unwrap();
    assert_eq!(store.get(&key("a")).unwrap().header, header);
}

#[tokio::test]
async fn after_a_crash_no_revision_comes_twice_and_the_lost_ones_have_to_be_listed_anew() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let a = create(&store, key("a"), "1").await.revision;
    let image = crash_image(dir.path());
    let recovered = Store::open(image.path(), Options::default()).unwrap();
    let now = recovered.revision();
    assert!(now > a + 1000, "{now} after {a}");
    assert!(recovered.get(&key("a")).is_some());
    assert!(recovered.watch(WIDGETS, a).is_ok());
    assert!(recovered.watch(WIDGETS, now).is_ok());
    assert_eq!(recovered.watch(WIDGETS, a + 5).unwrap_err().oldest, now);
    assert_eq!(create(&recovered, key("b"), "1").await.revision, now + 1);
    // The gap is part of the log, so the next crash knows of it too.
    let again = crash_image(image.path());
    let again = Store::open(again.path(), Options::default()).unwrap();
    assert!(again.revision() > now + 1);
    assert!(again.watch(WIDGETS, a + 5).is_err());
    let mut watch = again.watch(WIDGETS, a).unwrap();
    assert_eq!(watch.try_next().unwrap().revision, now + 1);
}

#[tokio::test]
async fn opening_alone_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    create(&store, key("a"), "1").await;
    let image = crash_image(dir.path());
    let log = files(image.path(), ".seg").remove(0);
    let before = std::fs::read(&log).unwrap();
    let revision = Store::open(image.path(), Options::default()).unwrap().revision();
    let reopened = loop {
        // Dropping the last handle lets go of the directory, but not at once.
        match Store::open(image.path(), Options::default()) {
            Ok(store) => break store,
            Err(OpenError::Locked { .. }) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(reopened.revision(), revision);
    assert_eq!(std::fs::read(&log).unwrap(), before);
}

#[tokio::test]
async fn what_a_crash_left_in_the_cache_is_synced_before_it_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    create(&store, key("a"), "1").await;
    let image = crash_image(dir.path());
    let disk = transom_store::testing::HostileDisk::default();
    let options = Options { disk: std::sync::Arc::new(disk.clone()), ..Options::default() };
    let crashed = Store::open(image.path(), options.clone()).unwrap();
    assert!(crashed.get(&key("a")).is_some());
    assert_eq!(disk.syncs(), 1);
    create(&crashed, key("b"), "1").await;
    crashed.shutdown().await;
    let before = disk.syncs();
    Store::open(image.path(), options).unwrap();
    assert_eq!(disk.syncs(), before, "after a shutdown everything is durable already");
}

#[tokio::test]
async fn only_one_store_has_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let refused = Store::open(dir.path(), Options::default()).unwrap_err();
    assert!(
        matches!(refused, OpenError::Locked { by: Some(pid), .. } if pid == std::process::id()),
        "{refused}"
    );
    assert!(matches!(verify(dir.path()), Err(OpenError::Locked { .. })));
    store.shutdown().await;
    Store::open(dir.path(), Options::default()).unwrap();
}

#[tokio::test]
async fn disk_use_stays_bounded_while_everything_stays_readable() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), tight()).unwrap();
    let mut revisions = [0; 5];
    let mut largest = 0;
    for round in 0..600 {
        let slot = round % 5;
        let name = key(&slot.to_string());
        revisions[slot] = match revisions[slot] {
            0 => create(&store, name, &round.to_string()).await.revision,
            now => update(&store, name, now, &round.to_string()).await.revision,
        };
        let sizes = [".seg", ".snap"].map(|suffix| {
            files(dir.path(), suffix)
                .iter()
                .filter_map(|path| path.metadata().ok())
                .map(|file| file.len())
                .sum()
        });
        largest = largest.max(sizes.iter().sum::<u64>());
        if round % 100 == 99 {
            let image = crash_image(dir.path());
            let crashed = Store::open(image.path(), tight()).unwrap();
            for (slot, revision) in revisions.iter().enumerate() {
                assert_eq!(crashed.get(&key(&slot.to_string())).unwrap().revision, *revision);
            }
            // Ten events are kept in memory, so at least those must be there after a restart.
            assert!(crashed.snapshot_at(WIDGETS, store.revision() - 10).is_ok());
        }
    }
    assert!(largest < 40_000, "{largest} bytes for five small objects");
    store.shutdown().await;
    assert!(files(dir.path(), ".snap").len() <= 2);
    let report = verify(dir.path()).unwrap();
    assert!(report.opens && report.damage.is_empty() && report.torn_bytes == 0, "{report:?}");
    assert_eq!((report.objects, report.revision), (5, store.revision()));
}

#[tokio::test]
async fn a_large_batch_and_many_resources_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), tight()).unwrap();
    let tasks: Vec<_> = (0..300)
        .map(|index| {
            let store = store.clone();
            let key = Key::new(format!("r{}", index % 7), "", &index.to_string());
            tokio::spawn(async move { create(&store, key, &"x".repeat(index)).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    store.shutdown().await;
    let reopened = Store::open(dir.path(), tight()).unwrap();
    assert_eq!(reopened.resources().len(), 7);
    for resource in reopened.resources() {
        let (before, after) = (store.snapshot(&resource), reopened.snapshot(&resource));
        assert_eq!(before.revision, after.revision);
        let texts = |objects: &imbl::OrdMap<_, std::sync::Arc<transom_store::Entry>>| {
            objects.values().map(|entry| text(entry)).collect::<Vec<_>>()
        };
        assert_eq!(texts(&before.objects), texts(&after.objects));
    }
}

#[tokio::test]
async fn relaxed_writes_are_synced_soon() {
    let disk = transom_store::testing::HostileDisk::default();
    let dir = tempfile::tempdir().unwrap();
    let options = Options { disk: std::sync::Arc::new(disk.clone()), ..Options::default() };
    let store = Store::open(dir.path(), options).unwrap();
    create(&store, key("first"), "x").await;
    let before = disk.syncs();
    disk.hold_syncs();
    let write =
        Write { key: key("a"), expect: Expect::Absent, op: put("x"), durability: Durability::Relaxed };
    // Acknowledged although no sync returns.
    store.commit(write).await.unwrap();
    assert_eq!(disk.syncs(), before);
    disk.release_syncs();
    let synced = async {
        while disk.syncs() == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), synced).await.unwrap();
    assert_eq!(disk.syncs(), before + 1);
}
